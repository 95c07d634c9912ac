"""Equations (22) to (36) of DERIVATION.md, as written there, compared with a TensorFlow tape."""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracle import sigmoid

D, U = 2, 3


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def block(rng):
    return rng.normal(size=(D, U)), rng.normal(size=(U, U)), rng.normal(size=(1, U))


def gradients(function, *arrays):
    """Value of a function of arrays (1, U) and δ of its arguments for a random δ of its value."""
    variables = [tf.constant(array) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        values = function(*variables)
        loss = sum(tf.reduce_sum(share * value) for value, share in values)
    return [gradient.numpy() for gradient in tape.gradient(loss, variables)]


def test_vanilla_rnn(rng):
    W, R, b = block(rng)
    x, h, dh_new = rng.normal(size=(1, D)), rng.normal(size=(1, U)), rng.normal(size=(1, U))
    h_new = np.tanh(x @ W + h @ R + b)
    da = dh_new * (1 - h_new**2)
    ours = [da @ R.T, x.T @ da, h.T @ da, da]
    theirs = gradients(lambda h, W, R, b: [(tf.tanh(x @ W + h @ R + b), dh_new)], h, W, R, b)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-13)


def test_jacobians_of_a_vanilla_rnn_multiply_and_are_bounded(rng):
    W, R, b = block(rng)
    x = rng.normal(size=(4, D))
    start = tf.constant(rng.normal(size=(1, U)))
    with tf.GradientTape() as tape:
        tape.watch(start)
        h, states = start, []
        for step in x:
            h = tf.tanh(step[None] @ W + h @ R + b)
            states.append(h.numpy())
    by_tape = tape.jacobian(h, start).numpy()[0, :, 0, :].T
    jacobians = [R @ np.diag(1 - state[0] ** 2) for state in states]
    np.testing.assert_allclose(np.linalg.multi_dot(jacobians), by_tape, atol=1e-13)
    norm = np.linalg.norm(by_tape, 2)
    product = np.prod([np.linalg.norm(jacobian, 2) for jacobian in jacobians])
    gamma = np.max([1 - state**2 for state in states])
    assert norm < product <= (gamma * np.linalg.norm(R, 2)) ** 4


def test_second_derivative_of_a_vanilla_rnn(rng):
    R, h = tf.Variable(rng.normal(size=(U, U))), rng.normal(size=(1, U))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            state = tf.tanh(tf.constant(h) @ R)[0]
        first = inner.jacobian(state, R)
    by_tape = outer.jacobian(first, R).numpy()
    y, eye = state.numpy(), np.eye(U)
    ours = np.einsum("p,pq,px,r,y->prqyx", -2 * y * (1 - y**2), eye, eye, h[0], h[0])
    np.testing.assert_allclose(ours, by_tape, atol=1e-13)


def test_lstm(rng):
    i_block, f_block, o_block, g_block = (block(rng) for _ in range(4))
    x, h, c, dh_new, dc_next = (rng.normal(size=(1, n)) for n in (D, U, U, U, U))

    def act(block, x, h):
        return x @ block[0] + h @ block[1] + block[2]

    i, f, o = (sigmoid(act(part, x, h)) for part in (i_block, f_block, o_block))
    g = np.tanh(act(g_block, x, h))
    c_new = f * c + i * g
    do = dh_new * np.tanh(c_new)
    dc_new = dc_next + dh_new * o * (1 - np.tanh(c_new) ** 2)
    df, di, dg = dc_new * c, dc_new * g, dc_new * i
    da = [d * gate * (1 - gate) for d, gate in ((di, i), (df, f), (do, o))] + [dg * (1 - g**2)]
    dh = sum(
        d @ part[1].T for d, part in zip(da, (i_block, f_block, o_block, g_block), strict=True)
    )

    def forward(h, c):
        i, f, o = (tf.sigmoid(act(part, x, h)) for part in (i_block, f_block, o_block))
        c = f * c + i * tf.tanh(act(g_block, x, h))
        return [(o * tf.tanh(c), dh_new), (c, dc_next)]

    for mine, other in zip((dh, dc_new * f), gradients(forward, h, c), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-13)


@pytest.mark.parametrize("name", ["mgu", "coupled"])
def test_one_gate(rng, name):
    (W_z, U_z, b_z), (W_g, U_g, b_g) = block(rng), block(rng)
    x, h, dh_new = rng.normal(size=(1, D)), rng.normal(size=(1, U)), rng.normal(size=(1, U))

    def reset(z):
        return z if name == "mgu" else 1 - z

    z = sigmoid(x @ W_z + b_z + h @ U_z)
    g = np.tanh(x @ W_g + b_g + (reset(z) * h) @ U_g)
    da_g = dh_new * z * (1 - g**2)
    dp = da_g @ U_g.T
    dz = dh_new * (g - h) + (dp * h if name == "mgu" else -dp * h)
    da_z = dz * z * (1 - z)
    dh = dh_new * (1 - z) + dp * reset(z) + da_z @ U_z.T

    def forward(h, U_z, U_g):
        z = tf.sigmoid(x @ W_z + b_z + h @ U_z)
        g = tf.tanh(x @ W_g + b_g + (reset(z) * h) @ U_g)
        return [((1 - z) * h + z * g, dh_new)]

    ours = [dh, h.T @ da_z, (reset(z) * h).T @ da_g]
    for mine, other in zip(ours, gradients(forward, h, U_z, U_g), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-13)


@pytest.mark.parametrize("update_gate", ["keep", "replace"])
def test_jacobian_of_a_gru(rng, update_gate):
    (W_z, U_z, b_z), (W_r, U_r, b_r), (W_g, U_g, b_g) = (block(rng) for _ in range(3))
    x, h = rng.normal(size=(1, D)), tf.constant(rng.normal(size=(1, U)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(h)
        z = tf.sigmoid(x @ W_z + b_z + h @ U_z)
        r = tf.sigmoid(x @ W_r + b_r + h @ U_r)
        g = tf.tanh(x @ W_g + b_g + (r * h) @ U_g)
        h_new = z * h + (1 - z) * g if update_gate == "keep" else (1 - z) * h + z * g
    by_tape, dg = (tape.jacobian(value, h).numpy()[0, :, 0, :].T for value in (h_new, g))
    keep = z.numpy()[0] if update_gate == "keep" else 1 - z.numpy()[0]
    sign = 1 if update_gate == "keep" else -1
    dz = U_z * (z * (1 - z)).numpy()
    ours = np.diag(keep) + dg * (1 - keep) + dz * sign * (h - g).numpy()
    np.testing.assert_allclose(ours, by_tape, atol=1e-13)


def test_placements_agree_for_a_uniform_reset_gate_only(rng):
    h, U_g = rng.normal(size=(1, U)), rng.normal(size=(U, U))
    uniform, mixed = np.full((1, U), 0.3), rng.uniform(size=(1, U))
    np.testing.assert_allclose((uniform * h) @ U_g, uniform * (h @ U_g), atol=1e-15)
    assert np.max(np.abs((mixed * h) @ U_g - mixed * (h @ U_g))) > 0.01
    diagonal = np.diag(np.diag(U_g))
    np.testing.assert_allclose((mixed * h) @ diagonal, mixed * (h @ diagonal), atol=1e-15)
