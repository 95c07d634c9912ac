"""Initializers: what each gate gets, in both update conventions, and the effect on memory."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru.initializers
from keras_gru import GRU
from keras_gru.initializers import ChronoBias, PerGate, RememberBias, recommended

U = 48


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def blocks(packed):
    return np.split(np.asarray(packed, "float64"), 3, axis=-1)


def test_docstring_examples():
    failures, tried = doctest.testmod(keras_gru.initializers, extraglobs={"GRU": GRU, "np": np})
    assert tried >= 6
    assert failures == 0


class TestPerGate:
    def test_every_recurrent_block_is_orthogonal(self):
        packed = PerGate("orthogonal", seed=1)((U, 3 * U))
        for block in blocks(packed):
            np.testing.assert_allclose(block @ block.T, np.eye(U), atol=1e-5)
        z, r, g = blocks(packed)
        assert min(np.abs(z - r).max(), np.abs(r - g).max(), np.abs(z - g).max()) > 0.1

    def test_one_orthogonal_matrix_over_all_gates_is_something_else(self):
        """The docstring's claim."""
        packed = keras.initializers.Orthogonal(seed=1)((U, 3 * U)).numpy()
        np.testing.assert_allclose(packed @ packed.T, np.eye(U), atol=1e-5)
        squares = [np.linalg.svd(block, compute_uv=False) ** 2 for block in blocks(packed)]
        assert np.mean(squares) == pytest.approx(1 / 3, abs=1e-4)
        assert np.max(squares) < 0.999
        assert np.min(squares) < 0.01

    def test_glorot_counts_one_gate(self):
        packed = PerGate("glorot_uniform", seed=1)((30, 3 * U)).numpy()
        limit = np.sqrt(6 / (30 + U))
        assert 0.98 * limit < np.abs(packed).max() <= limit
        assert np.abs(keras.initializers.GlorotUniform(1)((30, 3 * U))).max() < 0.75 * limit

    def test_seeds(self):
        shape = (U, 3 * U)
        np.testing.assert_array_equal(
            PerGate("orthogonal", 3)(shape), PerGate("orthogonal", 3)(shape)
        )
        assert np.abs(PerGate("orthogonal", 3)(shape) - PerGate("orthogonal", 4)(shape)).max() > 0.1
        assert np.abs(PerGate("orthogonal")(shape) - PerGate("orthogonal")(shape)).max() > 0.1

    def test_keeps_the_options_of_the_initializer(self):
        packed = PerGate(keras.initializers.Orthogonal(gain=0.5), seed=0)((4, 12))
        for block in blocks(packed):
            np.testing.assert_allclose(block @ block.T, 0.25 * np.eye(4), atol=1e-6)
        np.testing.assert_array_equal(PerGate("ones")((2, 6)), np.ones((2, 6)))
        assert PerGate("orthogonal")((4, 12), dtype="float16").dtype == tf.float16

    def test_errors(self):
        for shape in ((4, 13), (12,)):
            with pytest.raises(ValueError, match=r"PerGate.*\(\.\.\., 3U\).*Received"):
                PerGate("orthogonal")(shape)
        with pytest.raises(ValueError, match=r"initializer.*Keras initializer"):
            PerGate(np.ones((4, 12)))


