"""Layer normalisation on the fast path: the NumPy oracle, differences, and the cell's own loop."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell, functional, portable
from keras_gru.functional import Convention
from keras_gru.kernel import execution
from keras_gru.kernel.equations import centered, normalize_backward, normalize_gates
from tests import oracle
from tests.covering import covering
from tests.keras_gru.kernel.sequence_problem import MASKS, problem, sequence

B, T, D, U = 3, 5, 4, 6
GAIN = np.random.default_rng(4).normal(size=(2, 3 * U))
RUNS = ["eager", "graph", "keep", "cut", "unknown shape", "xla", "portable"]
SIZES = {"keep": {"MAX_RECALLED_WORK": 0}, "cut": {"SMALL_WORK": 0, "SMALL_PLAIN_STATE": 0}}


def by_oracle(inputs, mask, go_backwards, **convention):
    order = slice(None, None, -1 if go_backwards else 1)
    weights = inputs["kernel"], inputs["recurrent_kernel"], inputs["bias"], GAIN
    return np.array(
        [
            oracle.forward_normalized(
                x[order], h0, *weights, mask=None if mask is None else row[order], **convention
            )
            for x, h0, row in zip(inputs["x"], inputs["h0"], mask or inputs["x"], strict=True)
        ]
    )


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("how", "masked", "reset_after", "update_gate"),
    covering(3, RUNS, (False, True), (True, False), ("keep", "replace")),
)
def test_every_way_equals_the_oracle(monkeypatch, how, masked, reset_after, update_gate):
    mask, training = ("interior and empty", False) if masked else (None, True)
    for name, value in SIZES.get(how, {}).items():
        monkeypatch.setattr(execution, name, value)
    inputs, _ = problem(B, T, D, U, reset_after=reset_after)
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    valid = None if mask is None else np.array(MASKS[mask], bool)
    go_backwards = mask is not None

    def run(x, h0):
        weights = inputs["kernel"], inputs["recurrent_kernel"], inputs["bias"]
        found = functional.sequence(
            *(x, h0, *weights, Convention(**convention)),
            layer_norm_gain=GAIN,
            mask=valid,
            go_backwards=go_backwards,
            training=training,
        )
        return found.states, found.final

    x = inputs["x"] if mask is None else np.where(valid[..., None], inputs["x"], np.nan)
    if how == "unknown shape":
        specs = tf.TensorSpec((None, None, D), tf.float64), tf.TensorSpec((None, U), tf.float64)
        run = tf.function(run, specs)
    elif how != "eager":
        run = tf.function(run, jit_compile=how == "xla" or None)
    sources = tf.constant(x), tf.constant(inputs["h0"])
    if how == "portable":
        with portable():
            states, final = run(*sources)
    else:
        states, final = run(*sources)
    wanted = by_oracle(inputs, mask and MASKS[mask], go_backwards, **convention)
    np.testing.assert_allclose(states, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(final, wanted[:, -1], rtol=0, atol=1e-12)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("reset_after", "update_gate", "how", "dropped"),
    covering(2, (True, False), ("keep", "replace"), RUNS[:4], (False, True)),
)
def test_layer_equals_the_loop_of_the_cell(monkeypatch, reset_after, update_gate, how, dropped):
    """`keras.layers.RNN(GRUCell)`: automatic differentiation of the cell, step by step."""
    for name, value in SIZES.get(how, {}).items():
        monkeypatch.setattr(execution, name, value)
    options = {"reset_after": reset_after, "update_gate": update_gate, "layer_norm": True}
    if dropped:
        rates = {"recurrent_dropout": 0.3, "dropout": 0.2, "dropconnect": 0.2}
        options |= {**rates, "learn_initial_state": True, "use_bias": False, "seed": 3}
    options["dtype"] = "float64"
    layer = GRU(U, return_sequences=True, **options)
    looped = keras.layers.RNN(GRUCell(U, **options), return_sequences=True, dtype="float64")
    assert layer.path == "fused"
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(B, T, D)))
    mask = np.array(MASKS["interior and empty"], bool)
    layer.build(x.shape)
    looped.build(x.shape)
    weights = [rng.normal(size=w.shape) for w in layer.get_weights()]
    results = []
    for one in (layer, looped):
        one.set_weights(weights)

        def run(x, one=one):
            with tf.GradientTape() as tape:
                tape.watch(x)
                states = one(x, mask=mask, training=dropped)
                loss = tf.reduce_sum(tf.sin(states))
            return [states, *tape.gradient(loss, [x, *(w.value for w in one.trainable_variables)])]

        results.append((run if how == "eager" or one is looped else tf.function(run))(x))
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11)


def test_gates_at_every_step():
    inputs, _ = problem(B, T, D, U, reset_after=True)
    arguments = [*inputs.values(), Convention()]
    found = sequence(*arguments, layer_norm_gain=GAIN, return_gates=True)
    before = np.concatenate([inputs["h0"][:, np.newaxis], found.states[:, :-1]], 1)
    weights = inputs["kernel"], inputs["recurrent_kernel"], inputs["bias"]
    wanted = functional.gates(inputs["x"], before, *weights, layer_norm_gain=GAIN)
    for got, one in zip(found.gates, wanted, strict=True):
        np.testing.assert_allclose(got, one, rtol=0, atol=1e-12)


def normalize(a):
    """The definition: the distance from the mean in standard deviations."""
    mean, variance = tf.nn.moments(a, axes=[-1], keepdims=True)
    return (a - mean) / tf.sqrt(variance + 1e-3)


def test_the_equations_of_one_product():
    """(37) to (39) compared with the definition, and with a tape."""
    rng = np.random.default_rng(0)
    h, kernel = tf.constant(rng.normal(size=(2, 4))), tf.constant(rng.normal(size=(4, 15)) + 3)
    gain, delta = tf.constant(rng.normal(size=15)), tf.constant(rng.normal(size=(2, 15)))
    with tf.GradientTape() as tape:
        products = h @ kernel
        tape.watch([products, gain])
        gates = tf.concat([normalize(gate) for gate in tf.split(products, 3, -1)], -1) * gain
    wanted = tape.gradient(gates, [products, gain], delta)
    middle = h @ centered(kernel)
    np.testing.assert_allclose(normalize_gates(middle, gain), gates, rtol=0, atol=1e-12)
    parts = [
        normalize_backward(*of_gate)
        for of_gate in zip(
            *(tf.split(delta, 3, -1), tf.split(middle, 3, -1), tf.split(gain, 3)), strict=True
        )
    ]
    d_middle, d_gain = (tf.concat(part, -1) for part in zip(*parts, strict=True))
    # The tape's gradient has passed through the mean, which the centred kernel takes care of.
    np.testing.assert_allclose(centered(d_middle), wanted[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(tf.reduce_sum(d_gain, 0), wanted[1], rtol=0, atol=1e-12)
