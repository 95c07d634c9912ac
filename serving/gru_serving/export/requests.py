"""A task's requests in the forms that an exported version holds: golden, and warmup records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.engine.warmup import predict_record
from gru_serving.protos.prediction_log_pb2 import PredictionLog
from gru_training.servable import Request


def golden_request(request: Request) -> dict[str, Any]:
    """The request with its answer, as `gru_serving.release.golden` reads it."""
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
    """The request as a server replays it before a version goes live."""
    if request.method == "predict":
        return predict_record(request.inputs, request.signature)
    log = PredictionLog()
    log_of_method = log.classify_log if request.method == "classify" else log.regress_log
    log_of_method.request.model_spec.signature_name = request.signature
    log_of_method.request.input.CopyFrom(encode_input(example_values(_examples(request))))
    return log


def _examples(request: Request) -> list[dict[str, Any]]:
    """The rows of a request, each by feature name."""
    features = _json(request.inputs)
    return [dict(zip(features, row, strict=True)) for row in zip(*features.values(), strict=True)]


def _json(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    return {name: _plain(np.asarray(array)) for name, array in arrays.items()}


def _plain(array: np.ndarray[Any, Any]) -> Any:
    """Nested lists; of float32 the shortest decimals that give the same number, texts as str."""
    if array.dtype == np.float32:
        return array.astype("U16").astype(np.float64).tolist()
    if array.dtype.kind == "O":
        texts = np.array([text.decode() for text in array.ravel()], object)
        return texts.reshape(array.shape).tolist()
    return array.tolist()
