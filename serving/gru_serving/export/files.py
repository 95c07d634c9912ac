"""The files that an export writes beside a SavedModel: ONNX graphs, golden and warmup requests.

Graphs share their weights: large ones stand once in `weights.bin`, which the runtime maps into
memory.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.engine.golden import VerificationError, local_engine, read_golden
from gru_serving.engine.golden import replay as replay_golden
from gru_serving.engine.onnx.session import OnnxSession
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.warmup import predict_record
from gru_serving.errors import ServingError
from gru_serving.preprocessing.description import FOLDER, Description
from gru_serving.protos.prediction_log_pb2 import PredictionLog
from gru_serving.storage.saved_model import read_signatures
from gru_training.servable import OnnxModel, Request

WEIGHTS = "weights.bin"
_LEAST_BYTES = 1024
_ALIGNMENT = 4096


def write_onnx(version: Path, model: OnnxModel) -> Description:
    """Write the networks into a version that has its SavedModel and its golden requests.

    A signature whose graph does not answer its golden requests as the Keras model does is left to
    TensorFlow, and reported.

    Args:
        version: The version's directory.
        model: Model of the task.

    Returns:
        Description that was written.
    """
    folder = version / FOLDER
    write_graphs(folder, model.graphs)
    model.description.write(folder)
    golden, signatures = read_golden(version), read_signatures(version, ("serve",))
    assert signatures is not None
    written = Description.read(version)
    assert written is not None
    wrong: dict[str, str] = {}
    for name, signature in written.signatures.items():
        asked = [request for request in golden if request["signature_name"] == name]
        try:
            session = OnnxSession(version, Description({name: signature}), signatures)
            replay_golden(asked, local_engine(Predictor(session)))
        except (ServingError, VerificationError) as error:
            wrong[name] = str(error)
    described = model.description.without(wrong)
    described.write(folder)
    return described


def write_graphs(folder: Path, graphs: Mapping[str, Any]) -> None:
    """Write graphs of ONNX (`ModelProto` by name) into a new folder."""
    folder.mkdir(parents=True)
    with (folder / WEIGHTS).open("wb") as file:
        weights = _Weights(file)
        for name, graph in graphs.items():
            weights.take_from(graph)
            (folder / f"{name}.onnx").write_bytes(graph.SerializeToString())
    if not (folder / WEIGHTS).stat().st_size:
        (folder / WEIGHTS).unlink()


class _Weights:
    """A file of arrays that stores equal ones once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._places: dict[bytes, int] = {}

    def take_from(self, graph: Any) -> None:
        """Move the large weights of a `ModelProto` into the file."""
        for tensor in graph.graph.initializer:
            content = tensor.raw_data
            if len(content) < _LEAST_BYTES:
                continue
            key = hashlib.sha256(content).digest()
            if key not in self._places:
                self._file.write(bytes(-self._file.tell() % _ALIGNMENT))
                self._places[key] = self._file.tell()
                self._file.write(content)
            tensor.ClearField("raw_data")
            tensor.data_location = tensor.EXTERNAL
            place = {
                "location": WEIGHTS,
                "offset": str(self._places[key]),
                "length": str(len(content)),
            }
            for entry, value in place.items():
                tensor.external_data.add(key=entry, value=value)


def golden_request(request: Request) -> dict[str, Any]:
    """Build the request with its answer, in the form that `gru_serving.engine.golden` reads."""
    sent: dict[str, Any] = {"inputs": _json(request.inputs)}
    if request.method != "predict":
        sent = {"examples": _examples(request)}
    return {
        "method": request.method,
        "signature_name": request.signature,
        **sent,
        "outputs": _json(request.outputs),
    }


def warmup_record(request: Request) -> PredictionLog:
    """Build the request that a server replays before a version goes live."""
    if request.method == "predict":
        return predict_record(request.inputs, request.signature)
    log = PredictionLog()
    log_of_method = log.classify_log if request.method == "classify" else log.regress_log
    log_of_method.request.model_spec.signature_name = request.signature
    log_of_method.request.input.CopyFrom(encode_input(example_values(_examples(request))))
    return log


def _examples(request: Request) -> list[dict[str, Any]]:
    """Return the rows of a request, each by feature name."""
    features = _json(request.inputs)
    return [dict(zip(features, row, strict=True)) for row in zip(*features.values(), strict=True)]


def _json(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    return {name: _plain(np.asarray(array)) for name, array in arrays.items()}


def _plain(array: np.ndarray[Any, Any]) -> Any:
    """Convert arrays to nested lists: float32 as the shortest equal decimals, texts as str."""
    if array.dtype == np.float32:
        return array.astype("U16").astype(np.float64).tolist()
    if array.dtype.kind == "O":
        texts = np.array([text.decode() for text in array.ravel()], object)
        return texts.reshape(array.shape).tolist()
    return array.tolist()
