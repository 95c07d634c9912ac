"""The losses beside NumPy, and the sampled one beside the whole softmax."""

import numpy as np
import pytest
import tensorflow as tf

from gru_training.language.config import LanguageModelConfig
from gru_training.language.model import (
    build_language_model,
    full_cross_entropy,
    sampled_cross_entropy,
    target_log_probabilities,
)

V, E, N = 40, 5, 9
RNG = np.random.default_rng(1)
FEATURES = RNG.normal(size=(N, E)).astype(np.float32)
TARGETS = RNG.integers(1, V, N).astype(np.int32)


@pytest.fixture
def model():
    built = build_language_model(LanguageModelConfig(embedding_size=E, units=4), V)
    for weight in built.weights:
        if weight.dtype == "float32":
            weight.assign(np.random.default_rng(2).normal(0, 0.7, weight.shape))
    return built


def losses_by_hand(model):
    table, bias = model.embedding.embeddings.numpy(), model.output_bias.numpy()
    logits = (FEATURES @ table.T + bias).astype(np.float64)[:, 1:]  # padding is never predicted
    whole = np.log(np.exp(logits).sum(axis=1))
    return whole - logits[np.arange(N), TARGETS - 1]


def test_all_tokens_but_padding_share_the_probability(model):
    expected = losses_by_hand(model)
    np.testing.assert_allclose(full_cross_entropy(model, FEATURES, TARGETS), expected, atol=1e-5)
    found = target_log_probabilities(model, tf.constant(FEATURES), tf.constant(TARGETS))
    np.testing.assert_allclose(found, -expected, atol=1e-5)
    many = np.tile(FEATURES, (300, 1))  # more than are computed at once
    found = target_log_probabilities(model, tf.constant(many), tf.constant(np.tile(TARGETS, 300)))
    np.testing.assert_allclose(found, np.tile(-expected, 300), atol=1e-5)


def test_the_sampled_loss_tends_to_the_whole_one(model):
    """Beside the target the drawn ones stand for all others, so hits are corrected for."""
    found = sampled_cross_entropy(
        model, tf.constant(FEATURES), tf.constant(TARGETS), 200_000, [3, 4]
    )
    table, bias = model.embedding.embeddings.numpy(), model.output_bias.numpy()
    logits = (FEATURES @ table.T + bias).astype(np.float64)[:, 1:]
    classes = np.arange(V - 1)
    share = np.log((classes + 2) / (classes + 1)) / np.log(V)
    assert share.sum() == pytest.approx(1)
    own = logits[np.arange(N), TARGETS - 1] - np.log(share[TARGETS - 1] * 200_000)
    others = np.exp(logits)
    others[np.arange(N), TARGETS - 1] = 0  # a drawn token that is the target counts for nothing
    expected = np.log(np.exp(own) + others.sum(axis=1)) - own
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_gradients_are_of_the_rows_used_and_the_draw_is_of_the_seed(model):
    features, targets = tf.constant(FEATURES), tf.constant(TARGETS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(sampled_cross_entropy(model, features, targets, 8, [3, 4]))
    gradient = tape.gradient(loss, model.embedding.embeddings.value)
    assert isinstance(gradient, tf.IndexedSlices)
    assert set(TARGETS) <= set(gradient.indices.numpy())
    assert len(gradient.indices) == N + 8
    again, other = (
        float(tf.reduce_sum(sampled_cross_entropy(model, features, targets, 8, seed)))
        for seed in ([3, 4], [3, 5])
    )
    assert again == float(loss) != other
