"""Gates, gradient flow and parameter counts, compared with the oracle, differences and formulas."""

import doctest
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru.introspection.flow
import keras_gru.introspection.gates
import keras_gru.introspection.parameters
from keras_gru import GRU, MGU, GRUCell, GRUEncoder
from keras_gru.initializers import recommended
from keras_gru.introspection import (
    adding_problem,
    compare_gradient_flow,
    gates_over_time,
    gradient_flow,
    parameter_counts,
    plot_gates,
    plot_gradient_flow,
    state_jacobians,
)
from keras_gru.introspection.trajectory import run
from tests import oracle

B, T, D, U = 3, 6, 4, 5
MASK = np.array([[0, 0, 1, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], bool)
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))
LAYERS = {
    "gru": GRU,
    "keras gru": keras.layers.GRU,
    "lstm": keras.layers.LSTM,
    "rnn": keras.layers.SimpleRNN,
}


def problem(layer_class=GRU, seed=0, **options):
    layer = layer_class(U, dtype="float64", **options)
    layer.build((None, None, D))
    rng = np.random.default_rng(seed)
    layer.set_weights([0.7 * rng.normal(size=w.shape) for w in layer.get_weights()])
    states = [rng.normal(size=(B, U)) for _ in tf.nest.flatten(layer.cell.state_size)]
    return layer, rng.normal(size=(B, T, D)), np.concatenate(states, -1)


def runner(layer):
    """(x, h, mask) → the state (N, S) after the layer has run from h; N is a multiple of B."""
    twin = type(layer).from_config({**layer.get_config(), "return_state": True})
    twin.build((None, None, D))
    twin.set_weights(layer.get_weights())

    def final_state(x, h, mask):
        if x.shape[1] == 0:
            return h
        copies = len(h) // B
        start = [tf.constant(part) for part in np.split(h, h.shape[-1] // U, -1)]
        mask = None if mask is None else np.tile(mask, (copies, 1))
        _, *states = twin(np.tile(x, (copies, 1, 1)), initial_state=start, mask=mask)
        return np.concatenate(states, -1)

    return final_state


def central_differences(function, h, size=1e-5):
    """Jacobians (B, S, S) of a function of states (2·S·B, S) that treats rows independently."""
    S = h.shape[-1]
    steps = size * np.concatenate([np.eye(S), -np.eye(S)])[:, np.newaxis]  # (2S, 1, S)
    values = function((h + steps).reshape(-1, S)).reshape(2, S, len(h), -1)
    return np.moveaxis((values[0] - values[1]) / (2 * size), 0, -1)


@pytest.mark.parametrize(
    "module",
    [
        keras_gru.introspection.gates,
        keras_gru.introspection.flow,
        keras_gru.introspection.parameters,
    ],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_docstring_examples(module):
    names = {"np": np, "GRU": GRU, "recommended": recommended}
    failures, tried = doctest.testmod(module, extraglobs=names)
    assert tried
    assert failures == 0


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


class TestPlots:
    def test_gradient_flow(self, tmp_path):
        pytest.importorskip("matplotlib")
        flows = compare_gradient_flow(*adding_problem(batch=4, steps=5), units=3)
        figure = plot_gradient_flow(flows)
        left, right = figure.axes
        shown = {line.get_label(): line.get_ydata() for line in left.lines}
        assert len(shown) == 4
        np.testing.assert_array_equal(shown["GRU"], np.median(flows["GRU"].spectral, 0))
        assert [label for label in shown if "γλ" in label] == ["vanilla RNN: (γλ)^(T−t), γλ = 1"]
        shown = {line.get_label(): line.get_ydata() for line in right.lines}
        np.testing.assert_array_equal(shown["LSTM"], np.median(flows["LSTM"].loss, 0))
        figure.savefig(tmp_path / "flow.png")
        assert (tmp_path / "flow.png").stat().st_size > 10_000
        layer, x, _ = problem()
        assert len(plot_gradient_flow({"GRU": gradient_flow(layer, x)}).axes) == 1

    def test_gates(self, tmp_path):
        pytest.importorskip("matplotlib")
        layer, x, _ = problem()
        activity = gates_over_time(layer, x, mask=MASK)
        figure = plot_gates(activity, row=1, labels=list("abcdef"))
        images = [ax.images[0].get_array() for ax in figure.axes if ax.images]
        np.testing.assert_array_equal(images[0][:, :3], activity.z[1, :3].T)
        assert images[0].mask[:, 3:].all()
        assert not np.ma.is_masked(images[3])
        assert "keeps the state" in figure.axes[0].get_title("left")
        figure.savefig(tmp_path / "gates.png")
        assert (tmp_path / "gates.png").stat().st_size > 10_000
        plot_gates(activity, row=2)  # masked at every step
        longer = plot_gates(gates_over_time(GRU(2), np.tile(x, (1, 4, 1))[:, :20]))
        for axis in (longer.axes[0].yaxis, longer.axes[3].xaxis):
            np.testing.assert_array_equal(axis.get_majorticklocs() % 1, 0)
        with pytest.raises(ValueError, match=r"labels.*6.*2"):
            plot_gates(activity, labels=["a", "b"])


def test_parameter_counts():
    for features, units in ((100, 256), (1, 1), (7, 3)):
        for count in parameter_counts(features, units):
            assert count.actual == count.predicted
            formula = count.formula.replace("U(", "*U*(").removeprefix("*")
            value = eval(formula, {"U": units, "D": features})
            assert value == count.actual
    assert [c.actual for c in parameter_counts(100, 256)] == [91_392, 274_176, 274_944, 365_568]


@pytest.mark.parametrize(
    "layer",
    [
        *(kind(U) for kind in LAYERS.values()),
        GRUCell(U),
        keras.layers.GRUCell(U),
        MGU(U),
        keras.layers.RNN([GRUCell(U), keras.layers.LSTMCell(2)]),
    ],
    ids=lambda layer: layer.name,
)
def test_inputs_with_other_features_than_the_layer_s_are_named(layer):
    inputs = np.zeros((B, T, D), "float32")
    wanted = rf"`inputs` must have shape \(B, T, {D}\).* Received: \({B}, {T}, {D + 1}\)"
    asks = [gradient_flow, state_jacobians]
    if isinstance(layer, keras.layers.GRU | keras.layers.GRUCell | GRU | GRUCell):
        asks.append(gates_over_time)
    for ask in asks:
        ask(layer, inputs)  # builds the layer
        with pytest.raises(ValueError, match=wanted):
            ask(layer, np.zeros((B, T, D + 1), "float32"))


def test_inputs_that_are_no_real_numbers_are_named():
    for inputs, dtype in (([[["a"]]], "string"), ([[[1j]]], "complex128")):
        with pytest.raises(ValueError, match=f"`inputs` must hold real numbers. Received: {dtype}"):
            gradient_flow(GRU(U), inputs)


def test_stacked_cells_with_states_of_several_parts():
    cells = [GRUCell(U), keras.layers.LSTMCell(2)]
    layer = keras.layers.RNN(cells, return_state=True)
    inputs = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
    _, *states = layer(inputs)
    expected = np.concatenate([part for state in states for part in tf.nest.flatten(state)], -1)
    found = run(layer, inputs).states[:, -1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
