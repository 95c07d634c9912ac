"""Errata about cells: their formulas, what feeds their gates, and the bounds of their states."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.variants import MGUCell
from tests import oracle
from tests.keras_gru.teaching.errata.confirmation import confirms, random_gru


@confirms("AR-2")
def test_the_two_cells_of_the_text_are_two_functions(rng):
    kernel, recurrent, bias = random_gru(rng)
    x, h = rng.normal(size=(4, 2)), rng.normal(size=3)
    biases = np.stack([bias, np.zeros_like(bias)])
    before, _ = oracle.forward(x, h, kernel, recurrent, bias, reset_after=False)
    after, _ = oracle.forward(x, h, kernel, recurrent, biases, reset_after=True)
    assert np.max(np.abs(before - after)) > 0.01
    for expected, reset_after, b in ((before, False, bias), (after, True, biases)):
        layer = keras.layers.GRU(3, reset_after=reset_after, return_sequences=True, dtype="float64")
        layer.build((1, 4, 2))
        layer.set_weights([kernel, recurrent, b])
        states = layer(tf.constant(x[None]), initial_state=tf.constant(h[None]))
        np.testing.assert_allclose(states[0], expected, atol=1e-12)


@confirms("AR-3")
def test_the_built_in_gru_needs_the_update_gate_negated(rng):
    kernel, recurrent, bias = random_gru(rng)
    x, h = rng.normal(size=(4, 2)), rng.normal(size=3)
    text, _ = oracle.forward(
        x, h, kernel, recurrent, bias, reset_after=False, update_gate="replace"
    )
    weights = [kernel.copy(), recurrent.copy(), bias.copy()]
    layer = keras.layers.GRU(3, reset_after=False, return_sequences=True, dtype="float64")
    layer.build((1, 4, 2))
    layer.set_weights(weights)
    given = tf.constant(x[None]), tf.constant(h[None])
    assert np.max(np.abs(layer(given[0], initial_state=given[1])[0] - text)) > 0.01
    for weight in weights:
        weight[..., :3] *= -1
    layer.set_weights(weights)
    np.testing.assert_allclose(layer(given[0], initial_state=given[1])[0], text, atol=1e-12)
    np.testing.assert_allclose(
        oracle.forward(x, h, *weights, reset_after=False)[0], text, atol=1e-12
    )


@confirms("AR-5")
def test_blocks_of_an_orthogonal_stack_are_not_orthogonal(rng):
    stacks = {
        "keras": np.asarray(keras.initializers.Orthogonal(seed=1)((8, 24))).T,
        "numpy": np.linalg.qr(rng.normal(size=(24, 8)))[0],
    }
    for stack in stacks.values():
        np.testing.assert_allclose(np.linalg.svd(stack, compute_uv=False), 1, atol=1e-5)
        for block in np.split(stack, 3, axis=0):
            assert np.linalg.svd(block, compute_uv=False).min() < 0.9


@confirms("RN-1")
def test_a_sigmoid_candidate_never_makes_a_negative_state(rng):
    weights = dict(zip(("kernel", "recurrent_kernel", "bias"), random_gru(rng), strict=True))
    weights = {name: (3 * value).tolist() for name, value in weights.items()}
    inputs = rng.normal(size=(50, 2)).tolist()
    lowest = {}
    for activation in ("sigmoid", "tanh"):
        fields = {"update_gate": "replace", "reset_after": False, "activation": activation}
        network = parse_network({**fields, "weights": weights, "inputs": inputs})
        layer = GRU(3, activation, update_gate="replace", reset_after=False, return_sequences=True)
        layer.build((1, 50, 2))
        layer.set_weights(
            [np.array(weights[name]) for name in ("kernel", "recurrent_kernel", "bias")]
        )
        by_layer = np.min(layer(np.array(inputs, "float32")[None]))
        lowest[activation] = min(np.min(step["h_new"]) for step in trace(network).steps), by_layer
    assert min(lowest["sigmoid"]) >= 0
    assert max(lowest["tanh"]) < 0


@confirms("RN-2")
def test_a_closed_reset_gate_does_not_close_the_output(rng):
    kernel, recurrent, bias = random_gru(rng)
    bias[3:6] = -500.0
    x, h = rng.normal(size=(1, 2)), rng.normal(size=3)
    states, cache = oracle.forward(x, h, kernel, recurrent, bias, reset_after=False)
    assert np.all(cache[0][2] < 1e-200)
    assert np.all(np.abs(states) > 1e-3)
    layer = keras.layers.GRU(3, reset_after=False, dtype="float64")
    layer.build((1, 1, 2))
    layer.set_weights([kernel, recurrent, bias])
    np.testing.assert_allclose(
        layer(x[None], initial_state=tf.constant(h[None])), states, atol=1e-12
    )


@confirms("RN-3")
def test_the_lstm_candidate_reads_the_previous_output(rng):
    layer = keras.layers.LSTM(3, return_sequences=True, dtype="float64")
    layer.build((1, 4, 2))
    W, U, b = (rng.normal(size=weight.shape) for weight in layer.get_weights())
    layer.set_weights([W, U, b])
    cell = keras.layers.RNN(
        keras.layers.LSTMCell(3, dtype="float64"), return_sequences=True, dtype="float64"
    )
    cell.build((1, 4, 2))
    cell.set_weights([W, U, b])
    x = rng.normal(size=(4, 2))

    def states(candidate_reads="output", squash=np.tanh):
        h, c, found = np.zeros(3), np.zeros(3), []
        for step in x:
            past = h if candidate_reads == "output" else c
            a_i, a_f, _, a_o = np.split(step @ W + h @ U + b, 4)
            g = np.tanh((step @ W + past @ U + b)[6:9])
            c = oracle.sigmoid(a_f) * c + oracle.sigmoid(a_i) * g
            h = oracle.sigmoid(a_o) * squash(c)
            found.append(h)
        return np.array(found)

    for confirmation in (layer(x[None])[0], cell(x[None])[0]):
        np.testing.assert_allclose(states(), confirmation, atol=1e-12)
        assert np.max(np.abs(states("cell") - confirmation)) > 0.01
        assert np.max(np.abs(states(squash=oracle.sigmoid) - confirmation)) > 0.01


@confirms("RN-9")
def test_shapes_for_rows_do_not_multiply_columns():
    n, d, k = 4, 3, 2
    U, V = np.ones((n, d)), np.ones((d, k))
    x, s = np.ones(n), np.ones(d)
    for matrix, column in ((U, x), (V, s)):
        with pytest.raises(ValueError, match="mismatch"):
            matrix @ column
    assert (x @ U).shape == (d,)
    assert (s @ V).shape == (k,)
    assert keras.layers.SimpleRNN(d).compute_output_shape((1, 5, n)) == (1, d)


@confirms("RN-11")
def test_a_gru_has_fewer_parameters_because_it_has_three_blocks():
    counts = {}
    for layer in (keras.layers.LSTM(5), GRU(5, reset_after=False), keras.layers.SimpleRNN(5)):
        layer.build((1, 4, 3))
        counts[type(layer).__name__] = layer.count_params()
    block = 5 * (3 + 5 + 1)
    assert counts == {"LSTM": 4 * block, "GRU": 3 * block, "SimpleRNN": block}


@confirms("AR-4")
def test_the_minimal_gru_without_a_gate_in_its_candidate_is_another_cell(rng):
    x, h = rng.normal(size=(1, 4, 2)), rng.normal(size=(1, 3))
    kernel, recurrent, bias = (rng.normal(size=shape) for shape in ((2, 6), (3, 6), 6))

    def states(inside, keeps):
        """The text's cell keeps with its gate f = 1 − z, so the z block changes its sign."""
        s, found = h[0], []
        for step in x[0]:
            a = step @ kernel[:, :3] + s @ recurrent[:, :3] + bias[:3]
            f = oracle.sigmoid(-a if keeps else a)
            past = f * s if inside else s
            g = np.tanh(step @ kernel[:, 3:] + past @ recurrent[:, 3:] + bias[3:])
            s = f * s + (1 - f) * g if keeps else (1 - f) * s + f * g
            found.append(s)
        return np.array(found)

    of_the_text = states(inside=False, keeps=True)
    published = states(inside=True, keeps=False)
    for gate_candidate in (True, False):
        cell = MGUCell(3, gate_candidate=gate_candidate, dtype="float64")
        layer = keras.layers.RNN(cell, return_sequences=True, dtype="float64")
        layer.build(x.shape)
        layer.set_weights([kernel, recurrent, bias])
        by_layer = layer(x, initial_state=tf.constant(h))[0]
        if gate_candidate:
            np.testing.assert_allclose(published, by_layer, atol=1e-12)
            assert np.max(np.abs(of_the_text - by_layer)) > 0.01
        else:
            np.testing.assert_allclose(of_the_text, by_layer, atol=1e-12)
            assert np.max(np.abs(published - by_layer)) > 0.01


