"""Options that keras.layers.GRU does not have: zoneout, DropConnect, layer normalisation, …"""

import itertools
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.sequence import gru_sequence
from tests import oracle

B, T, D, U = 3, 5, 4, 6
MASK = np.array([[0, 1, 1, 0, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], bool)
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))


def data(seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, T, D)).astype(dtype), rng.normal(size=(B, U)).astype(dtype)


def randomized(layer, seed=1):
    """Build the layer and set asymmetric weights."""
    layer.build((B, T, D))
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def numpy_gru(x, h0, layer, *, mask=None, keep_share=0.0, gain=None):
    """One sequence with the expected value of zoneout and layer normalisation, in plain NumPy."""

    def normalized(a, g):
        if gain is None:
            return a
        return (a - a.mean()) / np.sqrt(a.var() + 1e-3) * g

    kernel, recurrent, bias = (w.astype(np.float64) for w in layer.get_weights()[:3])
    W, R = np.split(kernel, 3, 1), np.split(recurrent, 3, 1)
    g_in, g_rec = (np.split(v, 3) for v in (gain if gain is not None else np.ones((2, 3 * U))))
    b_in, b_rec = (np.split(v, 3) for v in (bias if layer.reset_after else (bias, 0 * bias)))
    h, states = h0, []
    for t in range(len(x)):
        if mask is None or mask[t]:
            a = [normalized(x[t] @ W[i], g_in[i]) + b_in[i] for i in range(3)]
            z, r = (
                oracle.sigmoid(a[i] + normalized(h @ R[i], g_rec[i]) + b_rec[i]) for i in (0, 1)
            )
            if layer.reset_after:
                g = np.tanh(a[2] + r * (normalized(h @ R[2], g_rec[2]) + b_rec[2]))
            else:
                g = np.tanh(a[2] + normalized((r * h) @ R[2], g_rec[2]))
            new = z * h + (1 - z) * g if layer.update_gate == "keep" else (1 - z) * h + z * g
            h = keep_share * h + (1 - keep_share) * new
        states.append(h)
    return np.array(states)


def assert_gradients_by_finite_differences(loss, values, distance=1e-3):
    """Fourth-order central differences of a compiled scalar function, for every element."""
    loss = tf.function(loss)
    tensors = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = loss(*tensors)
    for i, grad in enumerate(tape.gradient(total, tensors)):
        numeric = np.zeros(values[i].shape)
        for index in np.ndindex(*numeric.shape):
            at = []
            for offset in (-2, -1, 1, 2):
                moved = [v.copy() for v in values]
                moved[i][index] += offset * distance
                at.append(float(loss(*(tf.constant(v) for v in moved))))
            numeric[index] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * distance)
        np.testing.assert_allclose(grad, numeric, rtol=1e-7, atol=1e-8, err_msg=f"argument {i}")