class TestBiases:
    @pytest.mark.parametrize("reset_after", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_remember(self, update_gate, reset_after):
        layer = GRU(
            U,
            reset_after=reset_after,
            update_gate=update_gate,
            bias_initializer=RememberBias(1.5, reset=0.5, update_gate=update_gate),
        )
        layer.build((None, None, 3))
        bias = layer.cell.bias.numpy()
        z, r, g = blocks(bias.sum(0) if reset_after else bias)
        kept = sigmoid(z) if update_gate == "keep" else 1 - sigmoid(z)
        np.testing.assert_allclose(kept, sigmoid(1.5), rtol=1e-6)
        np.testing.assert_allclose(r, 0.5)
        np.testing.assert_array_equal(g, 0)

    @pytest.mark.parametrize("reset_after", [True, False])
    @pytest.mark.parametrize("other", [{}, {"remember_bias": 2.0}, {"max_period": 9}], ids=str)
    def test_recommended_reset_bias_counts_once(self, other, reset_after):
        options = recommended(reset_bias=1.0, seed=1, **other)
        layer = GRU(U, reset_after=reset_after, **options)
        layer.build((None, None, 3))
        bias = layer.cell.bias.numpy()
        _, r, g = blocks(bias.sum(0) if reset_after else bias)
        np.testing.assert_array_equal(r, 1)
        np.testing.assert_array_equal(g, 0)
        without = GRU(U, reset_after=reset_after, **{**recommended(seed=1, **other)})
        without.build((None, None, 3))
        difference = bias - without.cell.bias.numpy()
        assert np.count_nonzero(difference) == U

    @pytest.mark.parametrize("shape", [(3 * 4000,), (2, 3 * 4000)])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_chrono_distribution(self, update_gate, shape):
        """exp of the bias is uniform over [1, max_period − 1], memory times over [2, max]."""
        bias = ChronoBias(100, update_gate, seed=2)(shape).numpy()
        z, r, g = blocks(bias if len(shape) == 1 else bias.sum(0))
        np.testing.assert_array_equal(np.concatenate([r, g]), 0)
        sample = np.sort(np.exp(z if update_gate == "keep" else -z))
        uniform = (sample - 1) / 98
        distance = np.abs(uniform - (np.arange(4000) + 0.5) / 4000).max()
        assert distance < 1.63 / np.sqrt(4000)  # Kolmogorov-Smirnov at 1 %
        kept = sigmoid(z) if update_gate == "keep" else 1 - sigmoid(z)
        periods = 1 / (1 - kept)
        assert periods.min() >= 2 - 1e-3
        assert periods.max() <= 100 + 1e-2

    def test_chrono_of_two_steps_keeps_half(self):
        """The shortest period: all units forget within two steps."""
        np.testing.assert_array_equal(ChronoBias(2)((2, 12)), np.zeros((2, 12)))

    def test_chrono_seeds(self):
        shape = (2, 3 * U)
        np.testing.assert_array_equal(ChronoBias(9, seed=1)(shape), ChronoBias(9, seed=1)(shape))
        assert np.abs(ChronoBias(9, seed=1)(shape) - ChronoBias(9, seed=2)(shape)).max() > 0.1
        assert np.abs(ChronoBias(9)(shape) - ChronoBias(9)(shape)).max() > 0.1

    def test_errors(self):
        for value in (1.5, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=r"max_period.*at least 2.*Received"):
                ChronoBias(value)
        for initializer in (ChronoBias(9), RememberBias()):
            for shape in ((3, 12), (13,), (2, 2, 12)):
                with pytest.raises(ValueError, match=r"\(3U,\) or \(2, 3U\).*Received"):
                    initializer(shape)
        for make in (RememberBias, lambda **k: ChronoBias(9, **k)):
            with pytest.raises(ValueError, match=r"update_gate.*keep.*replace.*both"):
                make(update_gate="both")
        with pytest.raises(ValueError, match=r"remember_bias.*max_period.*give one"):
            recommended(remember_bias=1.0, max_period=10)


@pytest.mark.parametrize(
    "initializer",
    [
        PerGate(keras.initializers.Orthogonal(gain=0.5), seed=3),
        RememberBias(2.0, 0.5, "replace"),
        ChronoBias(50, "replace", seed=3),
    ],
    ids=lambda i: type(i).__name__,
)
def test_config_round_trips(initializer):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(initializer))
    assert type(again) is type(initializer)
    assert again.get_config() == initializer.get_config()
    shape = (4, 12) if isinstance(initializer, PerGate) else (2, 12)
    np.testing.assert_array_equal(again(shape), initializer(shape))


@pytest.mark.parametrize("update_gate", ["keep", "replace"])
def test_layer_with_recommended_initializers_survives_a_file(update_gate, tmp_path):
    model = keras.Sequential(
        [keras.Input((None, 3)), GRU(4, **recommended(update_gate, max_period=9, seed=1))]
    )
    model.save(tmp_path / "m.keras")
    layer = keras.saving.load_model(tmp_path / "m.keras").layers[0]
    assert layer.update_gate == update_gate
    assert layer.bias_initializer.update_gate == update_gate
    assert isinstance(layer.recurrent_initializer, PerGate)
    for a, b in zip(layer.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow_cases
@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("update_gate", ["keep", "replace"])
def test_layers_with_a_bias_remember_longer(update_gate, reset_after):
    """How much a change of the first state still shows 100 steps later, with the same noise."""
    rng = np.random.default_rng(0)
    x = 0.3 * rng.normal(size=(8, 100, 3)).astype("float32")
    start = rng.normal(size=(8, U)).astype("float32")
    moved = start + 0.1 * rng.normal(size=(8, U)).astype("float32")
    seen = {}
    for name, options in {
        "zero": {},
        "remember": {"remember_bias": 2.0},
        "chrono": {"max_period": 100},
    }.items():
        layer = GRU(U, reset_after=reset_after, **recommended(update_gate, seed=5, **options))
        change = layer(x, initial_state=moved) - layer(x, initial_state=start)
        seen[name] = np.linalg.norm(change) / np.linalg.norm(moved - start)
    assert seen["remember"] > 2 * seen["zero"]
    assert seen["chrono"] > 0.2
    assert seen["chrono"] > 10 * seen["zero"]
