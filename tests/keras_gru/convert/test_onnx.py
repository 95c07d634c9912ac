"""Converted weights in ONNX Runtime's GRU operator."""

import dataclasses
import itertools

import numpy as np
import pytest

from keras_gru import GRU
from keras_gru.convert import (
    GRUWeights,
    from_onnx,
    to_onnx,
)
from tests.keras_gru.convert.random_weights import (
    CLOSE,
    D,
    U,
    oracle_states,
    random_weights,
    sequences,
    swap_z_and_r,
)


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
