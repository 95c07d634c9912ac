import keras
import numpy as np
import tensorflow as tf

from training.sentiment_config import ModelConfig
from training.sentiment_model import build_sentiment_model
from training.sentiment_steps import SentimentSteps
from training.word_embedding import WordEmbedding

IDS = np.array([[2, 5, 4, 1], [3, 2, 0, 0]], np.int32)
VECTORS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_fixed_beside_trained():
    layer = WordEmbedding(6, 3, 4, 2)
    layer.build((None, None))
    layer.set_fixed(VECTORS)
    vectors = layer(IDS)
    np.testing.assert_array_equal(vectors[..., :3], VECTORS[IDS])
    trained = layer.trained.numpy()
    np.testing.assert_array_equal(vectors[..., 3:], trained[[[2, 1, 1, 1], [3, 2, 0, 0]]])
    np.testing.assert_array_equal(layer.compute_mask(IDS), IDS != 0)
    assert WordEmbedding(6, 3, 4, 0)(IDS).shape == (2, 4, 3)


def test_a_model_learns_the_trained_part_alone_and_is_saved(tmp_path):
    keras.utils.set_random_seed(0)
    config = ModelConfig(embedding_size=2, units=4, bidirectional=False)
    model = build_sentiment_model(config, 6, 2, VECTORS, 4)
    optimizer = keras.optimizers.Adam(0.1)
    embedding = model.get_layer("embedding")
    before = embedding.trained.numpy().copy()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(IDS, training=True) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    np.testing.assert_array_equal(embedding.fixed, VECTORS)
    moved = np.any(embedding.trained.numpy() != before, axis=1)
    np.testing.assert_array_equal(moved[1:], [True, True, True])

    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(IDS), model(IDS))
    steps = SentimentSteps(loaded)
    logits, _ = steps.advance(IDS, np.zeros((2, steps.state_size), np.float32))
    np.testing.assert_allclose(logits, model(IDS), atol=1e-6)
