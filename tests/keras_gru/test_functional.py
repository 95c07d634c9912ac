"""The public functions compared with the NumPy oracle, finite differences and Keras."""

import doctest
import itertools
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru
from keras_gru import GRU, GRUCell, functional
from keras_gru.functional import Convention, Gates
from tests import oracle

B, T, D, U = 3, 5, 4, 6
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))
MASK = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]], bool)


def arrays(reset_after=True, use_bias=True, seed=0):
    """Asymmetric random inputs, a state and weights, float64."""
    rng = np.random.default_rng(seed)
    bias = rng.normal(size=functional.bias_shape(U, reset_after))
    return {
        "x": rng.normal(size=(B, T, D)),
        "h": rng.normal(size=(B, U)),
        "kernel": rng.normal(size=functional.kernel_shape(D, U)),
        "recurrent_kernel": rng.normal(size=functional.recurrent_kernel_shape(U)),
        "bias": bias if use_bias else None,
    }


def run_by_oracle(values, mask=None, **convention):
    """States (B, T, U) and, for each row, what `oracle.backward` needs."""
    weights = [values[name] for name in ("kernel", "recurrent_kernel", "bias")]
    rows = [
        oracle.forward(x, h, *weights, mask=None if mask is None else mask[i], **convention)
        for i, (x, h) in enumerate(zip(values["x"], values["h"], strict=True))
    ]
    return np.stack([states for states, _ in rows]), [cache for _, cache in rows]


def close(actual, wanted, tolerance=1e-12):
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def test_is_exported_and_its_examples_are_true():
    assert "functional" in keras_gru.__all__
    failures, tried = doctest.testmod(keras_gru.functional, extraglobs={"np": np})
    assert (failures, tried) == (0, 11)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_gates_of_known_states(reset_after, update_gate, use_bias):
    values = arrays(reset_after, use_bias)
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    states, caches = run_by_oracle(values, **convention)
    x, h, *weights = values.values()
    before = np.concatenate([h[:, None], states[:, :-1]], axis=1)
    gates = functional.gates(x, before, *weights, Convention(**convention))
    for name, place in (("z", 1), ("r", 2), ("g", 3)):
        wanted = [[step[place] for step in cache] for cache in caches]
        close(getattr(gates, name), wanted)


@pytest.mark.parametrize("reset_after", [True, False])
def test_leading_axes_broadcast(reset_after):
    """Every input with every state: as many steps as pairs."""
    values = arrays(reset_after)
    _, h, *weights = values.values()
    x = np.random.default_rng(1).normal(size=(7, D))
    pairs = functional.step(x, h[:, None], *weights, Convention(reset_after))
    assert pairs.shape == (B, 7, U)
    for i, m in np.ndindex(B, 7):
        (wanted,), _ = oracle.forward(x[m : m + 1], h[i], *weights, reset_after=reset_after)
        close(pairs[i, m], wanted)


