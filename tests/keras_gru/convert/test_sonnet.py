"""Converted weights in Sonnet's layer, and beside it its published equations."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.convert import (
    from_sonnet,
    to_sonnet,
)
from tests.keras_gru.convert.random_weights import (
    CLOSE,
    D,
    U,
    oracle_states,
    random_weights,
    sequences,
    sigmoid,
    unroll,
)


def sonnet_equations(variables, x, h):
    """As in the Sonnet documentation of snt.GRU, after Chung et al. 2014."""
    w_iz, w_ir, w_ia = (variables["w_i"][:, i * U : (i + 1) * U] for i in range(3))
    w_hz, w_hr, w_ha = (variables["w_h"][:, i * U : (i + 1) * U] for i in range(3))
    b_z, b_r, b_a = (variables["b"][i * U : (i + 1) * U] for i in range(3))
    z = sigmoid(x @ w_iz + h @ w_hz + b_z)
    r = sigmoid(x @ w_ir + h @ w_hr + b_r)
    a = np.tanh(x @ w_ia + (r * h) @ w_ha + b_a)
    return (1 - z) * h + z * a


def sonnet_core(variables, x, h):
    core = new_sonnet_core()
    core.input_to_hidden.assign(variables["w_i"])
    core.hidden_to_hidden.assign(variables["w_h"])
    core.b.assign(variables["b"])
    return core(tf.constant(x), tf.constant(h))[0]


def new_sonnet_core():
    snt = pytest.importorskip("sonnet")
    core = snt.GRU(U)
    core(tf.zeros((1, D)), core.initial_state(1))
    return core


class TestSonnet:
    @pytest.mark.parametrize("core", [sonnet_equations, sonnet_core])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    @pytest.mark.parametrize("use_bias", [True, False])
    def test_out(self, use_bias, update_gate, core):
        weights = random_weights(False, update_gate, use_bias)
        actual = unroll(functools.partial(core, to_sonnet(weights)), sequences())
        np.testing.assert_allclose(actual, oracle_states(weights, sequences()), **CLOSE)

    @pytest.mark.parametrize("core", [sonnet_equations, sonnet_core])
    def test_in(self, core):
        variables = to_sonnet(random_weights(False, seed=9))
        layer = GRU(U, return_sequences=True, reset_after=False)
        from_sonnet(variables).assign_to(layer)
        wanted = unroll(functools.partial(core, variables), sequences())
        np.testing.assert_allclose(layer(sequences()), wanted, **CLOSE)

    def test_variables_of_a_core(self):
        core = new_sonnet_core()
        weights = from_sonnet(
            {"w_i": core.input_to_hidden, "w_h": core.hidden_to_hidden, "b": core.b}
        )
        np.testing.assert_array_equal(weights.kernel, core.input_to_hidden.numpy())

    def test_unconverted_update_gate_shows(self):
        """Negative control."""
        weights = random_weights(False, "keep")
        variables = {"w_i": weights.kernel, "w_h": weights.recurrent_kernel, "b": weights.bias}
        wrong = unroll(functools.partial(sonnet_equations, variables), sequences())
        assert np.max(np.abs(wrong - oracle_states(weights, sequences()))) > 0.05
