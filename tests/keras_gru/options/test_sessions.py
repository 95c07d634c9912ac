"""States that are carried, read, set and reset by row."""

import re

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell
from tests.keras_gru.options.problem import B, U, data, numpy_gru, randomized


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
