"""Converted weights in the other frameworks' own layers, where those are installed.

Beside each, its published equations in NumPy, so that a conversion is checked everywhere.
"""

import dataclasses
import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUEncoder
from keras_gru.convert import (
    GRUWeights,
    from_flax,
    from_flax_nnx,
    from_onnx,
    from_pytorch,
    from_sonnet,
    load_pytorch,
    pytorch_state_dict,
    to_flax,
    to_flax_nnx,
    to_onnx,
    to_pytorch,
    to_sonnet,
)
from tests.keras_gru.convert.random_weights import (
    D,
    U,
    arrays_of,
    oracle_states,
    random_weights,
    sequences,
)

CLOSE = {"rtol": 1e-5, "atol": 2e-6}


def swap_z_and_r(weights):
    order = [*range(U, 2 * U), *range(U), *range(2 * U, 3 * U)]
    return GRUWeights(*(w[..., order] for w in arrays_of(weights)), weights.reset_after)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def unroll(step, x):
    h, states = np.zeros((len(x), U), "float32"), []
    for t in range(x.shape[1]):
        h = np.asarray(step(x[:, t], h))
        states.append(h)
    return np.stack(states, 1)


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


class TestPyTorch:
    def module(self, num_layers=1, bidirectional=False, bias=True, seed=0, batch_first=True):
        torch = pytest.importorskip("torch")
        module = torch.nn.GRU(
            D, U, num_layers, bias=bias, batch_first=batch_first, bidirectional=bidirectional
        )
        rng = np.random.default_rng(seed)
        module.load_state_dict(
            {
                name: torch.from_numpy(rng.normal(size=value.shape).astype("float32"))
                for name, value in module.state_dict().items()
            }
        )
        return module

    def run(self, module, x):
        torch = pytest.importorskip("torch")
        if not module.batch_first:
            x = np.swapaxes(x, 0, 1)
        with torch.no_grad():
            outputs, final = module(torch.from_numpy(np.ascontiguousarray(x)))
        outputs = outputs.numpy()
        return (outputs if module.batch_first else np.swapaxes(outputs, 0, 1)), final.numpy()

    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_in(self, update_gate, bias, batch_first):
        module = self.module(bias=bias, batch_first=batch_first)
        layer = GRU(U, update_gate=update_gate, use_bias=bias, return_sequences=True)
        load_pytorch(layer, module)
        np.testing.assert_allclose(layer(sequences()), self.run(module, sequences())[0], **CLOSE)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_out(self, update_gate, bias):
        torch = pytest.importorskip("torch")
        weights = random_weights(True, update_gate, bias)
        module = self.module(bias=bias)
        module.load_state_dict({k: torch.from_numpy(v) for k, v in to_pytorch(weights).items()})
        np.testing.assert_allclose(
            self.run(module, sequences())[0], oracle_states(weights, sequences()), **CLOSE
        )

    def test_bidirectional_layer(self):
        module = self.module(bidirectional=True)
        layer = keras.layers.Bidirectional(GRU(U, return_sequences=True))
        load_pytorch(layer, module)
        np.testing.assert_allclose(layer(sequences()), self.run(module, sequences())[0], **CLOSE)
        back = pytorch_state_dict(layer)
        for name, value in module.state_dict().items():
            np.testing.assert_array_equal(back[name], value.numpy())

    def test_cell_and_parameters_that_require_gradients(self):
        torch = pytest.importorskip("torch")
        cell = torch.nn.GRUCell(D, U)
        layer = GRU(U)
        from_pytorch(dict(cell.named_parameters())).assign_to(layer)
        x = sequences()[:, :1]
        with torch.no_grad():
            wanted = cell(torch.from_numpy(x[:, 0])).numpy()
        np.testing.assert_allclose(layer(x), wanted, **CLOSE)
        half = {name: value.to(torch.bfloat16) for name, value in cell.named_parameters()}
        assert from_pytorch(half).kernel.dtype == np.float32

    def test_whole_cell(self):
        torch = pytest.importorskip("torch")
        cell, layer = torch.nn.GRUCell(D, U), GRU(U)
        load_pytorch(layer, cell)
        x = sequences()[:, :1]
        with torch.no_grad():
            np.testing.assert_allclose(layer(x), cell(torch.from_numpy(x[:, 0])).numpy(), **CLOSE)

    @pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0"])
    def test_reparametrised_modules_lack_a_weight(self, name):
        torch = pytest.importorskip("torch")
        normed, pruned = self.module(), self.module()
        torch.nn.utils.parametrizations.weight_norm(normed, name)
        prune = pytest.importorskip("torch.nn.utils.prune")
        prune.l1_unstructured(pruned, name, amount=0.3)
        for module in (normed, pruned):
            for target in (GRU(U), GRUEncoder(U)):
                with pytest.raises(ValueError, match=rf"missing: \['{name}'\].*{name}"):
                    load_pytorch(target, module)
                assert not target.built
        prune.remove(pruned, name)
        layer = GRU(U, return_sequences=True)
        load_pytorch(layer, pruned)
        np.testing.assert_allclose(layer(sequences()), self.run(pruned, sequences())[0], **CLOSE)

    def test_bfloat16_layer(self):
        torch = pytest.importorskip("torch")
        layer = GRU(U, dtype="bfloat16", recurrent_initializer="glorot_uniform")
        layer.build((None, None, D))
        arrays = pytorch_state_dict(layer)
        self.module().load_state_dict({k: torch.from_numpy(v) for k, v in arrays.items()})
        wanted = tf.cast(layer.cell.kernel, "float32")[:, :U]
        np.testing.assert_array_equal(arrays["weight_ih_l0"].T[:, U : 2 * U], wanted)

    def test_swapped_gates_and_unconverted_update_gate_show(self):
        """Negative controls: the comparison must fail."""
        module = self.module()
        weights = from_pytorch(module.state_dict())
        wanted, _ = self.run(module, sequences())
        np.testing.assert_allclose(oracle_states(weights, sequences()), wanted, **CLOSE)
        unconverted = GRUWeights(
            weights.kernel, weights.recurrent_kernel, weights.bias, True, "replace"
        )
        for wrong in (swap_z_and_r(weights), unconverted):
            assert np.max(np.abs(oracle_states(wrong, sequences()) - wanted)) > 0.05

    def test_other_layers_or_directions(self):
        module = self.module(num_layers=2)
        layer = GRU(U)
        with pytest.raises(ValueError, match=r"same layers and directions.*\(1, 'forward'\)"):
            load_pytorch(layer, module)
        assert not layer.built
        with pytest.raises(ValueError, match=r"units=5.*units=6"):
            load_pytorch(GRU(6), self.module())


