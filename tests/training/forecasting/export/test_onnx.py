"""A forecaster without TensorFlow, beside the TensorFlow functions that it is to equal."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.checks import RequireValues
from gru_serving.preprocessing.description import FOLDER, Description
from gru_training.forecasting.config import ForecastShape
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.export.onnx import ForecastingGraphs
from gru_training.forecasting.export.signatures import ForecastingSignatures
from gru_training.forecasting.intervals import LEVELS
from gru_training.forecasting.layers import SegmentGRU
from gru_training.forecasting.network import build_forecaster
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.servable import written as write
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
    {"normalisation": "difference", "loss": "quantile"},
    {"normalisation": "none", "channel_independent": False, "linear_skip": True},
    {**STREAMS, "normalisation": "none", "channel_independent": False, "loss": "quantile"},
    {**STREAMS, "layers": 3},
]


def written(forecaster, one_series=None):
    shown = forecaster.model, SHAPE
    graphs = ForecastingGraphs(forecaster.model, shown, forecaster.config, SHAPE, one_series)
    return write(forecaster.module.described(), graphs)


def answered(native, name, outputs=None, **inputs):
    """What a server makes of a request, by the steps and the network of a signature."""
    signature = native.description.signatures[name]
    values = dict(inputs)
    for step in signature.before:
        step.numpy(values)
    if signature.network is not None:
        content = native.graphs[signature.network].SerializeToString()
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        given = {one.name: values[one.name] for one in session.get_inputs()}
        made = zip((one.name for one in session.get_outputs()), session.run(None, given))  # noqa: B905
        values.update(made)
    for step in signature.after:
        step.numpy(values)
    return {alias: values[value] for alias, value in signature.outputs.items()}


def compare(forecaster, native, name, **inputs):
    """Both answers, which must be one; the answer."""
    got = answered(native, name, **inputs)
    wanted = forecaster.signatures[name](**{k: tf.constant(v) for k, v in inputs.items()})
    assert wanted.keys() == got.keys()
    for alias, values in wanted.items():
        assert got[alias].dtype == values.numpy().dtype, alias
        scale = max(1, float(np.nanmax(np.abs(values.numpy()))))
        np.testing.assert_allclose(got[alias], values, rtol=0, atol=1e-5 * scale, err_msg=alias)
    return got


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", KINDS + MORE)
def test_every_signature_is_a_graph_that_answers_alike(options):
    """On 1,000 windows with gaps, some of them at the edges."""
    forecaster = forecaster_with(**options)
    native = written(forecaster)
    assert native.description.left == {}
    assert native.description.signatures.keys() == forecaster.signatures.keys()
    rng = np.random.default_rng(8)
    windows = (MEAN + DEVIATION * rng.normal(size=(1000, 15, 3))).astype(np.float32)
    windows[rng.random(windows.shape) < rng.choice([0, 0.1, 0.6], (1000, 1, 1))] = np.nan
    last = windows[:, -SHAPE.lookback :]
    empty = np.isnan(last).all(axis=1, keepdims=True)  # refused before a graph runs
    last[..., -1:, :] = np.where(empty, MEAN, last[..., -1:, :])
    compare(forecaster, native, "serving_default", history=windows)
    compare(forecaster, native, "serving_default", history=np.nan_to_num(windows[:3]))
    if "gates" in native.description.signatures:
        compare(forecaster, native, "gates", history=windows[:20])
    if "step" in native.description.signatures:
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
    assert "serving_default" not in native.description.signatures
    assert "cannot be written as ONNX" in native.description.left["serving_default"]
    assert native.description.left["by_name"] == native.description.left["serving_default"]
    assert "columns" in native.description.signatures  # which reads no graph


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
    if "step" in native.description.signatures:
        state = np.zeros((200, forecaster.module.state_size), np.float32)
        for t in range(3):
            answer = compare(forecaster, native, "step", value=windows[:, t], state=state)
            state = answer["state"]


def test_series_that_have_ended():
    forecaster = Variant(forecaster_with(), panel=True)
    native = written(forecaster)
    windows = windows_with_gaps(30)
    windows[:10, -12:, 2] = np.nan
    windows[10:12, :, :] = np.nan
    answer = compare(forecaster, native, "serving_default", history=windows)
    assert np.isnan(answer["forecast"][:10, :, 0]).all()
    assert not np.isnan(answer["forecast"][:10, :, 1]).any()
    assert np.isnan(answer["forecast"][10:12]).all()
    steps = native.description.signatures["gates"].steps
    assert not any(isinstance(step, RequireValues) for step in steps)


@pytest.mark.slow_cases
@pytest.mark.parametrize("exponent", [None, 0.0, 0.6])
def test_one_series(exponent):
    forecaster = forecaster_with()
    single = ForecastShape(SHAPE.lookback, SHAPE.horizon, 1, (0,))
    model = build_forecaster(forecaster.config, single, LEVELS)
    one = OneSeries(model, exponent)
    variant = Variant(forecaster, one_series=one)
    native = written(variant, one)
    rng = np.random.default_rng(5)
    histories = (800 + 40 * rng.normal(size=(60, 30))).astype(np.float32)
    histories[rng.random(histories.shape) < 0.3] = np.nan
    histories[:4] = 7  # that never varies
    histories[4, :-1] = np.nan
    histories[5:10] = histories[5:10] / 1e5 - 0.004
    for length in (30, 12, 3):
        read = histories[:, -length:]
        compare(variant, native, "one_series", history=read[~np.isnan(read).all(axis=1)])


def names(*rows):
    array = np.empty((len(rows), len(rows[0])), object)
    array[:] = [[name.encode() for name in row] for row in rows]
    return array


def test_columns_by_name():
    forecaster = forecaster_with(architecture="one_shot", channel_independent=False)
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
    wanted = forecaster.signatures["by_name"](
        history=tf.constant(theirs), columns=tf.constant(rows[:2].tolist())
    )
    straight = compare(forecaster, native, "serving_default", history=windows)
    for alias, value in wanted.items():
        np.testing.assert_array_equal(straight[alias], ordered[alias])
        np.testing.assert_allclose(straight[alias], value, rtol=1e-5)


def test_columns_that_are_not_read_may_be_missing():
    forecaster = forecaster_with()  # each column by itself: wind is not read
    native = written(forecaster)
    windows = windows_with_gaps(2)
    columns = names(("price", "load"), ("load", "price"))
    theirs = np.stack([windows[0][:, [2, 0]], windows[1][:, [0, 2]]])
    ordered = answered(native, "by_name", history=theirs, columns=columns)
    straight = answered(native, "serving_default", history=windows)
    np.testing.assert_array_equal(ordered["forecast"], straight["forecast"])


def test_a_description_goes_to_files_and_back(tmp_path):
    native = written(forecaster_with(**STREAMS))
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    native.description.write(folder)
    again = Description.read(tmp_path)
    for name, signature in native.description.signatures.items():
        found = again.signatures[name]
        assert [*found.steps] == [*signature.steps], name
        assert (found.network, found.outputs) == (signature.network, signature.outputs)


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
        forecaster.signatures["by_name"](
            history=tf.constant(given), columns=tf.constant(names(*columns).tolist())
        )
    with pytest.raises(InvalidArgument) as ours:
        answered(native, "by_name", history=given, columns=names(*columns))
    if history != (1, 12, 0):  # TensorFlow's arg-max refuses no names at all in its own words
        said = str(ours.value).removeprefix("assertion failed: [").removesuffix("]")
        assert said in str(theirs.value)
