"""SavedModels made with plain TensorFlow, for the server under test."""

import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from gru_serving.engine.warmup import predict_record, write_records

VOCABULARY = ["good", "bad", "great", "awful"]


class Text(tf.Module):
    """Counts good and bad words: a string input, a vocabulary file among the assets."""

    def __init__(self, vocabulary_file):
        super().__init__()
        initializer = tf.lookup.TextFileInitializer(
            vocabulary_file,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.table = tf.lookup.StaticHashTable(initializer, -1)
        self.labels = tf.constant(["negative", "positive"])

    def scores(self, text):
        words = self.table.lookup(tf.strings.split(text)).to_tensor(default_value=-1)
        positive = tf.reduce_sum(tf.cast((words == 0) | (words == 2), tf.float32), 1)
        negative = tf.reduce_sum(tf.cast((words == 1) | (words == 3), tf.float32), 1)
        return tf.nn.softmax(tf.stack([negative, positive], 1))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, text):
        scores = self.scores(text)
        best = tf.argmax(scores, 1)
        return {
            "label": tf.gather(self.labels, best),
            "probability": tf.reduce_max(scores, 1),
            "scores": scores,
        }

    def parsed(self, examples):
        return tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def classify(self, inputs):
        scores = self.scores(self.parsed(inputs))
        classes = tf.tile(self.labels[tf.newaxis], [tf.shape(scores)[0], 1])
        return {"classes": classes, "scores": scores}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def regress(self, inputs):
        return {"outputs": self.scores(self.parsed(inputs))[:, 1:]}


class Affine(tf.Module):
    """y = x W + b, two float inputs; and the sum of the inputs without a batch dimension."""

    def __init__(self, factor):
        super().__init__()
        self.kernel = tf.Variable(factor * tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 3], tf.float32, name="x"),
            tf.TensorSpec([None, 1], tf.float32, name="b"),
        ]
    )
    def serve(self, x, b):
        return {"y": x @ self.kernel + b, "doubled": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def total(self, x):
        return {"total": tf.reduce_sum(x)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="steps")])
    def spin(self, steps):
        """Takes as long as it is told to."""
        done = tf.while_loop(
            lambda i, _: i < steps,
            lambda i, x: (i + 1, tf.sin(x) + 1.0),
            (tf.constant(0, tf.int64), tf.constant(0.5)),
        )
        return {"x": done[1]}


ECHOED = (
    *("float64", "float16", "bfloat16", "bool", "string", "complex64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


class Echo(tf.Module):
    """Returns its input; one signature per element type."""

    @staticmethod
    def echo(name):
        spec = tf.TensorSpec(None, tf.as_dtype(name), name="x")
        return tf.function(lambda x: {"x": tf.identity(x)}, input_signature=[spec])


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


def save_text(directory):
    """The text model."""
    vocabulary = directory.parent / "vocabulary.txt"
    directory.parent.mkdir(parents=True, exist_ok=True)
    vocabulary.write_text("\n".join(VOCABULARY))
    module = Text(str(vocabulary))
    tf.saved_model.save(
        module,
        str(directory),
        signatures={
            "serving_default": module.serve,
            "classify": module.classify,
            "regress": module.regress,
        },
    )
    # The copy among the assets must suffice.
    vocabulary.unlink()


def save_affine(directory, factor=1.0):
    """The affine model; its versions differ by a factor."""
    module = Affine(factor)
    tf.saved_model.save(
        module,
        str(directory),
        signatures={
            "serving_default": module.serve,
            "total": module.total,
            "spin": module.spin,
        },
    )


def save_echo(directory):
    """The echo model."""
    module = Echo()
    functions = {name: Echo.echo(name) for name in ECHOED}
    module.functions = functions
    tf.saved_model.save(module, str(directory), signatures=functions)


def save_half_plus_two(directory):
    """A TF1 SavedModel as upstream's tests have: reference variables, tf.Example parsing.

    The signatures that take examples share their input tensor.
    """
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        half = v1.get_variable("a", initializer=0.5, use_resource=False)
        two = v1.get_variable("b", initializer=2.0, use_resource=False)
        y = tf.add(tf.multiply(half, x), two, name="y")
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        parsed = v1.parse_example(serialized, {"x": v1.FixedLenFeature([1], tf.float32)})
        regressed = tf.add(tf.multiply(half, parsed["x"]), two)
        named = tf.strings.as_string(regressed, precision=1)
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        build = v1.saved_model.build_signature_def
        builder = v1.saved_model.Builder(str(directory))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map={
                "serving_default": build(
                    {"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"
                ),
                "regress_x_to_y": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(regressed)},
                    "tensorflow/serving/regress",
                ),
                # Like the one in TF Serving's documentation.
                "tensorflow/serving/regress": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(regressed)},
                    "tensorflow/serving/regress",
                ),
                "classify_x_to_y": build(
                    {"inputs": info(serialized)},
                    {"scores": info(regressed)},
                    "tensorflow/serving/classify",
                ),
                "only_classes": build(
                    {"inputs": info(serialized)},
                    {"classes": info(named)},
                    "tensorflow/serving/classify",
                ),
                "flat_scores": build(
                    {"inputs": info(serialized)},
                    {"scores": info(tf.reshape(regressed, [-1]))},
                    "tensorflow/serving/classify",
                ),
                "wide_outputs": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(tf.tile(regressed, [1, 2]))},
                    "tensorflow/serving/regress",
                ),
                "text_outputs": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(named)},
                    "tensorflow/serving/regress",
                ),
                "other_input_name": build(
                    {"x": info(serialized)},
                    {"outputs": info(regressed), "scores": info(regressed)},
                    "tensorflow/serving/regress",
                ),
                "no_outputs_named_so": build(
                    {"inputs": info(serialized)},
                    {"y": info(regressed)},
                    "tensorflow/serving/regress",
                ),
            },
        )
        builder.save()


def save_all(root: Path):
    """All models, each under its own base path; the affine one in versions 1 and 3."""
    save_text(root / "text" / "1")
    save_affine(root / "affine" / "1")
    save_affine(root / "affine" / "3", 10.0)
    save_echo(root / "echo" / "00000123")
    save_half_plus_two(root / "half_plus_two" / "1")


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