@pytest.mark.slow_cases
@pytest.mark.parametrize("where", ["eager", "graph", "xla"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_sequence_and_its_gradients(reset_after, update_gate, mask, where):
    values = arrays(reset_after)
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    states, caches = run_by_oracle(values, mask, **convention)
    upstream = np.random.default_rng(9).normal(size=states.shape)
    sources = [tf.constant(v) for v in values.values()]

    def run(*sources):
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = functional.sequence(
                *sources, Convention(**convention), mask=mask, return_gates=True
            )
            loss = tf.reduce_sum(result.states * upstream)
        return result.states, result.final, result.gates, tape.gradient(loss, sources)

    if where != "eager":
        run = tf.function(run, jit_compile=where == "xla")
    actual, final, gates, gradients = run(*sources)
    close(actual, states)
    close(final, states[:, -1])
    for place, gate in enumerate(gates, 1):
        wanted = [[np.zeros(U) if s is None else s[place] for s in cache] for cache in caches]
        close(gate, wanted)
    rows = [
        oracle.backward(
            upstream[i],
            np.zeros(U),
            caches[i],
            values["x"][i],
            values["kernel"],
            values["recurrent_kernel"],
            **convention,
        )
        for i in range(B)
    ]
    close(gradients[0], [row[0] for row in rows], 1e-11)
    close(gradients[1], [row[1] for row in rows], 1e-11)
    for place in (2, 3, 4):
        close(gradients[place], sum(row[place] for row in rows), 1e-11)


@pytest.mark.parametrize("function", ["step", "gates"])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_gradients_by_finite_differences(reset_after, update_gate, layer_norm, function):
    """Fourth-order central differences along a random direction, for each argument."""
    rng = np.random.default_rng(4)
    values = {k: tf.constant(v) for k, v in arrays(reset_after).items()} | {
        "x": tf.constant(rng.normal(size=(B, D))),
        "recurrent_mask": Gates(*map(tf.constant, rng.uniform(0, 2, size=(3, B, U)))),
    }
    if layer_norm:
        values["layer_norm_gain"] = tf.constant(rng.normal(size=(2, 3 * U)))
    weights = tf.constant(rng.normal(size=(3, B, U)))
    convention = Convention(reset_after, update_gate)

    @tf.function(reduce_retracing=True)
    def loss(values):
        result = getattr(functional, function)(**values, convention=convention)
        return tf.reduce_sum(result * weights[0] if function == "step" else result * weights)

    with tf.GradientTape() as tape:
        tape.watch(values)
        value = loss(values)
    gradients = tape.gradient(value, values)
    size = 1e-3
    for name in set(values) - {"recurrent_mask"}:
        direction = rng.normal(size=values[name].shape)
        at = [
            float(loss(values | {name: values[name] + k * size * direction}))
            for k in (-2, -1, 1, 2)
        ]
        numeric = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * size)
        np.testing.assert_allclose(
            np.sum(gradients[name] * direction), numeric, rtol=1e-8, atol=1e-8, err_msg=name
        )


@pytest.mark.parametrize("reset_after", [True, False])
def test_options_are_those_of_the_layer(reset_after):
    """Layer normalisation and dropout masks with the cell's own weights, as variables."""
    cell = GRUCell(U, reset_after=reset_after, layer_norm=True, dtype="float64")
    x, h = arrays()["x"][:, 0], arrays()["h"]
    cell.build(x.shape)
    for weight in cell.weights:
        weight.assign(np.random.default_rng(2).normal(size=weight.shape))
    h_new = functional.step(
        x,
        h,
        cell.kernel,
        cell.recurrent_kernel,
        cell.bias,
        cell.convention,
        layer_norm_gain=cell.layer_norm_gain,
    )
    close(h_new, cell(x, h)[0])


@pytest.mark.parametrize("reset_after", [True, False])
def test_each_gate_multiplies_the_state_by_its_own_mask(reset_after):
    values = arrays(reset_after)
    x, h, kernel, recurrent_kernel, bias = values.values()
    masks = np.random.default_rng(3).uniform(0, 2, size=(3, B, U))
    gates = functional.gates(
        x[:, 0],
        h,
        kernel,
        recurrent_kernel,
        bias,
        Convention(reset_after),
        recurrent_mask=Gates(*masks),
    )
    W, R = np.split(kernel, 3, 1), np.split(recurrent_kernel, 3, 1)
    b, b_rec = bias if reset_after else (bias, np.zeros_like(bias))
    b, b_rec = np.split(b, 3), np.split(b_rec, 3)
    z, r = (
        oracle.sigmoid(x[:, 0] @ W[k] + b[k] + (h * masks[k]) @ R[k] + b_rec[k]) for k in (0, 1)
    )
    if reset_after:
        recurrent = r * ((h * masks[2]) @ R[2] + b_rec[2])
    else:
        recurrent = (r * h * masks[2]) @ R[2]
    close(gates, (z, r, np.tanh(x[:, 0] @ W[2] + b[2] + recurrent)))


def test_backwards_zoneout_and_the_zero_state():
    values = arrays()
    x, _, *weights = values.values()
    layer = GRU(U, return_sequences=True, go_backwards=True, zoneout=0.25, dtype="float64")
    layer.build(x.shape)
    layer.set_weights(weights)
    result = functional.sequence(x, None, *weights, go_backwards=True, zoneout=0.25)
    close(result.states, layer(x))
    in_order = functional.sequence(
        x, None, *weights, go_backwards=True, zoneout=0.25, processing_order=False
    )
    close(in_order.states, result.states[:, ::-1])
    close(in_order.states[:, 0], result.final)


def test_unknown_sizes_in_one_trace():
    values = arrays()
    x, _, *weights = values.values()
    states, _ = run_by_oracle(values | {"h": np.zeros((B, U))}, reset_after=True)

    @tf.function(input_signature=[tf.TensorSpec((None, None, D), tf.float64)])
    def run(x):
        before = functional.sequence(x, None, *weights).states
        return before, functional.gates(x, before, *weights).z

    whole, gates = run(x)
    short, _ = run(x[:1, :2])
    close(whole, states)
    close(short, states[:1, :2])
    assert gates.shape == (B, T, U)


def test_autograph_converts_the_callers_code_alone():
    """Conversion of the library would take most of the time of a first call."""

    @tf.function
    def run(x, h, *weights):
        with tf.GradientTape() as tape:
            tape.watch(h)
            final = functional.sequence(x, h, *weights).final
            after = functional.step(x[:, 0], final, *weights)
            found = functional.gates(x[:, 0], after, *weights).z
        return tape.gradient(found, h)

    def converted():
        return {each for each in sys.modules if each.startswith("__autograph_generated_file")}

    before = converted()
    assert run(*map(tf.constant, arrays().values())).shape == (B, U)
    assert len(converted() - before) == 1


def test_names_of_activations():
    values = arrays()
    x, h, *weights = values.values()
    named = Convention(activation="relu", recurrent_activation="hard_sigmoid")
    assert named == Convention(
        activation=keras.activations.relu, recurrent_activation=keras.activations.hard_sigmoid
    )
    theirs = keras.layers.GRU(
        U, activation="relu", recurrent_activation="hard_sigmoid", dtype="float64"
    )
    theirs.build(x.shape)
    theirs.set_weights(weights)
    close(functional.sequence(x, h, *weights, named).final, theirs(x, initial_state=h))
    with pytest.raises(ValueError, match=r"`update_gate` must be one of .*'other'"):
        Convention(update_gate="other")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((B, D - 1))}, r"`kernel` must be float64 of shape \(3, 18\).*\(4, 18\)"),
        ({"x": np.zeros((B, D), int)}, r"`x` must hold floating-point numbers.*int64"),
        ({"x": np.float64(1)}, r"`x` must hold floating-point numbers.*\(\)"),
        ({"x": np.zeros((B + 1, D))}, r"`x` and `h` must broadcast.*\(4, 4\) and \(3, 6\)"),
        ({"h": np.zeros((B, U + 1))}, r"`h` must be float64 of shape \(3, 6\).*\(3, 7\)"),
        ({"h": np.zeros((B, U), "float32")}, r"`h` must be float64.*float32"),
        ({"kernel": np.zeros((D, U))}, r"`kernel` must be .* \(4, 18\).*\(4, 6\)"),
        ({"recurrent_kernel": np.zeros((U, U))}, r"`recurrent_kernel` must be .* \(6, 18\)"),
        ({"recurrent_kernel": np.zeros(U)}, r"`recurrent_kernel` must be .*\(6,\)"),
        ({"bias": np.zeros(3 * U)}, r"`bias` must be .* \(2, 18\).*\(18,\)"),
        ({"convention": Convention(False)}, r"`bias` must be .* \(18,\).*\(2, 18\)"),
        ({"layer_norm_gain": np.zeros(3 * U)}, r"`layer_norm_gain` must be .* \(2, 18\)"),
        ({"recurrent_mask": np.ones((B, U))}, r"`recurrent_mask` must be a Gates of 3 masks"),
        (
            {"recurrent_mask": Gates(*np.ones((3, B, 1)))},
            r"`recurrent_mask.z` must be .* \(3, 6\).*\(3, 1\)",
        ),
    ],
)
@pytest.mark.parametrize("function", [functional.step, functional.gates])
def test_errors_of_steps_name_the_argument(function, changes, message):
    values = arrays() | {"x": np.zeros((B, D))} | changes
    with pytest.raises(ValueError, match=message):
        function(**values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((B, D))}, r"`x` must have shape \(batch, steps, features\).*\(3, 4\)"),
        ({"initial_state": np.zeros((1, U))}, r"`initial_state` must be .* \(3, 6\).*\(1, 6\)"),
        ({"bias": np.zeros(3 * U)}, r"`bias` must be .* \(2, 18\).*\(18,\)"),
        ({"mask": np.ones((B, T))}, r"`mask` must be boolean, of shape \(3, 5\).*float64"),
        ({"mask": np.ones((T, B), bool)}, r"`mask` must be boolean.*\(5, 3\)"),
        ({"zoneout": np.ones((B, U))}, r"`zoneout` must be .* \(3, 5, 6\).*\(3, 6\)"),
        ({"recurrent_mask": Gates(*np.ones((3, U)))}, r"`recurrent_mask.z` must be .*\(6,\)"),
        ({"convention": Convention(activation="gelu")}, r"`convention`.*linear.*gelu"),
        ({"path": "cudnn"}, r"`path` must be 'auto', 'xla' or 'plain'.*'cudnn'"),
    ],
)
def test_errors_of_sequences_name_the_argument(changes, message):
    values = arrays()
    values["initial_state"] = values.pop("h")
    with pytest.raises(ValueError, match=message):
        functional.sequence(**values | changes)
