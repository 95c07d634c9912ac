"""Warmup requests: written beside a version at export, run when it is loaded.

`<version>/assets.extra/tf_serving_warmup_requests` is a TFRecord file of PredictionLog messages.
Only the request counts, and of its model spec only the signature; the name is used for metrics.

The first run of a signature takes many times as long as later ones, mostly on one core. So the
first requests of all signatures run in parallel, and the others one by one afterwards.
"""

import contextlib
import itertools
import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.codecs.tensor_proto import decode_input, decode_inputs, encode_tensor
from gru_serving.codecs.tfrecord import CorruptRecordError, framed, read_records
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.engine.examples import Task, classify, infer, regress
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version
from gru_serving.errors import (
    Code,
    FailedPrecondition,
    InvalidArgument,
    ServingError,
    Unimplemented,
)
from gru_serving.protos.inference_pb2 import MultiInferenceRequest
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.prediction_log_pb2 import PredictionLog
from gru_serving.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

FILE = Path("assets.extra", "tf_serving_warmup_requests")
MAX_RECORDS = 1000
_MAX_CHARACTERS = 1024


def load_warm(directory: Path, iterations: int = 1, runtime: str = "tensorflow") -> Predictor:
    """Load a version and run its warmup requests, if it has any.

    Args:
        directory: Directory of the version.
        iterations: Times to run each request; 0 runs none.
        runtime: Name of the runtime: `auto`, `tensorflow` or `onnx`.

    Raises:
        ServingError: The version cannot be loaded, or a warmup request fails.
    """
    opened = open_version(directory, LoadOptions(runtime=runtime))
    predictor = Predictor(opened.session, runtime=opened.runtime)
    try:
        replay(predictor, directory, iterations, left=opened.left)
    except BaseException:
        predictor.close()
        raise
    return predictor


def replay(
    predictor: Predictor,
    directory: Path,
    iterations: int = 1,
    metrics: Metrics | None = None,
    left: Collection[str] = (),
) -> int:
    """Run the warmup requests of a version.

    Args:
        predictor: The loaded version.
        directory: Directory of the version.
        iterations: Times to run each request; 0 runs none.
        metrics: Metrics that count runs, records and time; records and time not when a request
            fails, as in TF Serving.
        left: Signatures whose records are not run.

    Returns:
        The number of records; 0 where there is no file.

    Raises:
        ServingError: The file is no TFRecord file or has too many records, a record is no
            PredictionLog or of a kind that cannot be run, or a request fails; the message is TF
            Serving's.
    """
    path = directory / FILE
    if iterations < 1 or not path.exists():
        return 0
    metrics = metrics or Metrics()
    started = time.perf_counter()
    primed = _prime(predictor, path, iterations, metrics, left)
    records = _records(path)
    count = 0
    while True:
        try:
            record = next(records, None)
        except ServingError as error:
            _note(metrics, directory, error.status, started, count)
            if error.code is not Code.DATA_LOSS:
                raise
            text = f"{error}. Please verify your warmup data is in TFRecord format."
            raise ServingError(text, Code.DATA_LOSS) from None
        if record is None:
            _note(metrics, directory, "OK", started, count)
            return count
        if count not in primed:
            _replay(predictor, path, _parsed(record, path), iterations, metrics, left)
        count += 1
        if count > MAX_RECORDS:
            raise InvalidArgument(
                f"Number of warmup records exceeds the maximum ({MAX_RECORDS}) at {path}"
            )


def _note(metrics: Metrics, directory: Path, status: str, started: float, count: int) -> None:
    seconds = time.perf_counter() - started
    metrics.model_warmup_latency.observe(seconds * 1e6, str(directory), status)
    metrics.model_warmup_records_read.add(str(directory), status, by=count)


def _prime(
    predictor: Predictor, path: Path, iterations: int, metrics: Metrics, left: Collection[str]
) -> frozenset[int]:
    """Run the first record of each signature, as many at once as there are cores.

    Records that cannot be read are left to the caller, which reads all of them in order.

    Returns:
        Positions of the records that were run.
    """
    first: dict[Any, tuple[int, PredictionLog]] = {}
    with contextlib.suppress(ServingError):
        for place, record in enumerate(itertools.islice(_records(path), MAX_RECORDS)):
            log = _parsed(record, path)
            first.setdefault(_signatures(log), (place, log))
    cores = schedulable_cpus()
    if cores == 1 or len(first) < 2:
        return frozenset()
    with ThreadPoolExecutor(cores, thread_name_prefix="warmup") as pool:
        runs = [
            pool.submit(_replay, predictor, path, log, iterations, metrics, left)
            for _, log in first.values()
        ]
        try:
            for run in runs:
                run.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return frozenset(place for place, _ in first.values())


