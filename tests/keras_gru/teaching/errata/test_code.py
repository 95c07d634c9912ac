"""Errata about code, sources, and formulas of gru_architecture and rnn_lstm_gru_notes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, initializers
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example
from tests import oracle
from tests.differences import derivative
from tests.keras_gru.teaching.errata.confirmation import confirms, random_gru


@confirms("AR-6")
def test_keras_and_pytorch_keep_as_cho_et_al_and_the_text_replaces(rng):
    """Equation (7) of Cho et al. keeps with z, as keras.layers.GRU does; (5) of Chung does not."""
    kernel, recurrent, bias = random_gru(rng)
    x, h = rng.normal(size=(1, 2)), rng.normal(size=3)
    layer = keras.layers.GRU(3, reset_after=False, dtype="float64")
    layer.build((1, 1, 2))
    layer.set_weights([kernel, recurrent, bias])
    by_keras = layer(x[None], initial_state=tf.constant(h[None]))[0]
    _, cache = oracle.forward(x, h, kernel, recurrent, bias, reset_after=False)
    _, z, _, g, _ = cache[0]
    cho, chung = z * h + (1 - z) * g, (1 - z) * h + z * g
    np.testing.assert_allclose(by_keras, cho, atol=1e-12)
    assert np.max(np.abs(by_keras - chung)) > 0.01


@confirms("AR-7")
def test_an_open_update_gate_of_the_text_closes_the_direct_path(rng):
    kernel, recurrent, bias = random_gru(rng)
    for b, expected in ((40.0, 0.0), (-40.0, 1.0)):
        bias[:3] = b
        x, h = 0.1 * rng.normal(size=(1, 2)), 0.1 * rng.normal(size=3)
        _, cache = oracle.forward(
            x, h, kernel, recurrent, bias, reset_after=False, update_gate="replace"
        )
        np.testing.assert_allclose(1 - cache[0][1], expected, atol=1e-12)


def lstm(rng):
    """One step from (h, c): functions of the state, and blocks i, f, g, o."""
    U, x_part = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3))

    def step(h, c):
        i, f, o = (oracle.sigmoid(x_part[k] + h @ U[k]) for k in (0, 1, 3))
        c = f * c + i * np.tanh(x_part[2] + h @ U[2])
        return o * np.tanh(c), c

    return step, lambda h: oracle.sigmoid(x_part[1] + h @ U[1])


@confirms("AR-8")
def test_the_cell_of_an_lstm_reaches_the_next_one_through_the_output_too(rng):
    step, forget = lstm(rng)
    before, c = rng.uniform(0.2, 0.9, 3), rng.normal(size=3)

    def next_cell(c):
        return step(before * np.tanh(c), c)[1]  # h = o ⊙ tanh(c)

    total = derivative(next_cell, c)
    explicit = np.diag(forget(before * np.tanh(c)))
    held = derivative(lambda c: step(before * np.tanh(np.array([0.3, -0.2, 0.5])), c)[1], c)
    np.testing.assert_allclose(held, np.diag(np.diag(held)), atol=1e-10)
    assert np.max(np.abs(total - explicit)) > 0.01


@confirms("AR-9")
def test_a_gradient_of_the_output_reaches_the_cell():
    found = trace(load_example("de_to_p").network("lstm"))
    last = found.steps[-1]
    np.testing.assert_array_equal(last["dc_future"], np.zeros(2))
    expected = last["dh_new"] * last["o"] * (1 - np.tanh(last["c_new"]) ** 2)
    np.testing.assert_allclose(last["dc_new"], expected, atol=1e-15)
    assert np.abs(expected).min() > 0.1


@confirms("AR-10")
def test_the_last_state_after_padding_depends_on_the_neighbours():
    texts = np.array([[3, 5, 0, 0], [3, 5, 4, 2]])
    answers = {}
    for masked in (False, True):
        keras.utils.set_random_seed(1)
        embedding = keras.layers.Embedding(6, 4, mask_zero=masked)
        if not masked:  # as padding_idx does: the row of the padding is zero
            embedding.build((None, 4))
            embedding.set_weights([embedding.get_weights()[0] * (np.arange(6) > 0)[:, None]])
        layer = GRU(5)
        padded, alone = texts[:1], texts[:1, :2]
        long, short = (layer(embedding(rows), mask=embedding.compute_mask(rows)) for rows in
                       (padded, alone))  # fmt: skip
        answers[masked] = np.max(np.abs(long - short))
    assert answers[False] > 1e-3
    assert answers[True] < 1e-6


@confirms("AR-11")
def test_a_reset_bias_filled_into_both_biases_counts_twice():
    layer = GRU(4, reset_after=True, return_gates=True)
    layer.build((None, None, 3))
    bias = layer.cell.bias.numpy()
    bias[:, 4:8] = 1.0  # bias_ih and bias_hh of nn.GRU are the two rows here
    layer.cell.bias.assign(bias)
    x = np.zeros((1, 1, 3), "float32")
    assert float(layer(x)[2][0, 0, 0]) == pytest.approx(oracle.sigmoid(2.0), abs=1e-6)
    ours = GRU(4, return_gates=True, **initializers.recommended(reset_bias=1.0))
    assert float(ours(x)[2][0, 0, 0]) == pytest.approx(oracle.sigmoid(1.0), abs=1e-6)


@confirms("AR-12")
def test_the_update_gate_remembers_and_the_reset_gate_does_not(rng):
    kernel, recurrent = 0.3 * rng.normal(size=(2, 9)), 0.3 * rng.normal(size=(3, 9))
    left = {}
    for name, block in (("none", None), ("reset", slice(3, 6)), ("update", slice(0, 3))):
        bias = np.zeros(9)
        if block is not None:
            bias[block] = 5.0
        ends = [
            oracle.forward(np.zeros((30, 2)), h, kernel, recurrent, bias, reset_after=False)[0][-1]
            for h in (np.full(3, 0.5), np.full(3, -0.5))
        ]
        left[name] = np.max(np.abs(ends[0] - ends[1]))
    assert left["none"] < 0.01
    assert left["reset"] < 0.05
    assert left["update"] > 0.7


@confirms("AR-13")
def test_xavier_of_the_stack_is_narrower_than_of_a_gate():
    d, n = 100, 256
    stacked, alone = np.sqrt(6 / (d + 3 * n)), np.sqrt(6 / (d + n))
    assert stacked == pytest.approx(0.083, abs=5e-4)
    assert alone == pytest.approx(0.130, abs=5e-4)
    glorot = keras.initializers.GlorotUniform(seed=1)
    assert np.abs(glorot((d, 3 * n))).max() == pytest.approx(stacked, rel=1e-3)
    per_gate = initializers.PerGate("glorot_uniform", seed=1)((d, 3 * n))
    assert np.abs(per_gate).max() == pytest.approx(alone, rel=1e-3)


@confirms("AR-14")
def test_a_gru_with_two_biases_has_more_parameters():
    counts = []
    for reset_after in (False, True):
        layer = keras.layers.GRU(256, reset_after=reset_after)
        layer.build((None, None, 100))
        counts.append(layer.count_params())
    assert counts == [274_176, 274_944]
    assert counts[1] == 3 * (256 * (100 + 256) + 2 * 256)


@confirms("RN-13")
def test_the_input_belongs_to_the_state_and_to_its_slope(rng):
    W, U, x, s = (rng.normal(size=shape) for shape in ((3, 3), (3, 2), 2, 3))
    layer = keras.layers.SimpleRNN(3, use_bias=False, dtype="float64")
    layer.build((1, 1, 2))
    layer.set_weights([U.T, W.T])
    with_input, without = np.tanh(W @ s + U @ x), np.tanh(W @ s)
    by_keras = layer(x[None, None], initial_state=tf.constant(s[None]))[0]
    np.testing.assert_allclose(by_keras, with_input, atol=1e-12)
    assert np.max(np.abs(with_input - without)) > 0.01
    by_weights = derivative(lambda W: np.tanh(W @ s + U @ x), W)
    slope = np.einsum("p,pq,r->pqr", 1 - with_input**2, np.eye(3), s)
    np.testing.assert_allclose(by_weights, slope, atol=1e-9)
    assert (
        np.max(np.abs(by_weights - np.einsum("p,pq,r->pqr", 1 - without**2, np.eye(3), s))) > 0.01
    )


@confirms("RN-14")
def test_the_first_step_gives_nothing_to_the_recurrent_weights():
    found = trace(load_example("de_to_p").network("deep"))
    np.testing.assert_array_equal(found.steps[0]["dU_h"], np.zeros((2, 2)))  # s_0 = 0
    assert np.abs(found.steps[0]["dW_h"]).max() > 0.01  # the input's weights do get theirs
    assert np.abs(found.steps[1]["dU_h"]).max() > 0.01


@confirms("RN-15")
def test_no_gradient_needs_a_second_derivative():
    """With the slope frozen, σ″ is zero everywhere; the gradient is the same."""
    network = load_example("de_to_p").network("deep")
    found = trace(network)
    U, b, W = network.recurrent_kernel["h"], network.bias["h"], network.kernel["h"]
    slopes = [step["slope_h"] for step in found.steps]
    shifts = [
        step["h_new"] - slope * step["a_h"] for step, slope in zip(found.steps, slopes, strict=True)
    ]
    variable = tf.Variable(U)
    with tf.GradientTape() as tape:
        h, loss = tf.zeros((1, 2), tf.float64), 0.0
        for t, x in enumerate(network.inputs):
            h = (x[None] @ W + h @ variable + b) * slopes[t] + shifts[t]  # linear in a
            logits = h @ network.output_kernel + network.output_bias
            loss += tf.nn.softmax_cross_entropy_with_logits(network.targets[t][None], logits)[0]
    np.testing.assert_allclose(tape.gradient(loss, variable), found.totals["dU_h"], atol=1e-12)


@confirms("RN-16")
def test_one_weight_moves_one_element_of_the_state(rng):
    W, s = rng.normal(size=(3, 3)), rng.normal(size=3)
    by_weight = derivative(lambda W: np.tanh(W @ s), W)  # (d, d, d): element, q, r
    assert by_weight.shape == (3, 3, 3)
    slope = 1 - np.tanh(W @ s) ** 2
    for q in range(3):
        for r in range(3):
            expected = np.zeros(3)
            expected[q] = slope[q] * s[r]
            np.testing.assert_allclose(by_weight[:, q, r], expected, atol=1e-9)


@confirms("RN-17")
def test_an_output_gate_of_zero_hides_and_does_not_forget():
    fields = load_example("de_to_p").content
    network = {**fields["network"], **fields["variants"]["lstm"]}
    network = {k: v for k, v in network.items() if k != "about"}
    closed = {**network["weights"], "o": {**network["weights"]["o"], "b": [-800.0, -800.0]}}
    found = trace(parse_network({**network, "weights": closed}))
    np.testing.assert_array_equal(found.steps[0]["h_new"], np.zeros(2))
    assert np.abs(found.steps[0]["c_new"]).min() > 0.1  # stored all the same
    kept = found.steps[1]["kept"]
    np.testing.assert_allclose(kept, found.steps[1]["f"] * found.steps[0]["c_new"], atol=1e-15)
    assert np.abs(kept).min() > 0.05
    shut = {**network["weights"], "f": {**network["weights"]["f"], "b": [-800.0, -800.0]}}
    forgotten = trace(parse_network({**network, "weights": shut}))
    np.testing.assert_array_equal(forgotten.steps[1]["kept"], np.zeros(2))


@confirms("RN-18")
def test_the_recurrent_matrix_cannot_read_the_input():
    layer = GRU(3, reset_after=False)
    layer.build((None, None, 2))
    kernel, recurrent, bias = layer.get_weights()
    assert recurrent[:, 6:].shape == (3, 3)  # W of the text
    assert kernel[:, 6:].shape == (2, 3)  # U, for the input
    assert bias[6:].shape == (3,)
    with pytest.raises(ValueError, match="mismatch"):
        np.ones(2) @ recurrent[:, 6:]


@confirms("RN-19")
def test_four_paths_lead_to_the_fourth_state():
    from keras_gru.teaching.trace import state_paths

    found = trace(load_example("de_to_p").network("deep"))
    split = state_paths(found, 3)
    assert len(split.paths) == 4
    fewer = sum(path.derivatives["U_h"] for path in split.paths if path.step >= 2)
    assert np.max(np.abs(fewer - split.total("U_h"))) > 0.01


@confirms("RN-20")
def test_a_vanilla_cell_overwrites_every_unit_and_a_gated_one_can_leave_some(rng):
    kernel, recurrent, bias = random_gru(rng)
    bias[0] = 800.0  # the update gate of one unit keeps it
    x, h = rng.normal(size=(20, 2)), np.array([0.3, -0.4, 0.5])
    states, _ = oracle.forward(x, h, kernel, recurrent, bias, reset_after=False)
    assert states[-1, 0] == 0.3
    assert np.all(np.abs(states[-1, 1:] - h[1:]) > 0.01)
    s = h
    for step in x:  # no parameter of a vanilla RNN does that for all inputs
        s = np.tanh(s @ recurrent[:, 6:] + step @ kernel[:, 6:] + bias[6:])
    assert np.all(np.abs(s - h) > 0.01)


@confirms("RN-21")
def test_a_vanilla_rnn_at_the_texts_own_bound_forgets():
    """γλ < 1: after 100 steps at most (γλ)^100 of a gradient is left, for every input."""
    slope, weight = 1.0, 0.9
    assert (slope * weight) ** 100 < 3e-5
    layer = keras.layers.SimpleRNN(1, dtype="float64")
    layer.build((1, 100, 1))
    layer.set_weights([np.ones((1, 1)), np.array([[weight]]), np.zeros(1)])
    h0 = tf.constant([[0.0]], tf.float64)
    x = tf.constant(np.random.default_rng(1).normal(size=(1, 100, 1)))
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(x, initial_state=h0)
    assert abs(tape.gradient(last, h0).numpy().item()) <= (slope * weight) ** 100
