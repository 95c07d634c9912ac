"""The model that the serving benchmark serves, and the requests it sends."""

from __future__ import annotations

import json
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NAME = "gru"
UNITS = 64
TOKENS = 50
VOCABULARY = 10_000


@dataclass(frozen=True)
class Artifacts:
    """Paths of the model in the forms that the servers load.

    Attributes:
        base_path: Versions of a SavedModel, for TF Serving's flags.
        saved_model: The one version in it.
        keras_file: The same model for `keras.saving.load_model`.
    """

    base_path: Path
    saved_model: Path
    keras_file: Path


def save(directory: Path) -> Artifacts:
    """Make the model: tokens (B, T) int32 -> scores (B, 2) float32, for both runtimes.

    Its weights are random, from a fixed seed: speed does not depend on what it has learned.
    """
    import keras
    import tensorflow as tf

    from gru_serving.engine.golden import write_golden
    from gru_serving.export.files import golden_request, write_onnx
    from gru_serving.preprocessing.description import Description, Signature
    from gru_training.servable import OnnxModel, Request
    from keras_gru import GRU
    from keras_gru.convert.onnx_graph import OnnxGraph, Value
    from keras_gru.convert.onnx_model import add_model

    keras.utils.set_random_seed(1)
    ids = keras.Input((None,), dtype="int32", name="tokens")
    state = GRU(UNITS)(keras.layers.Embedding(VOCABULARY, 32)(ids))
    model = keras.Model(ids, keras.layers.Dense(2, activation="softmax")(state))
    artifacts = Artifacts(directory / NAME, directory / NAME / "1", directory / "model.keras")
    model.save(artifacts.keras_file)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serving_default",
        lambda tokens: {"scores": model(tokens, training=False)},
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="tokens")],
    )
    archive.write_out(str(artifacts.saved_model), verbose=False)
    scores = model.predict_on_batch(tokens(2))
    request = Request("serving_default", {"tokens": tokens(2)}, {"scores": scores})
    write_golden(artifacts.saved_model, [golden_request(request)])
    graph = OnnxGraph()
    given = Value(graph.input("tokens", "int32", (None, None)), 2)
    (answer,) = add_model(graph, model, [given])
    graph.output("scores", answer.name, "float32", (None, 2))
    signature = Signature((), "scores", (), {"scores": "scores"})
    described = Description({"serving_default": signature})
    write_onnx(artifacts.saved_model, OnnxModel(described, {"scores": graph.model("scores")}))
    return artifacts


def tokens(rows: int) -> np.ndarray:
    """The same rows for every server, shape (rows, TOKENS)."""
    return np.random.default_rng(rows).integers(0, VOCABULARY, (rows, TOKENS), np.int32)


def grpc_body(rows: int) -> bytes:
    """A PredictRequest, framed as it is sent."""
    from gru_serving.codecs.tensor_proto import encode_tensor
    from gru_serving.protos.predict_pb2 import PredictRequest

    request = PredictRequest()
    request.model_spec.name = NAME
    request.inputs["tokens"].CopyFrom(encode_tensor(tokens(rows)))
    raw: bytes = request.SerializeToString()
    return b"\0" + struct.pack(">I", len(raw)) + raw


def rest_body(rows: int) -> bytes:
    """A predict request in row format."""
    return json.dumps({"instances": tokens(rows).tolist()}).encode()


def v2_body(rows: int) -> bytes:
    """A request of the Open Inference Protocol, which MLServer and KServe understand."""
    tensor = {
        "name": "tokens",
        "shape": [rows, TOKENS],
        "datatype": "INT32",
        "data": tokens(rows).ravel().tolist(),
    }
    return json.dumps({"inputs": [tensor]}).encode()


if __name__ == "__main__":
    # In a separate process: the one that measures must not keep TensorFlow's threads.
    save(Path(sys.argv[1]))
