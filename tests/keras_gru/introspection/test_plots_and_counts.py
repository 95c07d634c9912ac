"""Pictures, docstrings, parameter counts and errors."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru.introspection.flow
import keras_gru.introspection.states
from keras_gru import GRU, MGU, GRUCell
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
from keras_gru.introspection.states import run
from tests.keras_gru.introspection.problem import (
    LAYERS,
    MASK,
    B,
    D,
    T,
    U,
    problem,
)


@pytest.mark.parametrize(
    "module",
    [keras_gru.introspection.states, keras_gru.introspection.flow],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_docstring_examples(module):
    names = {"np": np, "GRU": GRU, "recommended": recommended}
    failures, tried = doctest.testmod(module, extraglobs=names)
    assert tried
    assert failures == 0


class TestPlots:
    @pytest.mark.slow
    def test_gradient_flow(self):
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
        figure.canvas.draw()
        layer, x, _ = problem()
        assert len(plot_gradient_flow({"GRU": gradient_flow(layer, x)}).axes) == 1

    def test_gates(self):
        pytest.importorskip("matplotlib")
        layer, x, _ = problem()
        activity = gates_over_time(layer, x, mask=MASK)
        figure = plot_gates(activity, row=1, labels=list("abcdef"))
        images = [ax.images[0].get_array() for ax in figure.axes if ax.images]
        np.testing.assert_array_equal(images[0][:, :3], activity.z[1, :3].T)
        assert images[0].mask[:, 3:].all()
        assert not np.ma.is_masked(images[3])
        assert "keeps the state" in figure.axes[0].get_title("left")
        figure.canvas.draw()
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
    run(layer, inputs)  # builds the layer
    for ask in asks:
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
