"""Gradient flow, against the oracle and finite differences; comparisons of layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.initializers import recommended
from keras_gru.introspection import (
    adding_problem,
    compare_gradient_flow,
    gradient_flow,
    state_jacobians,
)
from tests import oracle
from tests.keras_gru.introspection.problem import (
    CONVENTIONS,
    LAYERS,
    MASK,
    B,
    D,
    T,
    U,
    central_differences,
    problem,
    runner,
)


class TestGradientFlow:
    @pytest.mark.parametrize("masked", [False, True])
    @pytest.mark.parametrize("name", LAYERS)
    def test_jacobians_equal_finite_differences(self, name, masked):
        """∂h_T/∂h_t for every t, by changing the state at t and running the layer from there."""
        layer, x, h0 = problem(LAYERS[name])
        mask = MASK if masked else None
        flow = gradient_flow(layer, x, initial_state=h0, mask=mask)
        final_state = runner(layer)
        for t in range(T + 1):
            before, after = (None, None) if mask is None else (mask[:, :t], mask[:, t:])
            at_t = final_state(x[:, :t], h0, before)
            jacobian = central_differences(
                lambda h, t=t, after=after: final_state(x[:, t:], h, after), at_t
            )
            wanted = np.linalg.norm(jacobian, ord=2, axis=(-2, -1))
            np.testing.assert_allclose(flow.spectral[:, t], wanted, rtol=1e-7, atol=1e-9)
            wanted = np.linalg.norm(jacobian, axis=(-2, -1))
            np.testing.assert_allclose(flow.frobenius[:, t], wanted, rtol=1e-7, atol=1e-9)
        assert (flow.spectral <= flow.product_of_steps * (1 + 1e-9)).all()
        assert (flow.spectral <= flow.frobenius * (1 + 1e-9)).all()

    @pytest.mark.parametrize("go_backwards", [False, True])
    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    def test_loss_gradient_equals_oracle(self, reset_after, update_gate, go_backwards):
        """The oracle's gradient with respect to the initial state of the remaining steps."""
        convention = {"reset_after": reset_after, "update_gate": update_gate}
        layer, x, h0 = problem(go_backwards=go_backwards, **convention)
        upstream = np.random.default_rng(3).normal(size=(B, T, U))
        flow = gradient_flow(
            layer, x, lambda states: tf.reduce_sum(states * upstream), initial_state=h0, mask=MASK
        )
        order = slice(None, None, -1 if go_backwards else 1)
        for i in range(B):
            row, mask, start = x[i][order], MASK[i][order], h0[i]
            for t in range(T):
                h = start
                if t:
                    states, _ = oracle.forward(
                        row[:t], start, *layer.get_weights(), mask=mask[:t], **convention
                    )
                    h = states[-1]
                _, cache = oracle.forward(
                    row[t:], h, *layer.get_weights(), mask=mask[t:], **convention
                )
                _, dh, *_ = oracle.backward(
                    upstream[i, t:],
                    np.zeros(U),
                    cache,
                    row[t:],
                    *layer.get_weights()[:2],
                    **convention,
                )
                # The oracle starts after h_t, so the direct effect of h_t on the loss is added.
                direct = upstream[i, t - 1] if t else 0
                np.testing.assert_allclose(flow.loss[i, t], np.linalg.norm(dh + direct), rtol=1e-9)
            np.testing.assert_allclose(flow.loss[i, T], np.linalg.norm(upstream[i, -1]), rtol=1e-9)

    def test_loss_gradient_of_an_lstm_equals_finite_differences(self):
        layer, x, h0 = problem(keras.layers.LSTM)
        weigh = np.random.default_rng(3).normal(size=(B, U))
        flow = gradient_flow(
            layer, x, lambda states: tf.reduce_sum(states[:, -1] ** 2 * weigh), initial_state=h0
        )
        final_state = runner(layer)

        def loss_of_rows(x, h):
            weights = np.tile(weigh, (len(h) // B, 1))
            return np.sum(final_state(x, h, None)[:, :U] ** 2 * weights, -1)

        for t in range(T):
            at_t = final_state(x[:, :t], h0, None)
            gradient = central_differences(lambda h, t=t: loss_of_rows(x[:, t:], h), at_t)[:, 0]
            wanted = np.linalg.norm(gradient, axis=-1)
            np.testing.assert_allclose(flow.loss[:, t], wanted, rtol=1e-6, atol=1e-9)

    def test_step_jacobians(self):
        layer, x, h0 = problem()
        steps = state_jacobians(layer, x, h0, MASK)
        assert steps.shape == (B, T, U, U)
        assert steps.dtype == np.float64
        np.testing.assert_array_equal(steps[~MASK], np.tile(np.eye(U), (12, 1, 1)))
        final_state = runner(layer)
        by_differences = central_differences(lambda h: final_state(x[:, :1], h, None), h0)
        np.testing.assert_allclose(steps[1, 0], by_differences[1], rtol=1e-7, atol=1e-9)

    @pytest.mark.parametrize(
        ("activation", "slope"), [("tanh", 1.0), ("sigmoid", 0.25), ("relu", 1.0)]
    )
    @pytest.mark.parametrize("radius", [0.8, 1.5])
    def test_bound_of_the_vanilla_rnn(self, radius, activation, slope):
        layer, x, h0 = problem(keras.layers.SimpleRNN, activation=activation)
        kernel, _, bias = layer.get_weights()
        rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(U, U)))[0]
        layer.set_weights([kernel, radius * rotation, bias])
        flow = gradient_flow(layer, x, initial_state=h0)
        assert flow.gamma_lambda == pytest.approx(slope * radius)
        np.testing.assert_allclose(flow.bound, [(slope * radius) ** k for k in range(T, -1, -1)])
        assert (flow.spectral <= flow.bound + 1e-12).all()
        assert (flow.product_of_steps <= flow.bound + 1e-12).all()

    def test_bound_is_reached_by_a_linear_rotation(self):
        layer, x, h0 = problem(keras.layers.SimpleRNN, activation="linear")
        kernel, _, bias = layer.get_weights()
        layer.set_weights([kernel, 0.9 * np.eye(U)[::-1], bias])
        flow = gradient_flow(layer, x, initial_state=h0)
        np.testing.assert_allclose(flow.spectral, np.tile(flow.bound, (B, 1)), rtol=1e-12)

    def test_bound_in_half_precision(self):
        orthogonal = keras.initializers.Orthogonal(seed=0)
        layer = keras.layers.SimpleRNN(U, recurrent_initializer=orthogonal, dtype="float16")
        flow = gradient_flow(layer, np.zeros((B, T, D), "float16"))
        assert flow.gamma_lambda == pytest.approx(1, abs=0.01)

    def test_gated_cells_have_no_such_bound(self):
        for layer_class in (GRU, keras.layers.LSTM):
            layer, x, _ = problem(layer_class)
            assert gradient_flow(layer, x).bound is None
        layer, x, _ = problem(keras.layers.SimpleRNN, activation="gelu")
        assert gradient_flow(layer, x).bound is None

    def test_layer_without_a_cell(self):
        with pytest.raises(ValueError, match=r"recurrent layer with one cell.*Dense"):
            gradient_flow(keras.layers.Dense(3), np.zeros((B, T, D)))


