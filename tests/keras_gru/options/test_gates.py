"""Gates as outputs of the layer."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
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
    randomized,
)


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


@pytest.mark.slow
def test_gates_have_gradients():
    rng = np.random.default_rng(8)
    weigh = rng.normal(size=(3, 2, 3, 2))

    def loss(x, h0, kernel, recurrent_kernel, bias):
        _, _, gates, _ = sequence(
            x, h0, kernel, recurrent_kernel, bias, Convention(), return_gates=True, training=True
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
    layer = randomized(GRU(U, return_gates=True))
    x, _ = data(dtype="float32")
    batches = [scale * x for scale in (1, -1, 2, -2)]
    wanted = [layer(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        for expected, results in zip(wanted * 5, pool.map(layer, batches * 5), strict=True):
            for one, actual in zip(expected, results, strict=True):
                np.testing.assert_array_equal(actual, one)


def test_return_gates_off_the_fused_path_is_an_error():
    with pytest.raises(ValueError, match=r"return_gates.*fused.*unroll=True"):
        GRU(U, return_gates=True, unroll=True)
