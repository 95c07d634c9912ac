"""Conversions of weights: round trips, and outputs compared with the other framework itself."""

import doctest

import keras
import numpy as np
import pytest

import keras_gru.convert.gru_weights
from keras_gru import GRU, GRUCell
from keras_gru.convert import (
    GRUWeights,
    from_flax,
    from_onnx,
    from_pytorch,
    from_sonnet,
    load_pytorch,
    to_flax,
    to_onnx,
    to_pytorch,
    to_sonnet,
)
from tests.keras_gru.convert.random_weights import (
    CONVENTIONS,
    D,
    U,
    arrays_of,
    oracle_states,
    random_weights,
    sequences,
)


def swash(a):
    return a / 2


def assert_same_arrays(a, b):
    for left, right in zip(arrays_of(a), arrays_of(b), strict=True):
        np.testing.assert_array_equal(left, right)


class Extended(GRU):
    """A GRU with an additional weight."""

    def build(self, sequences_shape):
        super().build(sequences_shape)
        self.scale = self.add_weight(shape=(self.units,), name="scale")


def test_docstring_example():
    failures, tried = doctest.testmod(keras_gru.convert.gru_weights)
    assert tried >= 4
    assert failures == 0


class TestGRUWeights:
    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    def test_other_update_convention_is_the_same_function(self, reset_after, update_gate):
        weights = random_weights(reset_after, update_gate)
        other = weights.with_update_gate("replace" if update_gate == "keep" else "keep")
        assert other.update_gate != update_gate
        x = sequences()
        np.testing.assert_allclose(
            oracle_states(other, x), oracle_states(weights, x), rtol=1e-12, atol=1e-13
        )
        assert_same_arrays(other.with_update_gate(update_gate), weights)

    @pytest.mark.parametrize("layer_class", [GRU, GRUCell], ids=["layer", "cell"])
    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    def test_into_our_layer_and_back(self, reset_after, update_gate, layer_class):
        for use_bias in (True, False):
            weights = random_weights(reset_after, update_gate, use_bias)
            layer = layer_class(
                U, reset_after=reset_after, update_gate="replace", use_bias=use_bias
            )
            weights.assign_to(layer)
            back = GRUWeights.of(layer)
            assert back.update_gate == "replace"
            assert_same_arrays(back.with_update_gate(update_gate), weights)

    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    def test_into_keras_layer(self, reset_after, update_gate):
        weights = random_weights(reset_after, update_gate)
        layer = keras.layers.GRU(U, reset_after=reset_after, return_sequences=True)
        weights.assign_to(layer)
        x = sequences()
        np.testing.assert_allclose(layer(x), oracle_states(weights, x), rtol=1e-5, atol=2e-6)
        assert_same_arrays(GRUWeights.of(layer).with_update_gate(update_gate), weights)

    def test_missing_biases_become_zero(self):
        weights = random_weights(use_bias=False)
        layer = GRU(U, bias_initializer="ones", return_sequences=True)
        weights.assign_to(layer)
        x = sequences()
        np.testing.assert_allclose(layer(x), oracle_states(weights, x), rtol=1e-5, atol=2e-6)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"units": 6}, "mine.*units=5.*units=6"),
            ({"reset_after": False}, "mine.*reset_after=True.*reset_after=False"),
            ({"activation": "relu"}, "mine.*activation='tanh'.*'relu'"),
            ({"recurrent_activation": "relu"}, "mine.*recurrent_activation='sigmoid'.*'relu'"),
            ({"use_bias": False}, "mine.*use_bias=True.*use_bias=False"),
        ],
    )
    def test_layer_that_cannot_take_them(self, options, words):
        layer = GRU(**{"units": U, "name": "mine", **options})
        layer.build((None, None, D))
        before = layer.get_weights()
        with pytest.raises(ValueError, match=words):
            random_weights().assign_to(layer)
        for a, b in zip(layer.get_weights(), before, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_layer_of_other_features(self):
        layer = GRU(U)
        layer.build((None, None, D + 1))
        with pytest.raises(ValueError, match=r"built for inputs of 4 features.*5 features"):
            random_weights().assign_to(layer)

    def test_layer_with_more_than_a_gru(self):
        layer = Extended(U, name="extended")
        layer.build((None, None, D))
        for convert in (GRUWeights.of, random_weights().assign_to):
            with pytest.raises(ValueError, match=r"extended.*1 weights that a plain GRU lacks"):
                convert(layer)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"zoneout": 0.1}, "zoneout=0.*zoneout=0.1"),
            ({"layer_norm": True}, "weights that a plain GRU lacks.*layer_norm_gain"),
            ({"learn_initial_state": True}, "weights that a plain GRU lacks.*learned_state"),
        ],
    )
    def test_options_that_other_frameworks_lack(self, options, words):
        for built in (True, False):
            layer = GRU(U, **options)
            if built:
                layer.build((None, None, D))
                with pytest.raises(ValueError, match=words):
                    GRUWeights.of(layer)
            with pytest.raises(ValueError, match=words):
                random_weights().assign_to(layer)

    def test_what_is_no_built_gru(self):
        with pytest.raises(ValueError, match=r"layer.*GRU or a GRUCell.*LSTM"):
            GRUWeights.of(keras.layers.LSTM(3))
        with pytest.raises(ValueError, match=r"'late' must be built"):
            GRUWeights.of(GRU(3, name="late"))

    @pytest.mark.parametrize(
        ("kernel", "recurrent", "bias", "words"),
        [
            ((4, 15), (5, 14), None, r"recurrent_kernel.*\(5, 15\).*\(5, 14\)"),
            ((4, 14), (5, 15), None, r"`kernel`.*\(4, 15\).*\(4, 14\)"),
            ((4, 15), (5, 15), (15,), r"bias.*\(2, 15\).*\(15,\)"),
            ((15,), (5, 15), None, r"matrices.*\(15,\)"),
        ],
    )
    def test_shapes_are_checked(self, kernel, recurrent, bias, words):
        with pytest.raises(ValueError, match=words):
            GRUWeights(np.ones(kernel), np.ones(recurrent), None if bias is None else np.ones(bias))

    def test_update_gate_is_checked(self):
        with pytest.raises(ValueError, match=r"update_gate.*keep.*both"):
            random_weights(update_gate="both")
        with pytest.raises(ValueError, match=r"sigmoid.*hard_sigmoid.*relu"):
            random_weights(recurrent_activation="relu").with_update_gate("replace")


