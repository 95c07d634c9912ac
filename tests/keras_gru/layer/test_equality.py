"""The layer and the cell against Keras' with the same weights, and against the oracle."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell
from tests import oracle
from tests.keras_gru.layer.twins import MASK, OPTIONS, inputs, outputs_and_gradients, twins

LOOPED = [
    {"return_sequences": True, "return_state": True, **option}
    for option in (
        {"unroll": True},
        {"activation": "softsign"},
        {"recurrent_activation": "softmax"},
        {"recurrent_activation": "softmax", "reset_after": False},
    )
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [*OPTIONS, *LOOPED], ids=str)
def test_equals_keras_with_the_same_weights(options, masked):
    theirs, ours = twins(**options)
    assert ours.path == ("loop" if options in LOOPED else "fused")
    mask = MASK if masked else None
    for actual, wanted in zip(
        outputs_and_gradients(ours, *inputs(), mask),
        outputs_and_gradients(theirs, *inputs(), mask),
        strict=True,
    ):
        for a, b in zip(actual, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("block", [0, 1], ids=["update gate", "swapped gates"])
def test_comparison_with_keras_sees_a_wrong_gate(block):
    """Negative control: changing the weights of one gate must show."""
    theirs, ours = twins()
    kernel, *rest = ours.get_weights()
    units = ours.units
    if block == 0:
        kernel[:, :units] *= -1
    else:
        kernel = kernel[:, [*range(units, 2 * units), *range(units), *range(2 * units, 3 * units)]]
    ours.set_weights([kernel, *rest])
    x, h0 = inputs()
    assert np.max(np.abs(ours(x, initial_state=h0) - theirs(x, initial_state=h0))) > 0.05


@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("update_gate", ["keep", "replace"])
def test_masked_outputs_equal_oracle(reset_after, update_gate):
    layer = GRU(
        5,
        reset_after=reset_after,
        update_gate=update_gate,
        return_sequences=True,
        return_state=True,
        dtype="float64",
        bias_initializer=keras.initializers.RandomNormal(seed=1),
    )
    x, h0 = (tf.cast(v, tf.float64) for v in inputs())
    outputs, final = layer(x, initial_state=h0, mask=MASK)
    for i in range(3):
        states, _ = oracle.forward(
            x[i].numpy(),
            h0[i].numpy(),
            *layer.get_weights(),
            reset_after=reset_after,
            update_gate=update_gate,
            mask=MASK[i],
        )
        np.testing.assert_allclose(outputs[i], oracle.shown(states, MASK[i]), atol=1e-12)
        np.testing.assert_allclose(final[i], states[-1], atol=1e-12)


def test_cell_equals_keras_cell():
    for reset_after, use_bias in itertools.product((True, False), repeat=2):
        theirs, ours = twins(
            keras.layers.GRUCell, GRUCell, reset_after=reset_after, use_bias=use_bias
        )
        x, h0 = inputs()
        for states in (h0, [h0], (h0,)):
            wanted, wanted_states = theirs(x[:, 0], states)
            actual, actual_states = ours(x[:, 0], states)
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)
            assert isinstance(actual_states, list) == isinstance(wanted_states, list)


@pytest.mark.parametrize("rows", [1, 3, None, 700], ids=lambda rows: f"{rows} rows")
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("update_gate", ["keep", "replace"])
@pytest.mark.parametrize("reset_after", [True, False])
def test_cell_equals_the_oracle_however_many_rows(reset_after, update_gate, use_bias, rows):
    """Small states compute their products together, large and unknown ones gate by gate."""
    rng = np.random.default_rng(5)
    options = {"reset_after": reset_after, "update_gate": update_gate}
    cell = GRUCell(5, use_bias=use_bias, dtype="float64", **options)
    cell.build((rows, 4))
    cell.set_weights([rng.normal(size=weight.shape) for weight in cell.get_weights()])
    count = rows or 3
    x, h0, upstream = (rng.normal(size=(count, size)) for size in (4, 5, 5))

    @tf.function(input_signature=[tf.TensorSpec((rows, size), tf.float64) for size in (4, 5, 5)])
    def run(x, h, upstream):
        with tf.GradientTape() as tape:
            tape.watch((x, h))
            h_new, _ = cell(x, [h])
        return h_new, tape.gradient(h_new, (x, h, *cell.trainable_weights), upstream)

    weights = (*cell.get_weights(), None)[:3]
    expected, grads = [], []
    for i in range(count):
        states, cache = oracle.forward(x[i : i + 1], h0[i], *weights, **options)
        expected.append(states[0])
        grads.append(
            oracle.backward(
                np.zeros((1, 5)), upstream[i], cache, x[i : i + 1], *weights[:2], **options
            )
        )
    h_new, (d_x, d_h, *d_weights) = run(x, h0, upstream)
    np.testing.assert_allclose(h_new, expected, atol=1e-12)
    np.testing.assert_allclose(d_x, [row[0][0] for row in grads], atol=1e-11)
    np.testing.assert_allclose(d_h, [row[1] for row in grads], atol=1e-11)
    for i, found in enumerate(d_weights):
        np.testing.assert_allclose(found, sum(row[2 + i] for row in grads), atol=1e-9)


def test_cell_takes_states_of_unknown_size():
    cell = GRUCell(5)
    x, h0 = inputs()
    run = tf.function(
        lambda x, h: cell(x, h)[0],
        input_signature=[tf.TensorSpec(x[:, 0].shape), tf.TensorSpec((3, None))],
    )
    np.testing.assert_allclose(run(x[:, 0], h0), cell(x[:, 0], h0)[0], rtol=1e-5, atol=1e-6)


def test_cell_in_keras_rnn_equals_the_layer():
    layer = GRU(5, return_sequences=True)
    rnn = keras.layers.RNN(GRUCell(5), return_sequences=True)
    x, _ = inputs()
    layer.build(x.shape)
    rnn.build(x.shape)
    rnn.set_weights(layer.get_weights())
    np.testing.assert_allclose(rnn(x, mask=MASK), layer(x, mask=MASK), rtol=1e-5, atol=1e-6)
