"""Errata about gradients over time: what is multiplied, in which order, and what decays."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from tests import oracle
from tests.differences import derivative
from tests.keras_gru.teaching.errata.confirmation import confirms, random_gru


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


@pytest.mark.slow
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


@confirms("EX-16")
def test_four_steps_leave_a_third_of_the_gradient():
    words = ["The", "clouds", "are", "in", "the", "sky"]
    steps = words.index("sky") - words.index("clouds")
    assert 0.75**steps == pytest.approx(0.316, abs=5e-4)
    # A vanilla RNN of one unit, at slope 0.75 and weight 1 all the way.
    bias = np.arctanh(0.5) - 0.5
    layer = keras.layers.SimpleRNN(1, dtype="float64")
    layer.build((1, steps, 1))
    layer.set_weights([np.zeros((1, 1)), np.ones((1, 1)), np.array([bias])])
    h0 = tf.constant([[0.5]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(tf.zeros((1, steps, 1), tf.float64), initial_state=h0)
    assert tape.gradient(last, h0).numpy().item() == pytest.approx(0.75**4, rel=1e-9)


@confirms("EX-35")
def test_the_slope_comes_before_the_matrix(rng):
    W, x = rng.normal(size=(3, 3)), rng.normal(size=3)
    h, gradient = rng.normal(size=3), rng.normal(size=3)
    new = np.tanh(W @ h + x)
    right = W.T @ ((1 - new**2) * gradient)
    as_written = (1 - new**2) * (W.T @ gradient)
    start = tf.constant(h)
    with tf.GradientTape() as tape:
        tape.watch(start)
        loss = tf.reduce_sum(gradient * tf.tanh(tf.linalg.matvec(W, start) + x))
    by_differences = gradient @ derivative(lambda h: np.tanh(W @ h + x), h)
    for confirmation in (tape.gradient(loss, start), by_differences):
        np.testing.assert_allclose(right, confirmation, atol=1e-9)
        assert np.max(np.abs(as_written - confirmation)) > 0.01


@confirms("EX-36")
def test_slopes_cannot_be_collected_before_the_matrices(rng):
    W = 0.9 * rng.normal(size=(3, 3))
    h0 = rng.normal(size=3)

    def run(h):
        states = [h]
        for _ in range(3):
            states.append(np.tanh(W @ states[-1]))
        return states

    slopes = [1 - state**2 for state in run(h0)[1:]]
    in_turn = np.linalg.multi_dot([np.diag(slope) @ W for slope in reversed(slopes)])
    by_differences = derivative(lambda h: run(h)[-1], h0)
    np.testing.assert_allclose(in_turn, by_differences, atol=1e-9)
    collected = np.diag(np.prod(slopes, axis=0)) @ np.linalg.matrix_power(W, 3)
    assert np.max(np.abs(collected - by_differences)) > 0.01
    once = np.diag(np.prod(slopes, axis=0)) @ W  # (W_hhᵀ)ᵀ, read as it stands
    assert np.max(np.abs(once - by_differences)) > 0.01


@confirms("EX-37")
def test_a_slope_of_three_quarters_is_no_saturation():
    assert np.sqrt(1 - 0.75) == 0.5
    at = np.arctanh(np.array([0.5, 0.99]))
    slopes = np.diag(derivative(np.tanh, at))
    np.testing.assert_allclose(slopes, [0.75, 0.0199], atol=1e-8)
    assert slopes[1] ** 8 < 1e-13
