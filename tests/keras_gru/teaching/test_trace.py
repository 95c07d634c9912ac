import copy
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, MGU, CoupledGRU
from keras_gru.functional import Gates
from keras_gru.teaching.cells import CELLS
from keras_gru.teaching.network import NetworkError, parse_network, read_network
from keras_gru.teaching.trace import trace
from tests import oracle
from tests.keras_gru.plain_network import by_autodiff, by_differences
from tests.keras_gru.teaching.random_networks import NETWORKS, random_fields

GATES = ("z", "r", "g")
COMMON = {"h_new", "y", "loss", "dh", "dx", "dh_output", "dh_future", "dh_new"}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("differentiate", [by_autodiff, by_differences])
def test_every_quantity_equals_the_derivative_of_the_plain_forward_pass(name, differentiate):
    network = parse_network(NETWORKS[name])
    found = trace(network)
    steps, totals = differentiate(network)
    tolerance = 1e-12 if differentiate is by_autodiff else 2e-9
    compared = set()
    for ours, theirs in zip(found.steps, steps, strict=True):
        for quantity, value in theirs.items():
            if quantity in ours:
                np.testing.assert_allclose(ours[quantity], value, atol=tolerance, err_msg=quantity)
                compared.add(quantity)
    assert compared >= COMMON
    lines = found.forward_lines + found.backward_lines
    parts = ("xW_", "hU_", "slope_")
    unchecked = {line.name for line in lines if not line.name.startswith(parts)} - compared
    assert not unchecked
    assert set(totals) <= set(found.totals)
    for quantity, value in totals.items():
        np.testing.assert_allclose(found.totals[quantity], value, atol=tolerance, err_msg=quantity)


@pytest.mark.parametrize(
    "name",
    [n for n, f in NETWORKS.items() if f["cell"] == "gru" and f.get("activation") is None],
)
def test_states_and_gradients_equal_the_oracle(name):
    network = parse_network(NETWORKS[name])
    found = trace(network)
    kernel = np.concatenate([network.kernel[gate] for gate in GATES], axis=1)
    recurrent = np.concatenate([network.recurrent_kernel[gate] for gate in GATES], axis=1)
    bias = np.concatenate([network.bias[gate] for gate in GATES])
    if network.reset_after:
        bias = np.stack([bias, np.concatenate([network.recurrent_bias[gate] for gate in GATES])])
    convention = {"reset_after": network.reset_after, "update_gate": network.update_gate}
    states, cache = oracle.forward(
        network.inputs, network.initial_state, kernel, recurrent, bias, **convention
    )
    np.testing.assert_allclose([step["h_new"] for step in found.steps], states, atol=1e-14)
    d_states = np.array([step["dh_output"] for step in found.steps])
    dx, dh0, dkernel, drecurrent, dbias = oracle.backward(
        d_states, np.zeros(network.units), cache, network.inputs, kernel, recurrent, **convention
    )
    np.testing.assert_allclose([step["dx"] for step in found.steps], dx, atol=1e-13)
    np.testing.assert_allclose(found.steps[0]["dh"], dh0, atol=1e-13)
    for gate, dW, dU in zip(
        GATES, np.split(dkernel, 3, axis=1), np.split(drecurrent, 3, axis=1), strict=True
    ):
        np.testing.assert_allclose(found.totals[f"dW_{gate}"], dW, atol=1e-13)
        np.testing.assert_allclose(found.totals[f"dU_{gate}"], dU, atol=1e-13)
    ours = np.concatenate([found.totals[f"db_{gate}"] for gate in GATES])
    if network.reset_after:
        ours = np.stack([ours, np.concatenate([found.totals[f"dc_{gate}"] for gate in GATES])])
    np.testing.assert_allclose(ours, np.reshape(dbias, ours.shape), atol=1e-13)


def test_gates_have_the_order_of_the_layer():
    assert Gates._fields == GATES == tuple(CELLS["gru"].blocks)


LAYERS = {
    "rnn": (keras.layers.SimpleRNN, {}, {}),
    "lstm": (keras.layers.LSTM, {}, {}),
    "mgu": (MGU, {"update_gate": "keep"}, {"update_gate": "keep"}),
    "minimal_gru": (MGU, {"gate_candidate": False}, {"update_gate": "replace"}),
    "coupled_gru": (CoupledGRU, {}, {"update_gate": "replace"}),
}


