"""Warmup requests: written beside a version at export, replayed when it is loaded.

`<version>/assets.extra/tf_serving_warmup_requests` is a TFRecord file of PredictionLog messages.
Only the request part counts, and of its model spec only the signature.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from serving.errors import Code, InvalidArgument, ServingError, Unimplemented, from_code
from serving.examples import classify, regress
from serving.grpc_codec import decode_input, decode_tensor, encode_tensor
from serving.predictor import Predictor
from serving.protos.inference_pb2 import MultiInferenceRequest
from serving.protos.predict_pb2 import PredictRequest
from serving.protos.prediction_log_pb2 import PredictionLog
from serving.session import SessionOptions
from serving.signature import CLASSIFY_METHOD, REGRESS_METHOD

FILE = Path("assets.extra", "tf_serving_warmup_requests")
MAX_RECORDS = 1000


def load_warm(
    directory: Path,
    tags: Sequence[str] = ("serve",),
    options: SessionOptions | None = None,
    iterations: int = 1,
) -> Predictor:
    """Load a version and run its warmup requests, if it has any.

    Args:
        directory: Of the version.
        tags: Of the MetaGraph to load.
        options: Threads of the session.
        iterations: Times to run each request; 0 runs none.

    Raises:
        ServingError: The version cannot be loaded, or a warmup request fails.
    """
    predictor = Predictor(directory, tags, options)
    try:
        replay(predictor, directory, iterations)
    except BaseException:
        predictor.close()
        raise
    return predictor


def replay(predictor: Predictor, directory: Path, iterations: int = 1) -> int:
    """Run the warmup requests of a version.

    Returns:
        The number of records; 0 where there is no file.

    Raises:
        ServingError: With TF Serving's text: no TFRecord file, a record that is no PredictionLog
            or of a kind that cannot be run, too many records, or a request that fails.
    """
    path = directory / FILE
    if iterations < 1 or not path.exists():
        return 0
    count = 0
    for record in _records(path):
        count += 1
        if count > MAX_RECORDS:
            raise InvalidArgument(
                f"Number of warmup records exceeds the maximum ({MAX_RECORDS}) at {path}"
            )
        try:
            log = PredictionLog.FromString(record)
        except DecodeError:
            raise InvalidArgument(
                f"Failed to parse warmup record: {record[:100]!r} from {path}"
            ) from None
        for _ in range(iterations):
            _run(predictor, log)
    return count


def _records(path: Path) -> Iterable[bytes]:
    try:
        yield from tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    except tf.errors.DataLossError as error:
        text = f"{error.message}. Please verify your warmup data is in TFRecord format."
        raise ServingError(text, Code.DATA_LOSS) from None
    except tf.errors.OpError as error:
        raise from_code(error.error_code, error.message) from None


def _run(predictor: Predictor, log: PredictionLog) -> None:
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        request = log.predict_log.request
        inputs = {alias: decode_tensor(proto) for alias, proto in request.inputs.items()}
        predictor.predict(inputs, request.model_spec.signature_name, request.output_filter)
    elif kind == "classify_log":
        classification = log.classify_log.request
        examples = decode_input(classification.input)
        classify(predictor, classification.model_spec.signature_name, examples)
    elif kind == "regress_log":
        regression = log.regress_log.request
        examples = decode_input(regression.input)
        regress(predictor, regression.model_spec.signature_name, examples)
    elif kind == "multi_inference_log":
        _run_tasks(predictor, log.multi_inference_log.request)
    else:
        number = log.DESCRIPTOR.fields_by_name[kind].number if kind else 0
        raise Unimplemented(f"Unsupported log_type for warmup: {number}")


def _run_tasks(predictor: Predictor, request: MultiInferenceRequest) -> None:
    examples = decode_input(request.input)
    for task in request.tasks:
        if task.method_name == CLASSIFY_METHOD:
            classify(predictor, task.model_spec.signature_name, examples)
        elif task.method_name == REGRESS_METHOD:
            regress(predictor, task.model_spec.signature_name, examples)
        else:
            raise Unimplemented(f"Unsupported signature method_name: {task.method_name}")


def predict_record(inputs: Mapping[str, np.ndarray], signature_name: str = "") -> PredictionLog:
    """A record that runs Predict with these inputs."""
    request = PredictRequest()
    request.model_spec.signature_name = signature_name
    for alias, array in inputs.items():
        request.inputs[alias].CopyFrom(encode_tensor(np.asarray(array), content=True))
    log = PredictionLog()
    log.predict_log.request.CopyFrom(request)
    return log


def write_records(directory: Path, records: Sequence[PredictionLog]) -> Path:
    """Write the warmup file of a version.

    Args:
        directory: Of the version.
        records: At most 1000, as TF Serving loads no more.

    Returns:
        The file.

    Raises:
        ValueError: Too many records.
    """
    if len(records) > MAX_RECORDS:
        raise ValueError(f"records: expected at most {MAX_RECORDS}; got {len(records)}")
    path = directory / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{time.monotonic_ns()}")
    with tf.io.TFRecordWriter(str(scratch)) as writer:
        for record in records:
            writer.write(record.SerializeToString())
    scratch.replace(path)
    return path
