"""The requests and answers in the files of a prediction log."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.codecs.signature import DEFAULT_SIGNATURE
from gru_serving.codecs.tensor_proto import decode_input, decode_inputs, decode_tensor
from gru_serving.codecs.tfrecord import CorruptRecordError, read_records
from gru_serving.drift.quantities import SCORES, Arrays
from gru_serving.errors import InvalidArgument, NotFound, ServingError
from gru_serving.preprocessing.examples import text_feature
from gru_serving.protos.prediction_log_pb2 import PredictionLog

_TEXT = "text"
"""Feature of the tf.Examples of Classify and Regress that holds the text."""
_SIGNATURES = (DEFAULT_SIGNATURE, "", "by_name", "classify", "regress")


@dataclass(frozen=True)
class Logged:
    """A request and its answer.

    Attributes:
        model: Name of the model.
        version: Number of the version that answered; 0 where the log does not say.
        seconds: Time of the request, in seconds since 1970.
        inputs: Input arrays by name.
        outputs: Output arrays by name; `label` and `scores` for Classify, `value` for Regress.
    """

    model: str
    version: int
    seconds: int
    inputs: Arrays
    outputs: Arrays


def log_files(path: Path) -> list[Path]:
    """List the files of a prediction log, the oldest first.

    Args:
        path: A file, or a directory with files whose names end in `.tfrecord`.

    Raises:
        NotFound: There is none.
    """
    if path.is_file():
        return [path]
    found = sorted(path.rglob("*.tfrecord"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    if not found:
        raise NotFound(
            f"{path}: expected a prediction log, or a directory with *.tfrecord files; `gru-serve "
            "serve --prediction_log_directory=DIR --prediction_log_sampling_rate=1` writes them"
        )
    return found


def read_log(file: Path) -> Iterator[Logged]:
    """Read the requests in one file whose signatures take whole texts or series.

    The last record of a file that a server is writing may be incomplete; it is left out.

    Args:
        file: TFRecords of PredictionLog.

    Raises:
        InvalidArgument: The file is of another kind, or damaged.
    """
    try:
        for record in read_records(file):
            logged = _logged(PredictionLog.FromString(record))
            if logged is not None:
                yield logged
    except CorruptRecordError as error:
        if not str(error).startswith("truncated"):
            raise InvalidArgument(f"{file}: expected a prediction log: {error}") from None
    except (DecodeError, ServingError) as error:
        raise InvalidArgument(f"{file}: expected a prediction log: {error}") from None


def _logged(log: PredictionLog) -> Logged | None:
    kind = log.WhichOneof("log_type")
    spec = log.log_metadata.model_spec
    if kind not in _ARRAYS or spec.signature_name not in _SIGNATURES:
        return None
    found = _ARRAYS[kind](getattr(log, kind))
    if found is None:
        return None
    return Logged(spec.name, spec.version.value, log.log_metadata.timestamp_secs, *found)


def _predicted(log: Any) -> tuple[Arrays, Arrays]:
    outputs = {name: decode_tensor(tensor) for name, tensor in log.response.outputs.items()}
    return decode_inputs(log.request), outputs


def _classified(log: Any) -> tuple[Arrays, Arrays] | None:
    rows = [sorted(row.classes, key=lambda one: -one.score)
            for row in log.response.result.classifications]  # fmt: skip
    if not rows or not rows[0]:
        return None
    labels = np.array([row[0].label.encode() for row in rows], object)
    scores = np.array([[one.score for one in row] for row in rows])
    return _texts(log), {"label": labels, SCORES: scores}


def _regressed(log: Any) -> tuple[Arrays, Arrays]:
    values = [row.value for row in log.response.result.regressions]
    return _texts(log), {"value": np.array(values)}


def _texts(log: Any) -> Arrays:
    return {_TEXT: text_feature(np.array(decode_input(log.request.input), object), _TEXT)}


_ARRAYS = {
    "predict_log": _predicted,
    "classify_log": _classified,
    "regress_log": _regressed,
}