@pytest.mark.parametrize("cell", LAYERS)
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_weights_of_every_cells_layer_run_as_they_are(cell, activation):
    """States, final gradients and the order of the blocks, beside layers of Keras and our own."""
    layer_class, options, fields = LAYERS[cell]
    layer = layer_class(2, activation=activation, return_sequences=True, dtype="float64", **options)
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(1, 4, 3))
    layer.build(inputs.shape)
    weights = [rng.normal(size=weight.shape) for weight in layer.get_weights()]
    layer.set_weights(weights)
    V, targets = rng.normal(size=(2, 2)), rng.normal(size=(4, 2))
    network = parse_network(
        {
            "cell": cell,
            "activation": activation,
            **fields,
            "weights": {
                name: weight.tolist()
                for name, weight in zip(
                    ("kernel", "recurrent_kernel", "bias"), weights, strict=True
                )
            },
            "inputs": inputs[0].tolist(),
            "output": {"W": V.T.tolist(), "loss": "squared_error"},
            "targets": targets.tolist(),
            "reduction": "sum",
        }
    )
    found = trace(network)
    with tf.GradientTape() as tape:
        states = layer(tf.constant(inputs))
        loss = 0.5 * tf.reduce_sum((states[0] @ V - targets) ** 2)
    np.testing.assert_allclose([step["h_new"] for step in found.steps], states[0], atol=1e-12)
    for letter, gradient in zip("WUb", tape.gradient(loss, layer.trainable_weights), strict=True):
        ours = [found.totals[f"d{letter}_{block}"] for block in network.blocks]
        np.testing.assert_allclose(np.concatenate(ours, axis=-1), gradient, atol=1e-12)
    V_count = V.size + 2
    assert network.parameter_count() == layer.count_params() + V_count


@pytest.mark.parametrize("reset_after", [False, True])
def test_weights_of_a_layer_run_as_they_are(reset_after):
    layer = GRU(2, reset_after=reset_after, return_sequences=True, bias_initializer="normal")
    inputs = np.random.default_rng(0).normal(size=(1, 4, 3)).astype("float32")
    states = np.asarray(layer(inputs))[0]
    kernel, recurrent_kernel, bias = (
        weight.astype(float).tolist() for weight in layer.get_weights()
    )
    network = parse_network(
        {
            "update_gate": "keep",
            "reset_after": reset_after,
            "weights": {"kernel": kernel, "recurrent_kernel": recurrent_kernel, "bias": bias},
            "inputs": inputs[0].astype(float).tolist(),
        }
    )
    found = trace(network)
    np.testing.assert_allclose([step["h_new"] for step in found.steps], states, atol=1e-6)
    assert found.totals == {}
    assert network.parameter_count() == layer.count_params()


def test_the_update_descends():
    fields = NETWORKS["keep_after"]
    network = parse_network(fields)
    found = trace(network)
    after = copy.deepcopy(fields)
    for gate in GATES:
        parts = after["weights"][gate]
        parts["W"] = found.totals[f"new_W_{gate}"].T.tolist()
        parts["U"] = found.totals[f"new_U_{gate}"].T.tolist()
        parts["b"] = found.totals[f"new_b_{gate}"].tolist()
        parts["b_recurrent"] = found.totals[f"new_c_{gate}"].tolist()
    after["output"]["W"] = found.totals["new_W_out"].T.tolist()
    after["output"]["b"] = found.totals["new_b_out"].tolist()
    lower = trace(parse_network(after)).totals["loss"]
    squared = sum(
        np.sum(v**2) for name, v in found.totals.items() if name[:2] in ("dW", "dU", "db", "dc")
    )
    assert found.totals["loss"] - lower == pytest.approx(0.1 * squared, rel=0.2)


def test_substitutes_are_handed_on_but_not_written_down():
    network = parse_network(NETWORKS["keep_before"])
    plain = trace(network)
    substitute = np.array([0.5, np.nan])
    found = trace(network, {(1, "z"): substitute})
    np.testing.assert_array_equal(found.steps[1]["z"], plain.steps[1]["z"])
    expected = np.array([0.5, plain.steps[1]["z"][1]]) * plain.steps[1]["h"]
    np.testing.assert_array_equal(found.steps[1]["kept"], expected)


def test_json_holds_every_quantity():
    found = trace(parse_network(NETWORKS["keep_before"]))
    content = json.loads(json.dumps(found.to_json()))
    assert [set(step) for step in content["steps"]] == [set(step) for step in found.steps]
    np.testing.assert_array_equal(content["totals"]["dW_z"], found.totals["dW_z"])


def test_saturated_gates_and_scores_stay_finite():
    network = parse_network(
        random_fields(
            11,
            inputs=[[1e4, -1e4, 1e4]] * 3,
            output={"W": [[1e4, 0.0], [0.0, 1e4]], "loss": "cross_entropy"},
        )
    )
    found = trace(network)
    for step in (*found.steps, found.totals):
        for name, value in step.items():
            assert np.all(np.isfinite(value)), name


def test_overflow_names_step_and_quantity():
    fields = random_fields(12, inputs=[[1.0, 1.0, 1.0], [1e308, 1e308, 1e308], [0.0, 0.0, 0.0]])
    for gate in GATES:
        fields["weights"][gate]["W"] = [[10.0] * 3] * 2
    with pytest.raises(
        NetworkError, match=r"step 1, xW_z: expected finite values, got \[inf, inf\]"
    ):
        trace(parse_network(fields))