class TestONNX:
    def run_node(self, tensors, attributes, x):
        """Outputs (B, T, directions·U) of a one-node model in ONNX Runtime."""
        onnx = pytest.importorskip("onnx")
        runtime = pytest.importorskip("onnxruntime")
        node = onnx.helper.make_node("GRU", ["X", *tensors], ["Y"], **attributes)
        graph = onnx.helper.make_graph(
            [node],
            "gru",
            [onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, None, D])],
            [onnx.helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, [None] * 4)],
            [onnx.numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in tensors.items()],
        )
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8
        )
        onnx.checker.check_model(model)
        session = runtime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (Y,) = session.run(None, {"X": np.ascontiguousarray(np.swapaxes(x, 0, 1))})
        T, directions, B, _ = Y.shape
        return Y.transpose(2, 0, 1, 3).reshape(B, T, directions * U), node

    @pytest.mark.parametrize("use_bias", [True, False])
    @pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
    @pytest.mark.parametrize("reset_after", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_out(self, update_gate, reset_after, direction, use_bias):
        count = 2 if direction == "bidirectional" else 1
        weights = [
            random_weights(reset_after, update_gate, use_bias, seed) for seed in range(count)
        ]
        tensors, attributes = to_onnx(*weights, go_backwards=direction == "reverse")
        assert attributes["direction"] == direction
        x = sequences()
        wanted = [
            oracle_states(w, x, reverse=direction == "reverse" or i == 1)
            for i, w in enumerate(weights)
        ]
        actual, _ = self.run_node(tensors, attributes, x)
        np.testing.assert_allclose(actual, np.concatenate(wanted, -1), **CLOSE)

    @pytest.mark.parametrize("with_b", [True, False])
    @pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
    @pytest.mark.parametrize("linear_before_reset", [0, 1])
    def test_in(self, linear_before_reset, direction, with_b):
        onnx = pytest.importorskip("onnx")
        rng = np.random.default_rng(5)
        count = 2 if direction == "bidirectional" else 1
        shapes = {"W": (count, 3 * U, D), "R": (count, 3 * U, U), "B": (count, 6 * U)}
        tensors = {k: rng.normal(size=s).astype("float32") for k, s in shapes.items()}
        if not with_b:
            del tensors["B"]
        attributes = {
            "hidden_size": U,
            "linear_before_reset": linear_before_reset,
            "direction": direction,
        }
        wanted, node = self.run_node(tensors, attributes, sequences())
        read = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        outputs = []
        for i, weights in enumerate(from_onnx(tensors, **read)):
            backwards = direction == "reverse" or i == 1
            layer = GRU(
                U,
                reset_after=bool(linear_before_reset),
                update_gate="replace",
                return_sequences=True,
                go_backwards=backwards,
            )
            weights.assign_to(layer)
            states = layer(sequences()).numpy()
            outputs.append(states[:, ::-1] if backwards else states)
        np.testing.assert_allclose(np.concatenate(outputs, -1), wanted, **CLOSE)

    def test_other_activations(self):
        weights = random_weights(activation="relu", recurrent_activation="softplus")
        tensors, attributes = to_onnx(weights)
        tensors = {name: tensor * np.float32(0.1) for name, tensor in tensors.items()}
        wanted, _ = self.run_node(tensors, attributes, sequences())
        (weights,) = from_onnx(tensors, **attributes)
        layer = GRU(U, activation="relu", recurrent_activation="softplus", return_sequences=True)
        weights.assign_to(layer)
        np.testing.assert_allclose(layer(sequences()), wanted, **CLOSE)

    @pytest.mark.parametrize("reset_after", [True, False])
    def test_activations_with_parameters(self, reset_after):
        """hard_sigmoid and linear, which the fused path supports."""
        kinds = [("hard_sigmoid", "tanh"), ("sigmoid", "linear"), ("hard_sigmoid", "linear")]
        layers = []
        for seed, (gates, candidate) in enumerate(kinds):
            weights = random_weights(
                reset_after, seed=seed, activation=candidate, recurrent_activation=gates
            )
            weights = dataclasses.replace(weights, recurrent_kernel=weights.recurrent_kernel / 5)
            layer = GRU(U, candidate, gates, reset_after=reset_after, return_sequences=True)
            weights.assign_to(layer)
            layers.append(layer)
        x = sequences()
        for layer, other in itertools.pairwise(layers):
            wanted = [layer(x), other(x[:, ::-1])[:, ::-1]]
            tensors, attributes = to_onnx(GRUWeights.of(layer), GRUWeights.of(other))
            actual, node = self.run_node(tensors, attributes, x)
            np.testing.assert_allclose(actual, np.concatenate(wanted, -1), **CLOSE)
            onnx = pytest.importorskip("onnx")
            read = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            for weights, original in zip(from_onnx(tensors, **read), (layer, other), strict=True):
                weights.check_fits(original)

    def test_swapped_gates_and_unconverted_update_gate_show(self):
        """Negative controls: the comparison must fail."""
        weights = random_weights()
        wanted = oracle_states(weights, sequences())
        replace = random_weights(update_gate="replace")
        unconverted = GRUWeights(replace.kernel, replace.recurrent_kernel, replace.bias)
        np.testing.assert_array_equal(unconverted.kernel, weights.kernel)
        for wrong, right in (
            (swap_z_and_r(weights), wanted),
            (unconverted, oracle_states(replace, sequences())),
        ):
            actual, _ = self.run_node(*to_onnx(wrong), sequences())
            assert np.max(np.abs(actual - right)) > 0.05
