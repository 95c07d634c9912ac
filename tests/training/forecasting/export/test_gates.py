"""The signature of gates, compared with the equations of the cell in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training.forecasting.export.answering import (
    DEVIATION,
    MEAN,
    RAW,
    STREAMS,
    forecaster_with,
)


@pytest.mark.parametrize("options", [{}, {"architecture": "one_shot"}, STREAMS])
def test_gates_follow_the_equations_of_the_cell(options):
    forecaster = forecaster_with(**options)
    shown = forecaster.signatures["gates"](history=tf.constant(RAW))
    z, r, h = (shown[name].numpy() for name in ("update_gate", "reset_gate", "state"))
    count = 3 if not options else 12
    assert z.shape == r.shape == h.shape == (4, count, 2, 6)
    np.testing.assert_array_equal(shown["end"], [range(12) if options else [3, 7, 11]] * 4)
    cell = [w for w in forecaster.model.weights if "gru_cell" in w.path]
    kernel, recurrent, bias = (w.numpy().astype(np.float64) for w in cell)
    standardised = (RAW - MEAN) / DEVIATION
    for row, (place, channel) in ((1, (0, 2)), (3, (1, 0))):
        x = standardised[row, :, channel]
        if options == STREAMS:
            inputs = np.diff(x, prepend=x[0])[:, None]
        elif options:
            inputs = (x - x[-1])[:, None]
        else:
            dense, offset = forecaster.model.get_layer("embedding").get_weights()
            inputs = np.maximum((x - x[-1]).reshape(3, 4) @ dense + offset, 0)
        state = np.zeros(6)
        for t, value in enumerate(inputs):
            z_a, r_a, g_x = np.split(value @ kernel + bias[0], 3)
            z_h, r_h, g_h = np.split(state @ recurrent + bias[1], 3)
            update, reset = (1 / (1 + np.exp(-a)) for a in (z_a + z_h, r_a + r_h))
            state = update * state + (1 - update) * np.tanh(g_x + reset * g_h)
            np.testing.assert_allclose(z[row, t, place], update, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(r[row, t, place], reset, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(h[row, t, place], state, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_gates_of_a_stack_are_those_of_its_top_layer():
    forecaster = forecaster_with(architecture="one_shot", layers=2)
    states = keras.Model(forecaster.model.input, forecaster.model.get_layer("gru").output)
    standardised = ((RAW - MEAN) / DEVIATION).astype(np.float32)
    shown = forecaster.signatures["gates"](history=tf.constant(RAW))
    last = states(standardised).numpy().reshape(4, 2, 6)
    np.testing.assert_allclose(shown["state"][:, -1], last, rtol=1e-4, atol=1e-5)


def test_gates_of_a_stream_show_the_forecast_after_each_tick():
    forecaster = forecaster_with(**STREAMS)
    shown = forecaster.signatures["gates"](history=tf.constant(RAW))["forecast"].numpy()
    steps = np.stack([step["forecast"] for step in forecaster.stream(RAW)], axis=1)
    np.testing.assert_allclose(shown, steps, rtol=1e-6)


def test_gates_show_the_values_read_filled():
    holed = np.concatenate([RAW[:, :2], RAW], axis=1)
    holed[0, 5:8, 2] = np.nan
    shown = forecaster_with().signatures["gates"](history=tf.constant(holed))
    expected = holed[:, 2:, [2, 0]]
    expected[0, 3:6, 0] = holed[0, 4, 2]
    np.testing.assert_allclose(shown["values"], expected, rtol=1e-5)
    np.testing.assert_array_equal(shown["end"][0], [5, 9, 13])
