"""Errata about formulas and readings, each confirmed by two independent calculations.

Errata about printed numbers are confirmed in test_worked_examples.py, by a tape and by central
differences.
"""

import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example, load_examples
from keras_gru.variants import MGUCell
from tests import oracle
from tests.keras_gru.plain_network import NUMPY, by_autodiff, forward, probe_shapes
from tests.keras_gru.teaching.errata import confirms, derivative, random_gru


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_every_erratum_is_confirmed_and_numbered():
    confirmed = set()
    for path in Path(__file__).parent.glob("test_errata*.py"):
        for identifiers in re.findall(r"@confirms\(([^)]*)\)", path.read_text("utf-8")):
            confirmed |= set(re.findall(r'"([^"]+)"', identifiers))
    found = []
    for example in load_examples():
        for erratum in example.errata:
            numeric = any(claim.get("erratum") == erratum["id"] for claim in example.claims)
            assert numeric or erratum["id"] in confirmed, erratum["id"]
            found.append(erratum["id"])
    assert len(set(found)) == len(found)
    assert confirmed <= set(found)


@confirms("EX-12")
def test_descent_moves_a_state_against_its_gradient():
    network = load_example("good_movie").network()
    gradient = trace(network).steps[1]["dh_new"]
    assert np.all(gradient[:2] < 0)
    assert gradient[2] > 0
    np.testing.assert_allclose(by_autodiff(network)[0][1]["dh_new"], gradient, atol=1e-12)
    probes = {key: np.zeros(shape) for key, shape in probe_shapes(network).items()}
    _, loss = forward(network, probes, NUMPY)
    for unit, direction in ((0, 1), (1, 1), (2, -1)):
        probes[1, "h_new"][:] = 0.0
        probes[1, "h_new"][0, unit] = direction * 0.01
        assert forward(network, probes, NUMPY)[1] < loss
        probes[1, "h_new"][0, unit] = -direction * 0.01
        assert forward(network, probes, NUMPY)[1] > loss


@confirms("EX-5", "EX-13")
def test_the_loss_rises_from_the_first_word_to_the_second():
    example = load_example("good_movie")
    network = example.network()
    by_trace = [float(step["loss"]) for step in trace(network).steps]
    by_tape = [float(step["loss"]) for step in by_autodiff(network)[0]]
    assert by_trace == pytest.approx(by_tape, abs=1e-14)
    assert by_trace == pytest.approx([0.6885, 0.7081], abs=5e-5)
    other = [
        float(step["loss"]) for step in trace(example.network("target_labelled_positive")).steps
    ]
    assert other == pytest.approx([0.698, 0.678], abs=5e-4)
    assert other == pytest.approx([-np.log(step["y"][1]) for step in by_autodiff(network)[0]])


@confirms("EX-14")
def test_the_transposed_output_matrix_has_a_row_per_unit():
    W_y = np.array(load_example("good_movie").content["network"]["output"]["W"])
    error = np.array([-0.507, 0.507])
    with pytest.raises(ValueError, match="mismatch"):
        W_y @ error
    np.testing.assert_allclose(W_y.T @ error, [-0.0507, -0.0507, 0.1521], atol=1e-12)
    by_tape = by_autodiff(load_example("good_movie").network())[0][1]["dh_output"]
    np.testing.assert_allclose(W_y.T @ error, by_tape, atol=5e-4)


