"""Long texts read in chunks, beside each chunk read by itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import InChunks, build_sentiment_model
from gru_training.sentiment.network.steps import Attribution, SentimentSteps

V, SIZE = 30, 4
RNG = np.random.default_rng(0)


def padded(*lengths):
    ids = np.zeros((len(lengths), max(lengths)), np.int32)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = RNG.integers(2, V, length)
    return ids


@pytest.fixture(scope="module")
def models():
    """The same weights, with chunks and without."""
    keras.utils.set_random_seed(0)
    config = {"embedding_size": 5, "units": 3, "layers": 2}
    whole = build_sentiment_model(ClassifierConfig(**config), V, 3)
    chunked = build_sentiment_model(ClassifierConfig(**config, chunk=SIZE), V, 3)
    chunked.set_weights(whole.get_weights())
    return whole, chunked


def test_short_texts_are_read_as_without_chunks(models):
    ids = padded(4, 1, 3)
    np.testing.assert_allclose(models[1](ids), models[0](ids), atol=1e-6)


def test_chunks_are_pooled_as_if_read_by_themselves(models):
    """Of 12 words in chunks of 4 the greatest feature of the three; 8 words have two chunks."""
    whole, chunked = models
    ids = padded(12, 8)
    features = keras.Model(whole.input, whole.get_layer("pooling").output)
    by_itself = features(ids.reshape(6, SIZE)).numpy().reshape(2, 3, -1)
    pooled = np.stack([by_itself[0].max(axis=0), by_itself[1, :2].max(axis=0)])
    wanted = whole.get_layer("logits")(pooled)
    np.testing.assert_allclose(chunked(ids), wanted, atol=1e-6)
    assert not np.allclose(chunked(ids), whole(ids), atol=1e-4)


def test_an_answer_does_not_depend_on_the_other_rows(models):
    ids = padded(9, 15, 3)
    together = models[1](ids)
    for row, length in enumerate((9, 15, 3)):
        alone = models[1](ids[row : row + 1, :length])
        np.testing.assert_allclose(alone[0], together[row], atol=1e-6)


def test_cut_and_joined_again():
    layer = InChunks(keras.layers.GRU(2, return_sequences=True), SIZE)
    values = tf.reshape(tf.range(18.0), (2, 9))
    assert layer.cut(values).numpy().tolist()[2] == [8, 0, 0, 0]
    np.testing.assert_array_equal(layer.join(layer.cut(values), values), values)


def test_gates_are_those_of_the_chunks(models):
    chunked = SentimentSteps(models[1])
    assert not chunked.streams
    ids = padded(8, 6)
    shown = chunked.unroll(ids)
    parts = SentimentSteps(models[0]).unroll(ids.reshape(4, SIZE))
    for name in ("update_gate", "reset_gate", "state"):
        wanted = getattr(parts, name).numpy().reshape(2, 8, 2, 2, 3)
        np.testing.assert_allclose(getattr(shown, name), wanted, atol=1e-6)
    np.testing.assert_allclose(shown.logits[:1, -1], models[1](ids[:1]), atol=1e-5)


def test_attributions_add_up(models):
    ids, weights = padded(9, 5), np.array([[1.0, -0.5, -0.5]] * 2, np.float32)
    attribution = Attribution(models[1])
    found = tf.reduce_sum(attribution(ids, weights), axis=1)
    wanted = tf.reduce_sum((models[1](ids) - attribution.baseline(ids)) * weights, axis=1)
    np.testing.assert_allclose(found, wanted, atol=0.02)


def test_a_saved_model_reads_any_length(models, tmp_path):
    models[1].save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for length in (1, 4, 5, 11):
        ids = padded(length)
        np.testing.assert_allclose(again(ids), models[1](ids), atol=1e-6)