# Zoneout ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("training", [True, False])
def test_zoneout_gradients(training):
    rng = np.random.default_rng(5)
    share = (rng.uniform(size=(2, 3, 2)) < 0.5).astype("float64") if training else 0.4
    weigh = rng.normal(size=(2, 3, 2))
    mask = np.array([[1, 0, 1], [1, 1, 1]], bool)

    def loss(x, h0, kernel, recurrent_kernel, bias):
        states, final, *_ = gru_sequence(
            x,
            h0,
            kernel,
            recurrent_kernel,
            bias,
            Convention(),
            mask=mask,
            zoneout=tf.constant(share, tf.float64),
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


# DropConnect ------------------------------------------------------------------------------


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


# Layer normalisation ----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["fused", "loop"])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_layer_norm_equals_numpy(reset_after, update_gate, path):
    layer = randomized(
        GRU(
            U,
            layer_norm=True,
            reset_after=reset_after,
            update_gate=update_gate,
            return_sequences=True,
            dtype="float64",
            path="auto" if path == "fused" else path,
        )
    )
    assert layer.path == path
    x, h0 = data()
    outputs = layer(x, initial_state=h0, mask=MASK)
    for i in range(B):
        states = numpy_gru(x[i], h0[i], layer, mask=MASK[i], gain=layer.get_weights()[3])
        np.testing.assert_allclose(outputs[i], oracle.shown(states, MASK[i]), atol=1e-10)


@pytest.mark.parametrize("reset_after", [True, False])
def test_layer_norm_gradients(reset_after):
    layer = GRU(2, layer_norm=True, reset_after=reset_after, return_sequences=True, dtype="float64")
    layer.build((2, 3, 2))
    rng = np.random.default_rng(7)
    weigh = rng.normal(size=(2, 3, 2))

    def loss(x, *weights):
        outputs, _ = layer.stateless_call(weights, layer.non_trainable_variables, x)
        return tf.reduce_sum(outputs * weigh)

    shapes = [(2, 3, 2), *(w.shape for w in layer.trainable_variables)]
    assert len(shapes) == 5
    values = [rng.normal(size=s) for s in shapes]
    # Two units leave a small variance under the root: so curved that the step must be short.
    assert_gradients_by_finite_differences(loss, values, distance=1e-4)


# Learned initial state --------------------------------------------------------------------


@pytest.mark.parametrize("unroll", [False, True])
def test_learned_initial_state_is_used_and_trained(unroll):
    layer = randomized(GRU(U, learn_initial_state=True, unroll=unroll, dtype="float64"))
    learned = layer.get_weights()[-1]
    x, h0 = data()
    for i in range(B):
        np.testing.assert_allclose(
            layer(x)[i], numpy_gru(x[i], learned, layer)[-1], rtol=1e-10, atol=1e-12
        )
    np.testing.assert_allclose(
        layer(x, initial_state=h0)[0], numpy_gru(x[0], h0[0], layer)[-1], rtol=1e-10, atol=1e-12
    )
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    assert np.abs(tape.gradient(loss, layer.cell.learned_state.value)).min() > 1e-4


def test_gains_and_the_learned_state_start_neutral():
    """At first nothing is scaled, and a learned initial state gives what Keras' zeros give."""
    x, _ = data(dtype="float32")
    layer = GRU(U, layer_norm=True)
    layer.build(x.shape)
    np.testing.assert_array_equal(layer.get_weights()[3], np.ones((2, 3 * U)))
    learning, keras_layer = GRU(U, learn_initial_state=True), keras.layers.GRU(U)
    wanted = keras_layer(x)
    learning.build(x.shape)
    learning.set_weights([*keras_layer.get_weights(), learning.get_weights()[3]])
    np.testing.assert_allclose(learning(x), wanted, rtol=1e-5, atol=1e-6)


# Gates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_return_gates_equal_oracle(reset_after, update_gate, go_backwards):
    layer = randomized(
        GRU(
            U,
            return_gates=True,
            return_state=True,
            reset_after=reset_after,
            update_gate=update_gate,
            go_backwards=go_backwards,
            dtype="float64",
        )
    )
    x, h0 = data()
    _, _, *gates = layer(x, initial_state=h0, mask=MASK)
    order = slice(None, None, -1 if go_backwards else 1)
    for i in range(B):
        _, cache = oracle.forward(
            x[i][order],
            h0[i],
            *layer.get_weights(),
            reset_after=reset_after,
            update_gate=update_gate,
            mask=MASK[i][order],
        )
        for t, step in enumerate(cache):
            wanted = np.zeros((3, U)) if step is None else step[1:4]
            np.testing.assert_allclose([g[i, t] for g in gates], wanted, atol=1e-12)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16", "float16"])
@pytest.mark.parametrize("reset_after", [True, False])
def test_return_gates_in_half_precision(reset_after, dtype):
    options = {"return_gates": True, "recurrent_dropout": 0.2, "reset_after": reset_after}
    exact = randomized(GRU(U, dtype="float64", **options))
    layer = GRU(U, dtype=dtype, **options)
    layer.build((B, T, D))
    layer.set_weights(exact.get_weights())
    x, h0 = data(dtype="float32")
    for training in (False, True):  # with dropout for what it runs through, not for its values
        results = layer(x, initial_state=h0, mask=MASK, training=training)
        assert {r.dtype.name for r in results} == {layer.compute_dtype}
    for a, b in zip(layer(x, mask=MASK), exact(x, mask=MASK), strict=True):
        tolerance = 0.03 if "bf" in dtype else 0.004
        np.testing.assert_allclose(tf.cast(a, tf.float64), b, atol=tolerance)


def test_gates_have_gradients():
    rng = np.random.default_rng(8)
    weigh = rng.normal(size=(3, 2, 3, 2))

    def loss(x, h0, kernel, recurrent_kernel, bias):
        _, _, gates, _ = gru_sequence(
            x, h0, kernel, recurrent_kernel, bias, Convention(), return_gates=True
        )
        return tf.reduce_sum(tf.stack(gates) * weigh)

    shapes = [(2, 3, 2), (2, 2), (2, 6), (2, 6), (2, 6)]
    assert_gradients_by_finite_differences(loss, [rng.normal(size=s) for s in shapes])


def test_return_gates_in_a_functional_model(tmp_path):
    inputs = keras.Input((None, D))
    outputs = GRU(U, return_gates=True, return_sequences=True)(keras.layers.Masking()(inputs))
    assert [tuple(o.shape) for o in outputs] == [(None, None, U)] * 4
    model = keras.Model(inputs, outputs)
    x, _ = data(dtype="float32")
    model.save(tmp_path / "gates.keras")
    again = keras.saving.load_model(tmp_path / "gates.keras")
    for a, b in zip(model(x), again(x), strict=True):
        np.testing.assert_array_equal(a, b)
    z = model(x)[1]
    assert 0 < np.min(z) < np.max(z) < 1


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
def test_shapes_and_masks_beside_gates_are_those_of_a_call(return_sequences, return_state):
    layer = GRU(U, return_gates=True, return_sequences=return_sequences, return_state=return_state)
    x, _ = data(dtype="float32")
    called = layer(x, mask=MASK)
    assert list(layer.compute_output_shape((B, T, D))) == [tuple(v.shape) for v in called]
    mask = "mask" if return_sequences else None
    assert layer.compute_mask(x, "mask") == [mask, *[None] * (3 + return_state)]


def test_threads_get_the_gates_of_their_own_batch():
    barrier = threading.Barrier(2, timeout=60)

    class Meeting(GRU):
        """Both calls have finished their loops before either returns."""

        def inner_loop(self, *args, **kwargs):
            results = super().inner_loop(*args, **kwargs)
            barrier.wait()
            return results

    layer = randomized(GRU(U, return_gates=True))
    meeting = Meeting(U, return_gates=True)
    meeting.build((B, T, D))
    meeting.set_weights(layer.get_weights())
    x, _ = data(dtype="float32")
    with ThreadPoolExecutor(2) as pool:
        for batch, results in zip((x, -x), pool.map(meeting, (x, -x)), strict=True):
            for actual, wanted in zip(results, layer(batch), strict=True):
                np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def test_return_gates_off_the_fused_path_is_an_error():
    with pytest.raises(ValueError, match=r"return_gates.*fused.*unroll=True"):
        GRU(U, return_gates=True, unroll=True)


# Sessions ---------------------------------------------------------------------------------


def test_states_can_be_read_set_and_reset_by_row():
    layer = randomized(GRU(U, stateful=True, dtype="float64"))
    x, h0 = data()
    layer(x)
    (after_one,) = layer.get_states()
    layer(x)
    (after_two,) = layer.get_states()
    assert np.abs(after_one - after_two).max() > 1e-3
    layer.reset_state(rows=[1])
    (mixed,) = layer.get_states()
    np.testing.assert_array_equal(mixed[1], np.zeros(U))
    np.testing.assert_array_equal(mixed[::2], after_two[::2])
    layer(x)
    np.testing.assert_allclose(layer.get_states()[0][1], after_one[1], atol=1e-12)
    layer.set_states(h0)
    np.testing.assert_allclose(layer(x)[0], numpy_gru(x[0], h0[0], layer)[-1], atol=1e-12)
    (kept,) = layer.get_states()
    layer.reset_state(rows=np.flatnonzero(np.zeros(B)))  # no session has ended
    np.testing.assert_array_equal(layer.get_states()[0], kept)
    layer.reset_state(rows=np.array([2, 0]))
    np.testing.assert_array_equal(layer.get_states()[0], kept * np.array([[0], [1], [0]]))
    layer.reset_state()
    np.testing.assert_array_equal(layer.get_states()[0], np.zeros((B, U)))
    layer.set_states([kept])
    np.testing.assert_array_equal(layer.get_states()[0], kept)


def test_chunks_with_carried_state_equal_the_whole_sequence():
    whole = randomized(GRU(U, return_sequences=True))
    chunked = randomized(GRU(U, return_sequences=True, stateful=True))
    x, _ = data(dtype="float32")
    parts = [chunked(x[:, :2]), chunked(x[:, 2:3]), chunked(x[:, 3:])]
    np.testing.assert_allclose(tf.concat(parts, 1), whole(x), rtol=1e-5, atol=1e-6)


def test_a_cell_has_no_learned_state_before_it_is_built():
    cell = GRUCell(U, learn_initial_state=True, name="early")
    with pytest.raises(ValueError, match=r"early.*must be built"):
        cell.get_initial_state(B)


def test_reset_goes_back_to_the_learned_state():
    layer = randomized(GRU(U, stateful=True, learn_initial_state=True))
    x, _ = data(dtype="float32")
    layer.reset_state()  # the state made by build() is older than the weights
    first = layer(x)
    assert np.abs(layer(x) - first).max() > 1e-3
    layer.reset_state()
    np.testing.assert_allclose(layer(x), first, rtol=1e-6)


def test_session_errors():
    layer = GRU(U, stateful=True, name="memory")
    with pytest.raises(ValueError, match=r"memory.*carries no state.*stateful=True"):
        layer.get_states()
    layer(data(dtype="float32")[0])
    with pytest.raises(ValueError, match=r"states.*memory.*\(3, 6\).*\(2, 6\)"):
        layer.set_states(np.zeros((2, 6)))
    (before,) = layer.get_states()
    for rows in ([3], [-1], [1, 3], [True, False, True], [1.5], [[1]]):
        with pytest.raises(ValueError, match=rf"rows.*memory.*\[0, 3\).*{re.escape(str(rows))}"):
            layer.reset_state(rows=rows)
    np.testing.assert_array_equal(layer.get_states()[0], before)


# Ragged -----------------------------------------------------------------------------------


@pytest.mark.parametrize("go_backwards", [False, True])
def test_ragged_rows_equal_rows_alone(go_backwards):
    rng = np.random.default_rng(3)
    rows = [rng.normal(size=(n, D)).astype("float32") for n in (3, 5, 1)]
    ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [3, 5, 1])
    layer = randomized(GRU(U, return_sequences=True, return_state=True, go_backwards=go_backwards))
    outputs, state = layer(ragged)
    assert outputs.row_lengths().numpy().tolist() == [3, 5, 1]
    for i, row in enumerate(rows):
        alone, alone_state = layer(row[np.newaxis])
        np.testing.assert_allclose(outputs[i], alone[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state[i], alone_state[0], rtol=1e-5, atol=1e-6)


def test_ragged_beside_a_mask_is_an_error():
    ragged = tf.RaggedTensor.from_row_lengths(np.zeros((3, D), "float32"), [1, 2])
    with pytest.raises(ValueError, match=r"mask.*ragged"):
        GRU(U)(ragged, mask=np.ones((2, 2), bool))


@pytest.mark.parametrize("name", ["zoneout", "dropconnect"])
def test_rates_are_checked(name):
    with pytest.raises(ValueError, match=rf"{name}.*\[0, 1\).*1.2"):
        GRU(4, **{name: 1.2})


def test_new_options_round_trip():
    options = {
        "zoneout": 0.1,
        "dropconnect": 0.2,
        "layer_norm": True,
        "learn_initial_state": True,
    }
    config = GRU(4, **options).get_config()
    assert options.items() <= config.items()
    assert GRU.from_config(config).get_config() == config
