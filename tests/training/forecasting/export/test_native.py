"""The graphs of ONNX of a forecaster, beside the TensorFlow functions that they are to equal."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

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
from training.forecasting.export.native import ForecastingNative
from training.forecasting.scores.conformal import LEVELS

MORE = [
    {"architecture": "one_shot", "normalisation": "reversible", "channel_independent": False},
    {"architecture": "seq2seq", "normalisation": "difference", "loss": "quantile"},
    {"normalisation": "none", "channel_independent": False, "linear_skip": True},
    {**STREAMS, "normalisation": "none", "channel_independent": False, "loss": "quantile"},
]


def written(forecaster):
    return ForecastingNative(
        forecaster.model,
        (forecaster.model, SHAPE),
        forecaster.config,
        SHAPE,
        forecaster.preprocessor,
        COLUMNS,
        LEVELS,
        OFFSETS,
    ).by_name()


def compare(forecaster, native, name, **inputs):
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


@pytest.mark.parametrize("options", KINDS + MORE)
def test_every_signature_is_a_graph_that_answers_alike(options):
    """On 1,000 windows with gaps, some of them at the edges."""
    forecaster = forecaster_with(**options)
    native = written(forecaster)
    left = {"by_name", "columns"}
    if forecaster.config.layers > 1:
        left |= {"gates", "step"} & forecaster.signatures.keys()
    assert native.left.keys() == left
    assert native.signatures.keys() == forecaster.signatures.keys() - left
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
    from training.forecasting.export import native as module

    monkeypatch.setattr(module, "_WRITERS", {})
    native = written(forecaster_with())
    assert "serving_default" not in native.signatures
    assert "cannot be written as ONNX" in native.left["serving_default"]
