"""Zoneout and DropConnect."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell
from keras_gru.functional import Convention, sequence
from tests import oracle
from tests.keras_gru.options.problem import (
    CONVENTIONS,
    MASK,
    B,
    D,
    T,
    U,
    assert_gradients_by_finite_differences,
    data,
    numpy_gru,
    randomized,
)


@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
@pytest.mark.parametrize("unroll", [False, True])
def test_zoneout_keeps_its_expectation_at_inference(unroll, reset_after, update_gate):
    layer = randomized(
        GRU(
            U,
            zoneout=0.3,
            reset_after=reset_after,
            update_gate=update_gate,
            unroll=unroll,
            return_sequences=True,
            dtype="float64",
        )
    )
    x, h0 = data()
    outputs = layer(x, initial_state=h0, mask=MASK)
    assert layer.path == ("loop" if unroll else "fused")
    for i in range(B):
        states = numpy_gru(x[i], h0[i], layer, mask=MASK[i], keep_share=0.3)
        np.testing.assert_allclose(outputs[i], oracle.shown(states, MASK[i]), atol=1e-12)


@pytest.mark.slow_cases
@pytest.mark.parametrize("training", [True, False])
def test_zoneout_gradients(training):
    rng = np.random.default_rng(5)
    share = (rng.uniform(size=(2, 3, 2)) < 0.5).astype("float64") if training else 0.4
    weigh = rng.normal(size=(2, 3, 2))
    mask = np.array([[1, 0, 1], [1, 1, 1]], bool)

    def loss(x, h0, kernel, recurrent_kernel, bias):
        states, final, *_ = sequence(
            x,
            h0,
            kernel,
            recurrent_kernel,
            bias,
            Convention(),
            mask=mask,
            zoneout=tf.constant(share, tf.float64),
            training=True,
        )
        return tf.reduce_sum(states * weigh) + tf.reduce_sum(tf.sin(final))

    shapes = [(2, 3, 2), (2, 2), (2, 6), (2, 6), (2, 6)]
    assert_gradients_by_finite_differences(loss, [rng.normal(size=s) for s in shapes])


def test_zoneout_in_training_keeps_units_at_its_rate():
    layer = GRU(64, zoneout=0.25, return_sequences=True, seed=1)  # gates far from saturation
    x = np.random.default_rng(2).normal(size=(B, 200, D)).astype("float32")
    states = layer(x, training=True).numpy()
    kept = states[:, 1:] == states[:, :-1]
    assert abs(kept.mean() - 0.25) < 0.01
    assert not kept.all(axis=-1).any(), "units are kept one by one, not whole states"


@pytest.mark.parametrize("rate", ["dropout", "recurrent_dropout", "zoneout", "dropconnect"])
def test_a_seed_decides_every_draw(rate):
    x, h0 = data(dtype="float32")
    seen = []
    for seed in (3, 3, 4):
        layer = randomized(GRU(U, seed=seed, **{rate: 0.5}))
        seen.append(layer(x, initial_state=h0, training=True).numpy())
    np.testing.assert_array_equal(seen[0], seen[1])
    assert np.abs(seen[0] - seen[2]).max() > 1e-3


@pytest.mark.parametrize(
    "wrap",
    [
        lambda **k: GRU(U, return_sequences=True, **k),
        lambda **k: GRU(U, return_sequences=True, unroll=True, **k),
        lambda **k: keras.layers.RNN(GRUCell(U, **k), return_sequences=True),
    ],
    ids=["fused", "loop", "RNN(GRUCell)"],
)
def test_dropconnect_drops_recurrent_weights_once_per_call(wrap):
    """With an identity kernel and no input, a dropped weight silences its unit for good."""
    layer = wrap(dropconnect=0.5, seed=3, activation="linear", use_bias=False)
    layer.build((B, T, D))
    eye = np.concatenate([np.zeros((U, U)) - 1e4 * np.eye(U), np.zeros((U, U)), np.eye(U)], 1)
    layer.set_weights([np.zeros((D, 3 * U)), eye])
    x, _ = data(dtype="float32")
    h0 = np.ones((B, U), "float32")
    seen = [layer(x, initial_state=h0, training=True).numpy() for _ in range(6)]
    for states in seen:
        assert (states == states[:1]).all(), "one kernel for all rows"
    assert len({states.tobytes() for states in seen}) > 1, "a new draw for each call"
    quiet = layer(x, initial_state=h0, training=False).numpy()
    assert (quiet == layer(x, initial_state=h0).numpy()).all()