class TestRoundTrips:
    """Out and back in: bit for bit if the number of biases is the same."""

    @pytest.mark.parametrize("direction", ["forward", "backward"])
    @pytest.mark.parametrize("use_bias", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_pytorch(self, update_gate, use_bias, direction):
        weights = random_weights(True, update_gate, use_bias)
        state_dict = to_pytorch(weights, 2, direction)
        suffix = "_l2" + ("_reverse" if direction == "backward" else "")
        assert all(name.endswith(suffix) for name in state_dict)
        assert state_dict["weight_ih" + suffix].shape == (3 * U, D)
        back = from_pytorch(state_dict, 2, direction)
        assert_same_arrays(back.with_update_gate(update_gate), weights)

    @pytest.mark.parametrize("use_bias", [True, False])
    @pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
    def test_onnx(self, reset_after, update_gate, use_bias):
        pair = [random_weights(reset_after, update_gate, use_bias, seed) for seed in (1, 2)]
        for weights in ([pair[0]], pair):
            tensors, attributes = to_onnx(*weights)
            assert set(tensors) == ({"W", "R", "B"} if use_bias else {"W", "R"})
            back = from_onnx(tensors, **attributes)
            assert len(back) == len(weights)
            for one, original in zip(back, weights, strict=True):
                assert_same_arrays(one.with_update_gate(update_gate), original)

    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_sonnet(self, update_gate):
        weights = random_weights(False, update_gate)
        back = from_sonnet(to_sonnet(weights))
        assert back.update_gate == "replace"
        assert_same_arrays(back.with_update_gate(update_gate), weights)


class TestErrors:
    @pytest.mark.parametrize(
        ("convert", "name", "placement"),
        [(to_pytorch, "PyTorch", False), (to_flax, "Flax", False), (to_sonnet, "Sonnet", True)],
    )
    def test_what_the_other_side_cannot_express(self, convert, name, placement):
        with pytest.raises(ValueError, match=f"{name}.*reset_after={not placement}.*{placement}"):
            convert(random_weights(placement))
        with pytest.raises(ValueError, match=f"{name}.*activation='tanh'.*'relu'"):
            convert(random_weights(not placement, activation="relu"))

    def test_missing_arrays(self):
        state_dict = to_pytorch(random_weights())
        with pytest.raises(ValueError, match=r"PyTorch.*missing.*weight_ih_l1.*weight_ih_l0"):
            from_pytorch(state_dict, 1)
        for name in ("bias_hh_l0", "bias_ih_l0"):
            rest = {key: value for key, value in state_dict.items() if key != name}
            with pytest.raises(ValueError, match=rf"PyTorch.*missing: \['{name}'\]"):
                from_pytorch(rest)
        prefixed = {f"encoder.{name}": value for name, value in state_dict.items()}
        with pytest.raises(ValueError, match=r"prefix.*PyTorch GRU.*\['encoder'\]"):
            load_pytorch(GRU(U), prefixed)
        params = to_flax(random_weights())
        del params["hn"]["bias"]
        with pytest.raises(ValueError, match=r"Flax.*missing: \['bias'\]"):
            from_flax(params)
        del params["iz"]
        with pytest.raises(ValueError, match=r"Flax.*missing: \['iz'\].*hn"):
            from_flax(params)
        with pytest.raises(ValueError, match=r"Sonnet.*missing: \['b'\]"):
            from_sonnet({"w_i": 0, "w_h": 0})

    def test_pytorch_direction(self):
        with pytest.raises(ValueError, match=r"direction.*forward.*backward.*'reverse'"):
            from_pytorch({}, 0, "reverse")

    @pytest.mark.parametrize(
        ("attributes", "words"),
        [
            ({"direction": "both"}, "direction.*bidirectional.*'both'"),
            ({"clip": 3.0}, "clip.*3.0"),
            ({"activations": ["Sigmoid", "Elu"]}, "activations.*Elu"),
            ({"activations": ["Sigmoid"]}, "activations.*2 of"),
            # ONNX's default α is 0.2, the same as in Keras 2.
            (
                {"activations": ["HardSigmoid", "Tanh"]},
                r"activation_alpha.*0\.166.*HardSigmoid.*activation_alpha=None",
            ),
            (
                {"activations": ["Sigmoid", "Affine"], "activation_beta": [0.5]},
                r"activation_beta.*\[0\.0\].*Affine.*activation_beta=\[0\.5\]",
            ),
            ({"hidden_size": 6}, "hidden_size.*5.*6"),
            ({"direction": "bidirectional"}, r"`W`.*\(2, 15, D\).*\(1, 15, 4\)"),
        ],
    )
    def test_onnx_attributes(self, attributes, words):
        tensors, _ = to_onnx(random_weights())
        with pytest.raises(ValueError, match=words):
            from_onnx(tensors, **attributes)

    def test_onnx_shapes_and_directions(self):
        tensors, _ = to_onnx(random_weights())
        with pytest.raises(ValueError, match=r"`B`.*\(1, 30\).*\(1, 15\)"):
            from_onnx({**tensors, "B": tensors["B"][:, :15]})
        with pytest.raises(ValueError, match=r"`R`.*\(1, 15, 5\).*\(1, 14, 5\)"):
            from_onnx({**tensors, "R": tensors["R"][:, :14]})
        with pytest.raises(ValueError, match=r"`R`.*\(1, 3U, U\).*shape \(\)"):
            from_onnx({**tensors, "R": "not an array"})
        with pytest.raises(ValueError, match=r"ONNX.*activation among.*softplus.*swash"):
            to_onnx(random_weights(activation=keras.activations.serialize(swash)))
        with pytest.raises(ValueError, match=r"Both directions.*False.*True"):
            to_onnx(random_weights(), random_weights(use_bias=False))
        with pytest.raises(ValueError, match=r"one direction.*3 directions"):
            to_onnx(*[random_weights()] * 3)
        with pytest.raises(ValueError, match=r"ONNX.*activation among.*'gelu'"):
            to_onnx(random_weights(activation="gelu"))


def test_pytorch_by_prefix():
    weights, other = random_weights(seed=1), random_weights(seed=2)
    whole = {
        **{f"encoder.gru.{name}": v for name, v in to_pytorch(weights).items()},
        **{f"decoder.{name}": v for name, v in to_pytorch(other).items()},
        "encoder.norm.weight": np.ones(3),
    }
    for prefix, wanted in (("encoder.gru", weights), ("decoder.", other)):
        layer = GRU(U)
        load_pytorch(layer, whole, prefix=prefix)
        np.testing.assert_array_equal(layer.cell.kernel, wanted.kernel)
        np.testing.assert_array_equal(from_pytorch(whole, prefix=prefix).bias, wanted.bias)
    for prefix in ("", "encoder"):
        with pytest.raises(ValueError, match=rf"\['decoder', 'encoder.gru'\].*prefix='{prefix}'"):
            load_pytorch(GRU(U), whole, prefix=prefix)