def _signatures(log: PredictionLog) -> tuple[str | None, ...]:
    """Return the kind of a record and the signatures that it runs."""
    kind = log.WhichOneof("log_type")
    if kind == "multi_inference_log":
        tasks = log.multi_inference_log.request.tasks
        return kind, *(task.model_spec.signature_name for task in tasks)
    if kind in ("predict_log", "classify_log", "regress_log"):
        return kind, getattr(log, kind).request.model_spec.signature_name
    return (kind,)


def _parsed(record: bytes, path: Path) -> PredictionLog:
    try:
        return PredictionLog.FromString(record)
    except DecodeError:
        # A file may contain megabytes that would be useless in the log.
        text = record[:_MAX_CHARACTERS].decode("utf-8", "replace")
        raise InvalidArgument(f"Failed to parse warmup record: {text} from {path}") from None


def _replay(
    predictor: Predictor,
    path: Path,
    log: PredictionLog,
    iterations: int,
    metrics: Metrics,
    left: Collection[str],
) -> None:
    if any((name or DEFAULT_SIGNATURE) in left for name in _signatures(log)[1:]):
        return
    try:
        for _ in range(iterations):
            _run(predictor, log, metrics)
    except ServingError as error:
        # The text of the error is TF Serving's and says nothing of warmup.
        logger.error("A warmup request of %s fails: %s", path, error.status)
        raise


def _records(path: Path) -> Iterator[bytes]:
    try:
        yield from read_records(path)
    except CorruptRecordError as error:
        raise ServingError(str(error), Code.DATA_LOSS) from None
    except OSError as error:
        raise FailedPrecondition(f"{path}; {error.strerror}") from None


def _run(predictor: Predictor, log: PredictionLog, metrics: Metrics) -> None:
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        _predict(predictor, log.predict_log.request, metrics)
    elif kind == "classify_log":
        classification = log.classify_log.request
        spec, examples = classification.model_spec, decode_input(classification.input)
        with metrics.runtime(spec.name, "Classify"):
            classify(predictor, spec.signature_name, examples).run()
    elif kind == "regress_log":
        regression = log.regress_log.request
        spec, examples = regression.model_spec, decode_input(regression.input)
        with metrics.runtime(spec.name, "Regress"):
            regress(predictor, spec.signature_name, examples).run()
    elif kind == "multi_inference_log":
        _infer(predictor, log.multi_inference_log.request, metrics)
    elif kind is not None:  # TF Serving counts a record without a request as well.
        number = log.DESCRIPTOR.fields_by_name[kind].number
        raise Unimplemented(f"Unsupported log_type for warmup: {number}")


def _predict(predictor: Predictor, request: PredictRequest, metrics: Metrics) -> None:
    name = request.model_spec.signature_name
    predictor.check_inputs(predictor.find_signature(name), request.inputs.keys())
    inputs = decode_inputs(request)
    with metrics.runtime(request.model_spec.name, "Predict"):
        predictor.prepare(inputs, name, request.output_filter).run()


def _infer(predictor: Predictor, request: MultiInferenceRequest, metrics: Metrics) -> None:
    examples = decode_input(request.input)
    infer(predictor, Task.listed_in(request), examples).run()
    metrics.examples(request.tasks[0].model_spec.name, len(examples))


def predict_record(inputs: Mapping[str, np.ndarray], signature_name: str = "") -> PredictionLog:
    """Build a record that runs Predict with these inputs."""
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
        directory: Directory of the version.
        records: Records to write, at most 1000, as TF Serving loads no more.

    Returns:
        The file.

    Raises:
        ValueError: The records are too many.
    """
    if len(records) > MAX_RECORDS:
        raise ValueError(f"records: expected at most {MAX_RECORDS}; got {len(records)}")
    path = directory / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{time.monotonic_ns()}")
    with scratch.open("wb") as file:
        for record in records:
            file.write(framed(record.SerializeToString()))
    scratch.replace(path)
    return path