@confirms("EX-17", "RN-12", "EX-19")
def test_a_cell_without_its_loop_gives_the_same_after_every_history(rng):
    W, U, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    x, other = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    other[1] = x[1]
    layer = keras.layers.SimpleRNN(3, dtype="float64")
    layer.build((1, 2, 2))
    layer.set_weights([W, U, b])
    assert np.max(np.abs(layer(x[None]) - layer(other[None]))) > 0.01  # y_1 depends on x_0
    layer.set_weights([W, 0 * U, b])  # as drawn, and as s_i = σ(U x_i + b) has it
    np.testing.assert_array_equal(layer(x[None]), layer(other[None]))
    np.testing.assert_allclose(layer(x[None])[0], np.tanh(x[1] @ W + b), atol=1e-14)


@confirms("EX-20", "EX-23")
def test_two_blocks_are_gates_and_the_candidate_is_none(rng):
    kernel, recurrent, bias = random_gru(rng)
    x = rng.normal(size=(50, 2))
    _, cache = oracle.forward(x, np.zeros(3), kernel, recurrent, bias, reset_after=False)
    z, r, g = (np.array([step[k] for step in cache]) for k in (1, 2, 3))
    for gate in (z, r):
        assert gate.min() > 0
        assert gate.max() < 1
    assert -1 < g.min() < -0.1  # not in [0, 1]
    assert g.max() < 1
    layer = GRU(3, reset_after=False, return_sequences=True, return_gates=True, dtype="float64")
    layer.build((1, 50, 2))
    layer.set_weights([kernel, recurrent, bias])
    _, update, reset, candidate = layer(x[None])
    for ours, theirs in ((z, update), (r, reset), (g, candidate)):
        np.testing.assert_allclose(ours, theirs[0], atol=1e-12)
    slope = z * (1 - z)
    assert slope.min() > 0  # every gradient is let through


@confirms("EX-21")
def test_the_reset_gate_has_a_value_per_unit_and_not_per_word(rng):
    sentence = ["The", "cat", "which", "was", "very", "fluffy", "sat", "on", "the", "mat"]
    layer = GRU(5, return_gates=True)
    _, _, reset, _ = layer(rng.normal(size=(1, len(sentence), 3)).astype("float32"))
    assert reset[0, sentence.index("sat")].shape == (5,)
    assert len(sentence) == 10


@confirms("EX-22")
def test_states_stay_between_minus_one_and_one(rng):
    kernel, recurrent, bias = (20 * weight for weight in random_gru(rng))
    for reset_after in (False, True):
        b = np.stack([bias, bias]) if reset_after else bias
        for h0 in (np.zeros(3), rng.uniform(-1, 1, 3)):
            states, cache = oracle.forward(
                10 * rng.normal(size=(100, 2)), h0, kernel, recurrent, b, reset_after=reset_after
            )
            assert np.abs(states).max() <= 1
            assert max(np.abs(step[3]).max() for step in cache) <= 1  # the candidates
    for printed in (3.0, 5.0, 7.0):
        assert printed > 1
