"""Gates over time, against the oracle."""

import keras
import numpy as np
import pytest

from keras_gru import GRU, GRUCell, GRUEncoder
from keras_gru.introspection import (
    gates_over_time,
)
from tests import oracle
from tests.keras_gru.introspection.problem import CONVENTIONS, MASK, B, D, T, U, problem


class TestGates:
    @pytest.mark.parametrize("masked", [False, True])
    @pytest.mark.parametrize("go_backwards", [False, True])
    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    def test_equal_oracle(self, reset_after, update_gate, go_backwards, masked):
        layer, x, h0 = problem(
            reset_after=reset_after, update_gate=update_gate, go_backwards=go_backwards
        )
        mask = MASK if masked else None
        activity = gates_over_time(layer, x, h0, mask)
        order = slice(None, None, -1 if go_backwards else 1)
        for i in range(B):
            states, cache = oracle.forward(
                x[i][order],
                h0[i],
                *layer.get_weights(),
                reset_after=reset_after,
                update_gate=update_gate,
                mask=None if mask is None else mask[i][order],
            )
            np.testing.assert_allclose(activity.state[i], states[order], atol=1e-12)
            for t, step in enumerate(cache):
                gates = [gate[i][order][t] for gate in (activity.z, activity.r, activity.g)]
                wanted = [np.full(U, np.nan)] * 3 if step is None else step[1:4]
                np.testing.assert_allclose(gates, wanted, atol=1e-12)
        assert activity.update_gate == update_gate

    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    @pytest.mark.parametrize(
        "option", [{"layer_norm": True}, {"zoneout": 0.3}, {"learn_initial_state": True}], ids=str
    )
    def test_gates_of_every_option_make_the_states_of_the_layer(
        self, option, reset_after, update_gate
    ):
        options = {**option, "reset_after": reset_after, "update_gate": update_gate}
        layer, x, _ = problem(return_sequences=True, **options)
        states = layer(x).numpy()
        activity = gates_over_time(layer, x)
        start = np.tile(layer.cell.get_initial_state(1)[0], (B, 1))
        previous = np.concatenate([start[:, np.newaxis], states[:, :-1]], 1)
        z = activity.z if update_gate == "keep" else 1 - activity.z
        share = option.get("zoneout", 0)
        made = share * previous + (1 - share) * (z * previous + (1 - z) * activity.g)
        np.testing.assert_allclose(made, states, atol=1e-12)
        if not layer.layer_norm:
            twin = GRU.from_config({**layer.get_config(), "return_gates": True})
            twin.build((None, None, D))
            twin.set_weights(layer.get_weights())
            _, *gates = twin(x)
            for ours, theirs in zip((activity.z, activity.r, activity.g), gates, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-12)

    def test_state_is_what_the_layer_returns(self):
        layer, x, _ = problem(return_sequences=True)
        np.testing.assert_allclose(gates_over_time(layer, x).state, layer(x), atol=1e-12)

    def test_keras_layer_cell_and_layer_of_an_encoder(self):
        layer, x, h0 = problem()
        theirs, _, _ = problem(keras.layers.GRU)
        theirs.set_weights(layer.get_weights())
        wanted = gates_over_time(layer, x, h0)
        for other in (theirs, layer.cell):
            np.testing.assert_allclose(gates_over_time(other, x, [h0]).z, wanted.z, atol=1e-12)
        encoder = GRUEncoder(U, 2, return_sequences=True, dtype="float64")
        assert gates_over_time(encoder.layers[0], x).r.shape == (B, T, U)
        assert gates_over_time(GRUCell(U), x).r.shape == (B, T, U)

    def test_errors(self):
        layer, x, _ = problem()
        for arguments, words in (
            ((layer, x[0]), r"inputs.*\(B, T, D\).*\(6, 4\)"),
            ((layer, x[:, :0]), r"inputs.*none of them zero.*\(3, 0, 4\)"),
            ((layer, x, np.zeros((B, 7))), r"initial_state.*\(3, 5\).*\(3, 7\)"),
            ((layer, x, None, MASK[:, :2]), r"mask.*\(3, 6\).*\(3, 2\)"),
            ((keras.layers.LSTM(3), x), r"GRU or a GRUCell.*LSTM"),
            ((keras.layers.Dense(3), x), r"GRU or a GRUCell.*Dense"),
        ):
            with pytest.raises(ValueError, match=words):
                gates_over_time(*arguments)
