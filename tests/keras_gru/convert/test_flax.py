"""Converted weights in Flax's layers, and beside these its published equations."""

import dataclasses
import functools

import numpy as np
import pytest

from keras_gru import GRU
from keras_gru.convert import (
    from_flax,
    from_flax_nnx,
    to_flax,
    to_flax_nnx,
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


def flax_equations(params, x, h):
    """As in the Flax documentation of linen.GRUCell."""

    def dense(name, value):
        return value @ params[name]["kernel"] + params[name].get("bias", 0)

    r = sigmoid(dense("ir", x) + dense("hr", h))
    z = sigmoid(dense("iz", x) + dense("hz", h))
    n = np.tanh(dense("in", x) + r * dense("hn", h))
    return (1 - z) * n + z * h


def flax_cell(params, x, h):
    linen = pytest.importorskip("flax.linen")
    return linen.GRUCell(U).apply({"params": params}, h, x)[0]


def nnx_equations(params, x, h):
    """As the Flax documentation of nnx.GRUCell, but without b_hn, which the cell does not have."""
    xi_r, xi_z, xi_n = np.split(x @ params["dense_i"]["kernel"] + params["dense_i"]["bias"], 3, -1)
    hh_r, hh_z, hh_n = np.split(h @ params["dense_h"]["kernel"], 3, -1)
    r, z = sigmoid(xi_r + hh_r), sigmoid(xi_z + hh_z)
    return (1 - z) * np.tanh(xi_n + r * hh_n) + z * h


def nnx_cell(params, x, h):
    nnx = pytest.importorskip("flax.nnx")
    cell = nnx.GRUCell(D, U, rngs=nnx.Rngs(0))
    nnx.update(cell, params)
    return cell(h, x)[0]


class TestFlax:
    @pytest.mark.parametrize("cell", [flax_equations, flax_cell])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    @pytest.mark.parametrize("use_bias", [True, False])
    def test_out(self, use_bias, update_gate, cell):
        weights = random_weights(True, update_gate, use_bias)
        actual = unroll(functools.partial(cell, to_flax(weights)), sequences())
        np.testing.assert_allclose(actual, oracle_states(weights, sequences()), **CLOSE)

    @pytest.mark.parametrize("cell", [flax_equations, flax_cell])
    def test_in(self, cell):
        params = to_flax(random_weights(seed=9))
        layer = GRU(U, return_sequences=True, update_gate="replace")
        from_flax(params).assign_to(layer)
        wanted = unroll(functools.partial(cell, params), sequences())
        np.testing.assert_allclose(layer(sequences()), wanted, **CLOSE)

    def test_parameter_names_are_those_of_flax(self):
        linen = pytest.importorskip("flax.linen")
        jax = pytest.importorskip("jax")
        fresh = linen.GRUCell(U).init(jax.random.key(0), np.zeros((1, U)), np.zeros((1, D)))
        ours = jax.tree.map(np.shape, to_flax(random_weights()))
        assert jax.tree.map(np.shape, fresh["params"]) == ours


def without_candidate_bias(weights):
    """nnx's cell requires these."""
    if weights.bias is None:
        return weights
    bias = weights.bias.copy()
    bias[1, 2 * U :] = 0
    return dataclasses.replace(weights, bias=bias)


class TestFlaxNnx:
    @pytest.mark.parametrize("cell", [nnx_equations, nnx_cell])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    @pytest.mark.parametrize("use_bias", [True, False])
    def test_out(self, use_bias, update_gate, cell):
        weights = without_candidate_bias(random_weights(True, update_gate, use_bias))
        actual = unroll(functools.partial(cell, to_flax_nnx(weights)), sequences())
        np.testing.assert_allclose(actual, oracle_states(weights, sequences()), **CLOSE)

    @pytest.mark.parametrize("cell", [nnx_equations, nnx_cell])
    def test_in(self, cell):
        params = to_flax_nnx(without_candidate_bias(random_weights(seed=9)))
        layer = GRU(U, return_sequences=True, update_gate="replace")
        from_flax_nnx(params).assign_to(layer)
        wanted = unroll(functools.partial(cell, params), sequences())
        np.testing.assert_allclose(layer(sequences()), wanted, **CLOSE)

    def test_parameters_as_flax_hands_them_over(self):
        nnx = pytest.importorskip("flax.nnx")
        cell = nnx.GRUCell(D, U, rngs=nnx.Rngs(3), bias_init=nnx.initializers.normal(1.0))
        state = nnx.state(cell, nnx.Param)
        x = sequences()
        wanted = unroll(lambda x, h: cell(h, x)[0], x)
        for params in (state, nnx.to_pure_dict(state)):
            layer = GRU(U, return_sequences=True)
            from_flax_nnx(params).assign_to(layer)
            np.testing.assert_allclose(layer(x), wanted, **CLOSE)
        ours = to_flax_nnx(from_flax_nnx(state))
        for name, entry in nnx.to_pure_dict(state).items():
            assert entry.keys() == ours[name].keys()
            for key, value in entry.items():
                np.testing.assert_array_equal(ours[name][key], value)

    def test_what_it_cannot_be(self):
        weights = random_weights()
        with pytest.raises(ValueError, match=r"no recurrent bias of the candidate.*values up to"):
            to_flax_nnx(weights)
        with pytest.raises(ValueError, match=r"Flax nnx.*reset_after=True.*False"):
            to_flax_nnx(random_weights(False))
        params = to_flax_nnx(without_candidate_bias(weights))
        del params["dense_i"]["bias"]
        with pytest.raises(ValueError, match=r"Flax nnx.*missing: \['bias'\]"):
            from_flax_nnx(params)
        del params["dense_h"]
        with pytest.raises(ValueError, match=r"Flax nnx.*missing: \['dense_h'\].*dense_i"):
            from_flax_nnx(params)
