"""Ragged inputs."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from tests.keras_gru.options.problem import D, U, randomized


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
