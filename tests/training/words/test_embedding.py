import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.network.steps import SentimentSteps
from gru_training.words.embedding import WordEmbedding

IDS = np.array([[2, 5, 4, 1], [3, 2, 0, 0]], np.int32)
VECTORS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_fixed_beside_trained():
    layer = WordEmbedding(6, 3, 4, 2)
    layer.build((None, None))
    layer.set_tables(VECTORS, None)
    vectors = layer(IDS)
    np.testing.assert_array_equal(vectors[..., :3], VECTORS[IDS])
    trained = layer.trained.numpy()
    np.testing.assert_array_equal(vectors[..., 3:], trained[[[2, 1, 1, 1], [3, 2, 0, 0]]])
    np.testing.assert_array_equal(layer.compute_mask(IDS), IDS != 0)


def test_a_model_learns_the_trained_part_alone_and_is_saved(tmp_path):
    keras.utils.set_random_seed(0)
    config = ClassifierConfig(embedding_size=2, units=4, bidirectional=False)
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


def test_pieces_are_added_to_the_trained_vectors():
    """The layer, compared with sums in a loop; the third word and the padding have no pieces."""
    pieces = np.array([[0, 0, 0], [0, 0, 0], [7, 3, 9], [3, 0, 0], [0, 0, 0], [3, 9, 0]], np.int32)
    layer = WordEmbedding(6, 3, 4, 2, most_pieces=3)
    layer.build((None, None))
    layer.set_tables(VECTORS, pieces)
    trained, table = layer.trained.numpy(), layer.piece_vectors.numpy()
    expected = np.zeros((*IDS.shape, 5), np.float64)
    for at in np.ndindex(*IDS.shape):
        word = IDS[at]
        there = [piece for piece in pieces[word] if piece]
        own = trained[word if word < 4 else 1].astype(np.float64)
        own += sum(table[piece] for piece in there) / max(1, len(there)) ** 0.5
        expected[at] = [*VECTORS[word], *own]
    np.testing.assert_allclose(layer(IDS), expected, rtol=1e-6, atol=1e-7)

    ids = tf.constant(IDS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids)[..., 3])
    gradient = tf.convert_to_tensor(tape.gradient(loss, layer.piece_vectors)).numpy()
    # Piece 3 occurs alone, among three, and among two.
    np.testing.assert_allclose(gradient[3, 0], 1 + 2 / 3**0.5 + 1 / 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(gradient[7, 0], 2 / 3**0.5, rtol=1e-6)
    assert not gradient[0].any()
    assert not gradient[:, 1].any()


def test_pieces_without_fixed_vectors_are_saved(tmp_path):
    keras.utils.set_random_seed(0)
    config = ClassifierConfig(embedding_size=2, units=4, bidirectional=False, subwords=True)
    pieces = np.array([[0, 0], [0, 0], [7, 3], [3, 0], [0, 0], [3, 9]], np.int32)
    model = build_sentiment_model(config, 6, 2, pieces=pieces)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded.get_layer("embedding").pieces, pieces)
    np.testing.assert_array_equal(loaded(IDS), model(IDS))


@pytest.mark.slow
def test_pieces_with_fit_as_keras_compiles():
    keras.utils.set_random_seed(0)
    config = ClassifierConfig(
        4, 4, bidirectional=False, dropout=0.0, word_dropout=0.0, subwords=True
    )
    pieces = np.array([[0, 0], [0, 0], [7, 3], [3, 0], [0, 0], [3, 9]], np.int32)
    model = build_sentiment_model(config, 6, 2, pieces=pieces)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss)
    losses = model.fit(IDS, np.array([0, 1]), epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
