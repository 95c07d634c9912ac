"""SavedModels made with plain TensorFlow, for the server under test."""

import shutil

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from gru_serving.engine.warmup import predict_record, write_records


class Grow(tf.Module):
    """Answers with more dimensions than its input has, or with strings instead of numbers."""

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string, name="x")])
    def strings(self, x):
        return {"y": tf.expand_dims(x, -1), "length": tf.strings.length(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="x")])
    def declared(self, x):
        return {"y": tf.expand_dims(x, -1)}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, name="x")])
    def shown(self, x):
        return {"y": tf.strings.as_string(x)}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, name="x")])
    def numbers(self, x):
        return {"y": tf.expand_dims(x, -1)}


def save_grow(directory):
    """The model that adds dimensions."""
    module = Grow()
    names = ("strings", "declared", "shown", "numbers")
    signatures = {name: getattr(module, name) for name in names}
    tf.saved_model.save(module, str(directory), signatures=signatures)


def publish(models, base, version, source=1):
    """Publish a version of the affine model properly: written aside, then renamed."""
    aside = base.parent / f"aside-{base.name}-{version}"
    shutil.copytree(models / "affine" / str(source), aside)
    base.mkdir(exist_ok=True)
    aside.rename(base / str(version))


class Branches(tf.Module):
    """Adds one to each of the first numbers, or nothing, in its own branch."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="x")])
    def serve(self, x):
        return {"y": tf.cond(tf.size(x) > 1, lambda: x + tf.size(x) + 1, lambda: x)}


def save_killer(directory):
    """A model whose first run ends the process, with a request for it to be run at the load.

    The constants of a branch have lost their values, as by one altered byte. TensorFlow does not
    look at the loading, but its optimizer asks for them.
    """
    module = Branches()
    tf.saved_model.save(module, str(directory), signatures={"serving_default": module.serve})
    path = directory / "saved_model.pb"
    saved_model = SavedModel.FromString(path.read_bytes())
    for function in saved_model.meta_graphs[0].graph_def.library.function:
        if "_true_" in function.signature.name:
            for node in function.node_def:
                if node.op == "Const":
                    del node.attr["value"]
    path.write_bytes(saved_model.SerializeToString())
    write_records(directory, [predict_record({"x": np.arange(3, dtype=np.int32)})])