class TestComparison:
    def test_adding_problem(self):
        inputs, targets = adding_problem(batch=50, steps=11, seed=1)
        assert inputs.shape == (50, 11, 2)
        marks = inputs[..., 1]
        assert set(np.unique(marks)) == {0, 1}
        np.testing.assert_array_equal(marks[:, :5].sum(1), 1)
        np.testing.assert_array_equal(marks[:, 5:].sum(1), 1)
        for row, target in zip(inputs, targets, strict=True):
            assert sum(v for v, mark in row if mark) == pytest.approx(target[0], abs=1e-6)
        with pytest.raises(ValueError, match=r"steps.*at least 2.*1"):
            adding_problem(steps=1)

    @pytest.mark.slow
    def test_reach_is_a_matter_of_biases(self):
        """The docstring's claims about the initial values."""
        flows = compare_gradient_flow(
            *adding_problem(batch=8, steps=60),
            layers={
                "shrinking RNN": keras.layers.SimpleRNN(
                    16, recurrent_initializer=keras.initializers.Orthogonal(0.9)
                ),
                "orthogonal RNN": keras.layers.SimpleRNN(16),
                "LSTM": keras.layers.LSTM(16),
                "zero": GRU(16),
                "chrono": GRU(16, **recommended(max_period=60)),
            },
        )
        reach = {name: np.median(flow.spectral[:, 0]) for name, flow in flows.items()}
        assert reach["shrinking RNN"] < 0.9**60
        assert reach["zero"] < 1e-8 < reach["LSTM"] < reach["orthogonal RNN"] < 0.05
        assert reach["chrono"] > 0.2
        for flow in flows.values():
            assert flow.loss.shape == (8, 61)
            np.testing.assert_allclose(flow.spectral[:, -1], 1)

    @pytest.mark.slow
    def test_defaults_seeds_and_training(self):
        task = adding_problem(batch=4, steps=5)
        flows = compare_gradient_flow(*task, units=3)
        assert list(flows) == ["vanilla RNN", "LSTM", "GRU"]
        again = compare_gradient_flow(*task, units=3)
        for name, flow in flows.items():
            np.testing.assert_array_equal(again[name].spectral, flow.spectral)
        untrained, trained = (
            compare_gradient_flow(
                *task, layers={"GRU": GRU(3, **recommended(seed=1))}, epochs=epochs
            )["GRU"].spectral
            for epochs in (0, 1)
        )
        assert (trained != untrained)[:, :-1].all()
