"""The readers of foreign bytes, as targets of the fuzzer and of the replay of its corpus.

A target reads bytes as one of them would and returns. Any exception is a finding: what a reader
documents as its refusal, the target has caught. Nothing here needs TensorFlow.
"""

import contextlib
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas  # noqa: F401  some readers import it late, which would count as their time
from google.protobuf.message import DecodeError

from gru_serving.codecs.json_example import parse_examples
from gru_serving.codecs.json_inputs import decode_inputs as decode_json
from gru_serving.codecs.json_inputs import signature_name
from gru_serving.codecs.json_predict import (
    decode_error,
    decode_outputs,
    encode_error,
    encode_request,
)
from gru_serving.codecs.large_request import measure
from gru_serving.codecs.rapidjson.parser import parse
from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.codecs.tensor_proto import (
    decode_input,
    decode_inputs,
    decode_tensor,
    encode_tensor,
)
from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.config.files import read_model_config, read_text_proto
from gru_serving.config.model_config_edit import read_config, write_config
from gru_serving.errors import ServingError, Unknown
from gru_serving.protos.batching_parameters_pb2 import BatchingParameters
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.monitoring_config_pb2 import MonitoringConfig
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.ssl_config_pb2 import SSLConfig
from gru_training.data.label_cells import LabelCells
from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.data.text_files import read_text_file
from gru_training.data.time_options import TimeOptions
from gru_training.errors import DataError, RunDirectoryError
from gru_training.forecasting.run import ForecastingRun
from gru_training.language.run import LanguageRun
from gru_training.runs.directory import MANIFEST, RunDirectory
from gru_training.sentiment.run import SentimentRun
from gru_training.tables.file_form import read_text
from gru_training.tables.rows import read_rows, read_stream

FLOAT, INT64, STRING, BOOL = 1, 9, 7, 10
SIGNATURES = [
    Signature(infos, infos)
    for infos in (
        *({"x": TensorInfo("x:0", dtype, None)} for dtype in (FLOAT, INT64, STRING, BOOL)),
        {"x": TensorInfo("x:0", FLOAT, None), "b": TensorInfo("b:0", STRING, None)},
    )
]
BUDGET = 64 << 20
"""Bytes that a gRPC request may take."""


def attempt(refusal, call, *args, **options):
    """Call a reader; None if it refuses as it documents."""
    try:
        return call(*args, **options)
    except refusal as error:
        str(error).encode("utf-8", "backslashreplace")
        return None


def read_json_body(data):
    """The body of a REST request or answer: decoded arrays survive the way to a server and back."""
    decode_error(400, data)
    attempt(ServingError, parse_examples, data)
    for signature in SIGNATURES:
        attempt(Unknown, decode_outputs, data, signature)
    try:
        document = parse(data)
    except ServingError as error:
        encode_error(error)
        return
    attempt(ServingError, signature_name, document)
    for signature in SIGNATURES:
        try:
            arrays, _ = decode_json(document, signature)
        except ServingError as error:
            encode_error(error)
            continue
        again, _ = decode_json(parse(encode_request(arrays, signature)), signature)
        require_equal(arrays, again)


def read_tensors(data):
    """A gRPC request: measured before it is parsed, or not, it means the same."""
    with contextlib.suppress(DecodeError):
        attempt(ServingError, decode_input, ClassificationRequest.FromString(data).input)
    try:
        plain = PredictRequest.FromString(data)
    except DecodeError:
        plain = None
    arrays = None if plain is None else attempt(ServingError, decode_inputs, plain)
    for array in (arrays or {}).values():
        if array.size < 1 << 16:
            require_equal({"": array}, {"": decode_tensor(encode_tensor(array))})
    measured = attempt(ServingError, measure, PredictRequest, data, BUDGET)
    if plain is None or measured is None:
        return
    request = PredictRequest.FromString(measured.rest)
    again = attempt(ServingError, decode_inputs, request, measured.lists)
    assert (arrays is None) == (again is None)
    require_equal(arrays or {}, again or {})


def require_equal(arrays, others):
    """Assert that arrays by name are the same, NaN included."""
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.dtype == others[name].dtype
        assert array.shape == others[name].shape
        # NaN differs from itself, and some types have no other test for it.
        same = array == others[name]
        assert np.all(same | ((array != array) & (others[name] != others[name])))


