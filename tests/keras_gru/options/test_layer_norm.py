"""Layer normalisation, against NumPy and finite differences."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from tests import oracle
from tests.keras_gru.options.problem import (
    CONVENTIONS,
    MASK,
    B,
    U,
    assert_gradients_by_finite_differences,
    data,
    numpy_gru,
    randomized,
)


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


@pytest.mark.slow
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
