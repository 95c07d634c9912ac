"""Layer normalisation, against NumPy and finite differences."""

import numpy as np
import pytest

from keras_gru import GRU
from tests import oracle
from tests.keras_gru.options.problem import (
    CONVENTIONS,
    MASK,
    B,
    U,
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