def read_text_protos(data):
    """The text-proto files of a server; a model config file survives being rewritten."""
    with folder() as place, contextlib.redirect_stderr(io.StringIO()):
        path = place / "models.config"
        path.write_bytes(data)
        for kind in (MonitoringConfig, SSLConfig):
            attempt(ServingError, read_text_proto, str(path), kind())
        batching = attempt(ServingError, read_text_proto, str(path), BatchingParameters())
        if batching is not None:
            attempt(ServingError, BatchingOptions.from_proto, batching)
            attempt(ServingError, PoolOptions.from_proto, batching)
        models = attempt(ServingError, read_model_config, str(path), may_log=True)
        if models:
            write_config(path, read_config(path, models[0].name))
            assert read_model_config(str(path), may_log=True) == models


def read_table(data, suffix):
    """A file of rows: as it is, as labelled texts, and as a series."""
    with folder() as place:
        path = place / f"table{suffix}"
        path.write_bytes(data)
        attempt(DataError, lambda: list(read_rows(path, bounded=True)))
        attempt(DataError, lambda: list(read_rows(path, misfit=lambda *_: None)))
        stream = io.BufferedReader(io.BytesIO(data))
        attempt(DataError, lambda: list(read_stream("table", stream)))
        attempt(DataError, read_text, path)
        for kind in (None, "class", "labels", "number"):
            attempt(DataError, read_text_file, path, labels=LabelCells(kind))
        flags = LabelCells("labels", columns=("a", "b"))
        problems = Problems(str(path), drop_bad=True)
        attempt(DataError, read_text_file, path, problems=problems, labels=flags)
        attempt(DataError, read_series, path)
        attempt(DataError, read_series, path, keep_rows=True)
        problems = Problems(str(path), drop_bad=True, sort_rows=True)
        options = TimeOptions(duplicates="mean")
        attempt(DataError, read_series, path, problems=problems, options=options)


def read_csv(data):
    """A file that is called a CSV file."""
    read_table(data, ".csv")


def read_json_lines(data):
    """A file that is called one of JSON lines."""
    read_table(data, ".jsonl")


FILE = re.compile(rb"^--- ([a-z_]+\.[a-z]+)\n", re.M)
"""Pattern of the line before each file of a run."""
SHARED = ("config", "metrics", "history")
RUNS = {
    "sentiment": (
        SentimentRun,
        (*SHARED, "classes", "temperature", "kind", "decision", "scale", "cleaned", "reading"),
    ),
    "forecasting": (
        ForecastingRun,
        (*SHARED, "series", "shape", "combination", "levels", "offsets"),
    ),
    "language": (LanguageRun, (*SHARED, "unit")),
}
"""Class and properties of the runs of each task, as far as they need no TensorFlow."""


def read_run(data):
    """A run directory, written as its files one after the other, each behind a line `--- NAME`.

    The manifest is made, unless there is one.
    """
    _, *parts = FILE.split(data)
    files = dict(zip(map(bytes.decode, parts[::2]), parts[1::2], strict=True))
    with folder() as place:
        for name, content in files.items():
            (place / name).write_bytes(content)
        if MANIFEST not in files:
            sizes = ", ".join(f'"{name}": {len(content)}' for name, content in files.items())
            (place / MANIFEST).write_text(f"{{{sizes}}}")
        opened = attempt(RunDirectoryError, RunDirectory.open, place)
        if opened is None:
            return
        attempt(RunDirectoryError, opened.column_of, "text")
        task = attempt(RunDirectoryError, lambda: opened.task)
        kind, names = RUNS.get(task, RUNS["sentiment"])
        run = kind.open(place)
        for name in names:
            attempt(RunDirectoryError, getattr, run, name)
        if isinstance(run, SentimentRun):
            attempt(RunDirectoryError, lambda: list(run.test_predictions()))
            attempt(RunDirectoryError, run.baseline_predictions)
        if isinstance(run, ForecastingRun):
            attempt(RunDirectoryError, run.test_errors)
            attempt(RunDirectoryError, run.test_windows, 3)


@contextlib.contextmanager
def folder():
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        yield Path(name)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "json": read_json_body,
    "tensors": read_tensors,
    "text_protos": read_text_protos,
    "csv": read_csv,
    "json_lines": read_json_lines,
    "runs": read_run,
}
