"""The graphs of ONNX of a forecaster, beside the TensorFlow functions that they are to equal."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from gru_serving.engine.onnx.steps import Steps
from gru_serving.errors import InvalidArgument
from gru_training.forecasting.config import ForecastShape
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.export.onnx import ForecastingGraphs
from gru_training.forecasting.export.signatures import ForecastingSignatures
from gru_training.forecasting.intervals import LEVELS
from gru_training.forecasting.layers import SegmentGRU
from gru_training.forecasting.network import build_forecaster
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from tests.training.forecasting.export.answering import (
    COLUMNS,
    DEVIATION,
    KINDS,
    MEAN,
    OFFSETS,
    SHAPE,
    STREAMS,
    forecaster_with,
)

MORE = [
    {"architecture": "one_shot", "normalisation": "reversible", "channel_independent": False},
    {"architecture": "seq2seq", "normalisation": "difference", "loss": "quantile"},
    {"normalisation": "none", "channel_independent": False, "linear_skip": True},
    {**STREAMS, "normalisation": "none", "channel_independent": False, "loss": "quantile"},
    {**STREAMS, "layers": 3},
]


def written(forecaster, panel=False, one_series=None):
    return ForecastingGraphs(
        forecaster.model,
        (forecaster.model, SHAPE),
        forecaster.config,
        SHAPE,
        forecaster.preprocessor,
        COLUMNS,
        LEVELS,
        OFFSETS,
        panel,
        one_series,
    ).by_name()


def compare(forecaster, native, name, **inputs):
    """The answers of the graph and of the TensorFlow function, which must be one."""
    signature = native.signatures[name]
    content = native.graphs[signature.graph].SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = {one.name: inputs[one.name] for one in session.get_inputs()}
    outputs = dict(
        zip(
            (one.name for one in session.get_outputs()),
            session.run(None, given),
            strict=True,
        )
    )
    wanted = forecaster.signatures[name](**{k: tf.constant(v) for k, v in inputs.items()})
    assert wanted.keys() == signature.outputs.keys()
    for alias, values in wanted.items():
        got = outputs[signature.outputs[alias]]
        assert got.dtype == values.numpy().dtype, alias
        scale = max(1, float(np.nanmax(np.abs(values.numpy()))))
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-5 * scale, err_msg=alias)
    return {alias: outputs[name] for alias, name in signature.outputs.items()}


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", KINDS + MORE)
def test_every_signature_is_a_graph_that_answers_alike(options):
    """On 1,000 windows with gaps, some of them at the edges."""
    forecaster = forecaster_with(**options)
    native = written(forecaster)
    assert native.left == {}
    assert native.signatures.keys() == forecaster.signatures.keys()
    rng = np.random.default_rng(8)
    windows = (MEAN + DEVIATION * rng.normal(size=(1000, 15, 3))).astype(np.float32)
    windows[rng.random(windows.shape) < rng.choice([0, 0.1, 0.6], (1000, 1, 1))] = np.nan
    last = windows[:, -SHAPE.lookback :]
    empty = np.isnan(last).all(axis=1, keepdims=True)  # refused before a graph runs
    last[..., -1:, :] = np.where(empty, MEAN, last[..., -1:, :])
    compare(forecaster, native, "serving_default", history=windows)
    compare(forecaster, native, "serving_default", history=np.nan_to_num(windows[:3]))
    if "gates" in native.signatures:
        compare(forecaster, native, "gates", history=windows[:20])
    if "step" in native.signatures:
        state = np.zeros((1000, forecaster.module.state_size), np.float32)
        for t in range(4):
            answer = compare(forecaster, native, "step", value=windows[:, t], state=state)
            state = answer["state"]
        long = np.tile(last, (1, 4, 1))
        long[:, 0] = MEAN  # a column without any value is refused
        for length in (1, 2, 40):
            compare(forecaster, native, "serving_default", history=long[:, :length])


def test_a_layer_without_an_equivalent_is_named(monkeypatch):
    from gru_training.forecasting.export import onnx as module

    known = {kind: write for kind, write in module._WRITERS.items() if kind is not SegmentGRU}
    monkeypatch.setattr(module, "_WRITERS", known)
    native = written(forecaster_with())
    assert "serving_default" not in native.signatures
    assert "cannot be written as ONNX" in native.left["serving_default"]
    assert native.left["by_name"] == native.left["serving_default"]
    assert "columns" in native.signatures  # which reads no graph


class Variant:
    """Another preprocessor, or another form, of a forecaster that a test has already."""

    def __init__(self, forecaster, preprocessor=None, panel=False, one_series=None):
        self.config, self.model = forecaster.config, forecaster.model
        self.preprocessor = preprocessor or forecaster.preprocessor
        parts = (self.model, (self.model, SHAPE), self.config, SHAPE, self.preprocessor)
        self.module = ForecastingSignatures(*parts, COLUMNS, LEVELS, OFFSETS, panel, one_series)
        self.signatures = self.module.concrete()


def windows_with_gaps(rows=200):
    rng = np.random.default_rng(9)
    windows = (MEAN + DEVIATION * rng.normal(size=(rows, 15, 3))).astype(np.float32)
    windows[rng.random(windows.shape) < 0.2] = np.nan
    windows[:, -1] = MEAN
    return windows


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.0, 0.37, 1.0])
@pytest.mark.parametrize("options", [{}, {"normalisation": "none"}, STREAMS])
def test_powers_of_columns(options, exponent):
    """Small values, zeros and negative ones, which count as zero, among those in use."""
    rows = windows_with_gaps().reshape(-1, 3).astype(np.float64)
    transformed = np.array([True, False, True])
    preprocessor = SeriesPreprocessor.fit(rows, SHAPE.targets, transformed, exponent)
    forecaster = Variant(forecaster_with(**options), preprocessor)
    native = written(forecaster)
    windows = windows_with_gaps()
    windows[:20, :, 0] *= 1e-6
    windows[20:40, 3:, 0] = 0
    windows[40:60, ::2, 2] *= -1
    compare(forecaster, native, "serving_default", history=windows)
    compare(forecaster, native, "gates", history=windows[:20])
    if "step" in native.signatures:
        state = np.zeros((200, forecaster.module.state_size), np.float32)
        for t in range(3):
            answer = compare(forecaster, native, "step", value=windows[:, t], state=state)
            state = answer["state"]


def test_series_that_have_ended():
    forecaster = Variant(forecaster_with(), panel=True)
    native = written(forecaster, panel=True)
    windows = windows_with_gaps(30)
    windows[:10, -12:, 2] = np.nan
    windows[10:12, :, :] = np.nan
    answer = compare(forecaster, native, "serving_default", history=windows)
    assert np.isnan(answer["forecast"][:10, :, 0]).all()
    assert not np.isnan(answer["forecast"][:10, :, 1]).any()
    assert np.isnan(answer["forecast"][10:12]).all()
    assert all(step["do"] != "require_values" for step in native.signatures["gates"].steps)


@pytest.mark.parametrize("exponent", [None, 0.0, 0.6])
def test_one_series(exponent):
    forecaster = forecaster_with()
    single = ForecastShape(SHAPE.lookback, SHAPE.horizon, 1, (0,))
    model = build_forecaster(forecaster.config, single, LEVELS)
    one = OneSeries(model, exponent, LEVELS, OFFSETS)
    variant = Variant(forecaster, one_series=one)
    native = written(variant, one_series=one)
    rng = np.random.default_rng(5)
    histories = (800 + 40 * rng.normal(size=(60, 30))).astype(np.float32)
    histories[rng.random(histories.shape) < 0.3] = np.nan
    histories[:4] = 7  # that never varies
    histories[4, :-1] = np.nan
    histories[5:10] = histories[5:10] / 1e5 - 0.004
    for length in (30, 12, 3):
        read = histories[:, -length:]
        compare(variant, native, "one_series", history=read[~np.isnan(read).all(axis=1)])


def answered(native, name, **inputs):
    """What a server makes of a request before any graph runs."""
    values = dict(inputs)
    for step in Steps(None).compile(native.signatures[name].steps):
        step(values)
    return values


def names(*rows):
    array = np.empty((len(rows), len(rows[0])), object)
    array[:] = [[name.encode() for name in row] for row in rows]
    return array


def test_columns_by_name():
    forecaster = forecaster_with(architecture="seq2seq", channel_independent=False)
    native = written(forecaster)
    rows = names(
        ("wind", "price", "other", "load"), ("load", "other", "wind", "price"), ("", "x", "ö", "y")
    )
    wanted = forecaster.signatures["columns"](names=tf.constant(rows.tolist()))
    got = answered(native, "columns", names=rows)
    for alias, value in wanted.items():
        assert got[alias].dtype == value.numpy().dtype
        np.testing.assert_array_equal(got[alias], value, err_msg=alias)
    windows = windows_with_gaps(2)
    theirs = np.full((2, 15, 4), np.nan, np.float32)
    for row, columns in enumerate(rows[:2].tolist()):
        for place, name in enumerate(COLUMNS):
            theirs[row, :, columns.index(name.encode())] = windows[row, :, place]
    ordered = answered(native, "by_name", history=theirs, columns=rows[:2])
    np.testing.assert_array_equal(ordered["history"], windows)
    wanted = forecaster.signatures["by_name"](
        history=tf.constant(theirs), columns=tf.constant(rows[:2].tolist())
    )
    straight = compare(forecaster, native, "serving_default", history=windows)
    for alias, value in wanted.items():
        np.testing.assert_allclose(straight[alias], value, rtol=1e-5)


def test_columns_that_are_not_read_may_be_missing():
    forecaster = forecaster_with()  # each column by itself: wind is not read
    native = written(forecaster)
    ordered = answered(
        native, "by_name", history=np.ones((1, 12, 2), np.float32), columns=names(("price", "load"))
    )
    assert np.isnan(ordered["history"][..., 1]).all()
    assert (ordered["history"][..., [0, 2]] == 1).all()


@pytest.mark.parametrize(
    ("history", "columns"),
    [
        ((1, 12, 2), (("load", "wind"),)),  # price is missing
        ((2, 12, 3), (("price", "load", "wind"), ("price", "a", "b"))),
        ((1, 12, 4), (("load", "wind", "price", "load"),)),
        ((1, 12, 3), (("load", "price"),)),
        ((1, 2, 2), (("load", "price"),)),  # too few steps
        ((1, 12, 0), ((),)),
    ],
)
def test_refusals_by_name_have_tensorflows_words(history, columns):
    forecaster = forecaster_with()
    native = written(forecaster)
    given = np.ones(history, np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError) as theirs:
        forecaster.module.by_name(tf.constant(given), tf.constant(names(*columns).tolist()))
    with pytest.raises(InvalidArgument) as ours:
        answered(native, "by_name", history=given, columns=names(*columns))
    if history != (1, 12, 0):  # TensorFlow's arg-max refuses no names at all in its own words
        said = str(ours.value).removeprefix("assertion failed: [").removesuffix("]")
        assert said in str(theirs.value)