@confirms("EX-15")
@pytest.mark.parametrize(("weight", "expected"), [(1.0, 0.75**100), (4 / 3, 1.0)])
def test_a_vanilla_rnn_decays_with_slope_times_weight(weight, expected):
    # A fixed point at tanh(a) = 0.5 holds the slope at 1 - 0.5² = 0.75 for all steps.
    bias = np.arctanh(0.5) - weight * 0.5
    layer = keras.layers.SimpleRNN(1, dtype="float64")
    layer.build((1, 100, 1))
    layer.set_weights([np.zeros((1, 1)), np.array([[weight]]), np.array([bias])])
    h0 = tf.constant([[0.5]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(tf.zeros((1, 100, 1), tf.float64), initial_state=h0)
    by_tape = tape.gradient(last, h0).numpy().item()
    h, by_product = 0.5, 1.0
    for _ in range(100):
        h = np.tanh(weight * h + bias)
        by_product *= weight * (1 - h**2)
    assert by_tape == pytest.approx(expected, rel=1e-6)
    assert by_product == pytest.approx(expected, rel=1e-6)


@confirms("AR-1")
def test_jacobian_of_a_step_has_a_term_for_the_update_gate(rng):
    kernel, recurrent, bias = random_gru(rng)
    x, h = rng.normal(size=(1, 2)), rng.normal(size=3)
    convention = {"reset_after": False, "update_gate": "replace"}
    _, cache = oracle.forward(x, h, kernel, recurrent, bias, **convention)
    _, z, _, g, _ = cache[0]

    def gate(h):
        return oracle.sigmoid(x[0] @ kernel[:, :3] + h @ recurrent[:, :3] + bias[:3])

    def candidate(h):
        return oracle.forward(x, h, kernel, recurrent, bias, **convention)[1][0][3]

    def state(h):
        return oracle.forward(x, h, kernel, recurrent, bias, **convention)[0][0]

    of_the_text = np.diag(1 - z) + z[:, None] * derivative(candidate, h)
    complete = of_the_text + (g - h)[:, None] * derivative(gate, h)
    by_differences = derivative(state, h)
    layer = GRU(3, update_gate="replace", reset_after=False, dtype="float64")
    layer.build((1, 1, 2))
    layer.set_weights([kernel, recurrent, bias])
    h0 = tf.constant(h[None])
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(tf.constant(x[None]), initial_state=h0)
    by_tape = tape.jacobian(last, h0).numpy()[0, :, 0, :]
    for confirmation in (by_differences, by_tape):
        np.testing.assert_allclose(complete, confirmation, atol=1e-9)
        assert np.max(np.abs(of_the_text - confirmation)) > 0.01


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


def vanilla_rnn(rng):
    """A vanilla RNN whose loss is a sum over its steps: W, U, x, c, and losses(W) as a function."""
    W, U = 0.7 * rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
    x, c = rng.normal(size=(4, 2)), rng.normal(size=(4, 3))
    return W, U, x, c


def vanilla_states(W, U, x):
    s, states = np.zeros(len(W)), []
    for step in x:
        s = np.tanh(W @ s + U @ step)
        states.append(s)
    return np.array(states)


@confirms("RN-4", "RN-5")
def test_each_step_adds_its_own_loss(rng):
    W, U, x, c = vanilla_rnn(rng)
    states = vanilla_states(W, U, x)

    def loss(W):
        return np.sum(c * vanilla_states(W, U, x) ** 2)

    def gradient(local, steps):
        delta, total = np.zeros(3), np.zeros_like(W)
        for t in reversed(range(4)):
            delta = delta + (2 * c[t] * states[t] if t in local else 0)
            if t in steps:
                previous = states[t - 1] if t else np.zeros(3)
                total += np.outer(delta * (1 - states[t] ** 2), previous)
            delta = W.T @ (delta * (1 - states[t] ** 2))
        return total

    variable = tf.Variable(W)
    with tf.GradientTape() as tape:
        s, summed = tf.zeros((3, 1), tf.float64), 0.0
        for step, weight in zip(x, c, strict=True):
            s = tf.tanh(variable @ s + (U @ step)[:, None])
            summed += tf.reduce_sum(weight[:, None] * s**2)
    by_tape = tape.gradient(summed, variable).numpy()
    for confirmation in (derivative(loss, W), by_tape):
        np.testing.assert_allclose(gradient({0, 1, 2, 3}, {0, 1, 2, 3}), confirmation, atol=1e-8)
        assert np.max(np.abs(gradient({3}, {0, 1, 2, 3}) - confirmation)) > 0.01


@confirms("RN-6")
def test_paths_end_in_explicit_derivatives(rng):
    W, U, x, _ = vanilla_rnn(rng)
    states = vanilla_states(W, U, x)
    slopes = 1 - states**2
    jacobians = [slope[:, None] * W for slope in slopes]
    explicit, total = [], []
    for t in range(4):
        previous = states[t - 1] if t else np.zeros(3)
        part = np.einsum("p,pq,r->pqr", slopes[t], np.eye(3), previous)
        explicit.append(part)
        total.append(part + np.tensordot(jacobians[t], total[-1], 1) if t else part)
    for last in (derivative(lambda W: vanilla_states(W, U, x)[3], W), total[3]):
        by_explicit, by_total, path = np.zeros((3, 3, 3)), np.zeros((3, 3, 3)), np.eye(3)
        for t in reversed(range(4)):
            by_explicit += np.tensordot(path, explicit[t], 1)
            by_total += np.tensordot(path, total[t], 1)
            path = path @ jacobians[t]
        np.testing.assert_allclose(by_explicit, last, atol=1e-8)
        assert np.max(np.abs(by_total - last)) > 0.01


@confirms("RN-7", "RN-10")
def test_a_product_of_norms_only_bounds_the_norm_of_a_product():
    first, second = np.diag([2.0, 0.0]), np.diag([0.0, 2.0])
    assert np.linalg.norm(first, 2) * np.linalg.norm(second, 2) == 4.0
    assert np.linalg.norm(first @ second, 2) == 0.0
    # The bound exceeds 1 at every step, yet the gradient vanishes: a nilpotent recurrent matrix.
    W = np.array([[0.0, 2.0], [0.0, 0.0]])
    slopes = 1 - np.tanh(np.array([0.1, -0.2])) ** 2
    jacobian = slopes[:, None] * W
    assert np.max(slopes) * np.linalg.norm(W, 2) > 1
    assert np.linalg.norm(np.linalg.matrix_power(jacobian, 2), 2) == 0.0
    layer = keras.layers.SimpleRNN(2, use_bias=False, dtype="float64")
    layer.build((1, 3, 1))
    layer.set_weights([np.zeros((1, 2)), W.T])
    h0 = tf.constant([[0.1, -0.2]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(tf.zeros((1, 3, 1), tf.float64), initial_state=h0)
    assert np.all(tape.jacobian(last, h0).numpy() == 0)


@confirms("RN-8")
def test_second_derivative_of_a_state_by_its_weights(rng):
    W, s = rng.normal(size=(3, 3)), rng.normal(size=3)
    y = np.tanh(W @ s)
    curvature = -2 * y * (1 - y**2)
    eye = np.eye(3)
    correct = np.einsum("p,pq,px,r,y->pqrxy", curvature, eye, eye, s, s)
    of_the_text = np.einsum("p,pq,xy,r->pqrxy", curvature, eye, eye, s)
    slope = derivative(lambda W: np.einsum("p,pq,r->pqr", 1 - np.tanh(W @ s) ** 2, eye, s), W)
    variable = tf.Variable(W)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            state = tf.tanh(tf.linalg.matvec(variable, s))
        first = inner.jacobian(state, variable)
    by_tape = outer.jacobian(first, variable).numpy()
    for confirmation in (slope, by_tape):
        np.testing.assert_allclose(correct, confirmation, atol=1e-8)
        assert np.max(np.abs(of_the_text - confirmation)) > 0.01


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
