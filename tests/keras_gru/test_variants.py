from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru.variants import CoupledGRUCell, MGUCell
from tests.differences import derivative

CELLS = {
    "mgu": (MGUCell, {}, lambda z: z),
    "minimal_gru": (MGUCell, {"gate_candidate": False}, np.ones_like),
    "coupled": (CoupledGRUCell, {}, lambda z: 1 - z),
    "mgu_keep": (MGUCell, {"update_gate": "keep"}, lambda z: 1 - z),
    "minimal_gru_keep": (
        MGUCell,
        {"update_gate": "keep", "gate_candidate": False},
        np.ones_like,
    ),
    "coupled_keep": (CoupledGRUCell, {"update_gate": "keep"}, lambda z: z),
}


def reference(x, h, kernel, recurrent_kernel, bias, reset, update_gate="replace"):
    """One sequence, one scalar at a time."""
    U, states = len(h), []
    for step in x:
        z, g = np.zeros(U), np.zeros(U)
        for u in range(U):
            a = sum(step[i] * kernel[i, u] for i in range(len(step))) + bias[u]
            z[u] = 1 / (1 + np.exp(-a - sum(h[i] * recurrent_kernel[i, u] for i in range(U))))
        r = reset(z)
        for u in range(U):
            a = sum(step[i] * kernel[i, U + u] for i in range(len(step))) + bias[U + u]
            g[u] = np.tanh(a + sum(r[i] * h[i] * recurrent_kernel[i, U + u] for i in range(U)))
        if update_gate == "replace":
            h = np.array([h[u] - z[u] * h[u] + z[u] * g[u] for u in range(U)])
        else:
            h = np.array([g[u] - z[u] * g[u] + z[u] * h[u] for u in range(U)])
        states.append(h)
    return np.array(states)


def build(name, T=4, D=2, U=3, **options):
    cell_class, arguments, reset = CELLS[name]
    rng = np.random.default_rng(3)
    layer = keras.layers.RNN(
        cell_class(U, dtype="float64", **arguments),
        return_sequences=True,
        dtype="float64",
        **options,
    )
    layer.build((None, T, D))
    weights = [rng.normal(size=weight.shape) for weight in layer.get_weights()]
    layer.set_weights(weights)
    states = partial(reference, reset=reset, update_gate=arguments.get("update_gate", "replace"))
    return layer, weights, rng.normal(size=(2, T, D)), rng.normal(size=(2, U)), states


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("T", [1, 4])
def test_states_equal_a_loop_over_scalars(name, T):
    layer, weights, x, h, expected = build(name, T)
    states = layer(tf.constant(x), initial_state=tf.constant(h))
    for row in range(2):
        np.testing.assert_allclose(states[row], expected(x[row], h[row], *weights), atol=1e-14)


@pytest.mark.parametrize("name", CELLS)
def test_gradients_equal_central_differences(name):
    layer, weights, x, h, expected = build(name)
    share = np.random.default_rng(5).normal(size=(2, 4, 3))
    arrays = [x, h, *weights]

    def loss(x, h, *weights):
        return sum(np.sum(share[b] * expected(x[b], h[b], *weights)) for b in range(2))

    inputs, initial = tf.constant(x), tf.constant(h)
    with tf.GradientTape() as tape:
        tape.watch([inputs, initial])
        total = tf.reduce_sum(share * layer(inputs, initial_state=initial))
    gradients = tape.gradient(total, [inputs, initial, *layer.trainable_weights])
    for i, gradient in enumerate(gradients):
        moved = partial(lambda i, value: loss(*arrays[:i], value, *arrays[i + 1 :]), i)
        np.testing.assert_allclose(gradient, derivative(moved, arrays[i], 1e-3), atol=1e-8)


@pytest.mark.parametrize("name", CELLS)
def test_a_model_survives_saving(name, tmp_path):
    cell_class, arguments, _ = CELLS[name]
    cell = cell_class(
        3, "relu", "sigmoid", bias_initializer="ones", use_bias=name != "coupled", **arguments
    )
    model = keras.Sequential([keras.Input((4, 2)), keras.layers.RNN(cell), keras.layers.Dense(1)])
    path = tmp_path / "model.keras"
    model.save(path)
    x = np.random.default_rng(1).normal(size=(5, 4, 2)).astype("float32")
    again = keras.models.load_model(path)
    np.testing.assert_array_equal(again(x), model(x))
    assert again.layers[0].cell.get_config() == cell.get_config()


@pytest.mark.parametrize("name", CELLS)
def test_masked_steps_keep_the_state(name):
    layer, weights, x, h, expected = build(name)
    mask = np.array([[True, False, True, True], [False, False, True, False]])
    states = layer(tf.constant(x), initial_state=tf.constant(h), mask=tf.constant(mask))
    for row in range(2):
        seen = expected(x[row][mask[row]], h[row], *weights)
        np.testing.assert_allclose(states[row, -1], seen[-1], atol=1e-14)


def test_unknown_convention_is_named():
    with pytest.raises(ValueError, match=r"`update_gate` must be one of .*Received: update_gate='"):
        MGUCell(4, update_gate="forget")


def test_two_thirds_of_the_parameters_of_a_gru():
    counts = []
    for cell in (MGUCell(5), CoupledGRUCell(5), keras.layers.GRUCell(5, reset_after=False)):
        cell.build((None, 3))
        counts.append(cell.count_params())
    assert counts[0] == counts[1] == counts[2] * 2 // 3


@pytest.mark.parametrize("units", [0, -1, 2.5, True, "3"])
@pytest.mark.parametrize("cell", [MGUCell, CoupledGRUCell])
def test_units_must_be_a_positive_integer(cell, units):
    with pytest.raises(ValueError, match=r"`units` must be a positive integer. Received: units="):
        cell(units)
    with pytest.raises(ValueError, match=r"last axis of the inputs .* must be known"):
        cell(2).build((None, None))