BAD = [
    (("update_gate",), "forget", r"update_gate: expected one of keep, replace, got 'forget'"),
    (("update_gate",), None, r"update_gate: expected one of keep, replace, got None"),
    (("reset_after",), "yes", r"reset_after: expected true or false, got 'yes'"),
    (("reset_after",), None, r"reset_after: expected true or false, got nothing"),
    (("activation",), "softplus", r"activation: expected one of tanh, .*, got 'softplus'"),
    (("reduction",), "max", r"reduction: expected one of sum, mean, got 'max'"),
    (
        ("weights", "r", "W"),
        [[1, 2], [3, 4]],
        r"weights.r.W: expected shape \(2, 3\), got \(2, 2\)",
    ),
    (("weights", "r", "U"), [[1, 2, 3]] * 3, r"weights.r.U: expected shape \(2, 2\), got \(3, 3\)"),
    (("weights", "z", "U"), [[1, 2, 3]], r"weights.z.U: expected a square .* got \(1, 3\)"),
    (("weights", "g"), None, r"weights.g: expected an object with W, U, b, got nothing"),
    (
        ("weights", "g", "b_recurrent"),
        [0, 0],
        r"weights.g: expected only W, U, b, got 'b_recurrent'",
    ),
    (
        ("weights", "z", "b"),
        [0.0, float("nan")],
        r"weights.z.b\[1\]: expected a finite number, got nan",
    ),
    (("weights", "z", "W"), [[1, 2, 3], [4, 5]], r"weights.z.W: expected rows of equal length"),
    (("weights",), {"kernel": [[1.0]]}, r"weights.recurrent_kernel: expected a .* got nothing"),
    (("inputs",), [[1, 2, "a"]], r"inputs\[0\]\[2\]: expected a number, got 'a'"),
    (("inputs",), [[1, 2, 10**400]], r"inputs\[0\]\[2\]: expected a finite number, got 1000"),
    (("inputs",), [[1, 2, True]], r"inputs\[0\]\[2\]: expected a number, got True"),
    (("inputs",), [1, 2, 3], r"inputs\[0\]: expected a list, got 1"),
    (("inputs",), [], r"inputs: expected shape"),
    (("inputs",), [[]], r"inputs: expected at least one step and one feature, got \(1, 0\)"),
    (("inputs",), [[float("inf"), 1, 2]], r"inputs\[0\]\[0\]: expected a finite number, got inf"),
    (("initial_state",), [1.0], r"initial_state: expected shape \(2\), got \(1,\)"),
    (("targets",), [[1, 0]], r"targets: expected a list of 3 targets or nulls"),
    (
        ("targets",),
        [[1, 0], [1, 0], [0.9, 0.2]],
        r"targets\[2\]: expected probabilities that sum to 1",
    ),
    (("targets",), [[1, 0], [1, 0], [2, -1]], r"targets\[2\]: expected probabilities in \[0, 1\]"),
    (("targets",), [None] * 3, r"targets: expected a target at one step or more, got only nulls"),
    (("output",), None, r'targets: expected an "output" beside them, got none'),
    (("output", "loss"), "hinge", r"output.loss: expected one of cross_entropy, .*, got 'hinge'"),
    (("output", "W"), [[1.0]], r"output.W: expected shape \(any, 2\), got \(1, 1\)"),
    (("learning_rate",), 0, r"learning_rate: expected a positive number, got 0"),
    (("tokens",), ["good"], r"tokens: expected a list of 3 strings"),
    (("colour",), 1, r"network: expected only cell, update_gate, .*, got 'colour'"),
    (("cell",), "esn", r"cell: expected one of gru, rnn, lstm, .*, got 'esn'"),
    (("cell",), "rnn", r"update_gate: expected nothing for the cell 'rnn', got 'keep'"),
    (("cell",), "mgu", r"reset_after: expected nothing for the cell 'mgu', got False"),
    (("initial_cell",), [0, 0], r"initial_cell: expected nothing for the cell 'gru', got \[0, 0\]"),
    (("note",), 3, r"note: expected a string, got 3"),
]


@pytest.mark.parametrize(
    ("at", "value", "message"), BAD, ids=[".".join(at) + str(i) for i, (at, _, _) in enumerate(BAD)]
)
def test_bad_fields_are_named(at, value, message):
    fields = copy.deepcopy(NETWORKS["keep_before"])
    place = fields
    for key in at[:-1]:
        place = place[key]
    place[at[-1]] = value
    with pytest.raises(NetworkError, match=message):
        parse_network(fields)


def test_bad_files_are_named(tmp_path):
    path = tmp_path / "network.json"
    path.write_text('{"inputs": [1, }')
    with pytest.raises(NetworkError, match=r"network.json: expected a JSON file, got Expecting"):
        read_network(path)
    path.write_text("[" * 100_000)
    with pytest.raises(NetworkError, match=r"network.json: expected a JSON file"):
        read_network(path)
    path.write_text("[1, 2]")
    with pytest.raises(NetworkError, match=r"network: expected an object with cell, update_gate"):
        read_network(path)
    path.write_text(json.dumps({"network": NETWORKS["relu"], "claims": []}))
    assert read_network(path).activation == "relu"
