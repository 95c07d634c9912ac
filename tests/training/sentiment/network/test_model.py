import keras
import numpy as np
import pytest

from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import WordDropout, build_sentiment_model
from keras_gru import GRU

RNG = np.random.default_rng(2)
IDS = np.array([[3, 4, 5, 6], [7, 1, 0, 0], [0, 0, 0, 0]], np.int32)


def small_model(**options):
    keras.utils.set_random_seed(3)
    return build_sentiment_model(ClassifierConfig(embedding_size=5, units=4, **options), 12, 3)


def test_word_dropout_spares_padding_and_inference():
    ids = np.tile(np.array([[5, 6, 7, 0]], np.int32), (4000, 1))
    layer = WordDropout(0.25, seed=1)
    dropped = np.asarray(layer(ids, training=True))
    assert not dropped[:, 3].any()
    assert set(np.unique(dropped)) == {0, 1, 5, 6, 7}
    assert np.mean(dropped[:, :3] == 1) == pytest.approx(0.25, abs=0.02)
    np.testing.assert_array_equal(layer(ids, training=False), ids)
    np.testing.assert_array_equal(layer(ids), ids)
    with pytest.raises(ValueError, match=r"below 1, got 1\.0"):
        WordDropout(1.0)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_answers_do_not_depend_on_padding_or_neighbours(bidirectional):
    model = small_model(bidirectional=bidirectional, layers=2)
    together = model(IDS).numpy()
    np.testing.assert_allclose(model(IDS[1:2, :2])[0], together[1], rtol=1e-5, atol=1e-6)
    wider = np.pad(IDS, [(0, 0), (0, 7)])
    np.testing.assert_allclose(model(wider), together, rtol=1e-5, atol=1e-6)
    assert np.isfinite(together).all()


def test_contract_of_the_saved_model(tmp_path):
    model = small_model()
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert [tensor.name for tensor in loaded.inputs] == ["token_ids"]
    assert loaded.inputs[0].dtype == "int32"
    assert loaded.inputs[0].shape == (None, None)
    assert loaded.outputs[0].shape == (None, 3)
    np.testing.assert_array_equal(loaded(IDS), model(IDS))
    directions = loaded.get_layer("bidirectional_1")
    assert isinstance(directions.forward_layer, GRU)


def test_forward_equals_a_hand_written_chain():
    model = small_model(bidirectional=False, dropout=0.3, word_dropout=0.3)
    embedding = model.get_layer("embedding").get_weights()[0].astype(np.float64)
    kernel, recurrent, bias = (w.astype(np.float64) for w in model.get_layer("gru_1").get_weights())
    dense, offset = model.get_layer("logits").get_weights()

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    for row, length in ((0, 4), (1, 2)):
        h, states = np.zeros(4), []
        for token in IDS[row, :length]:
            z_x, r_x, g_x = np.split(embedding[token] @ kernel + bias[0], 3)
            z_h, r_h, g_h = np.split(h @ recurrent + bias[1], 3)
            z = sigmoid(z_x + z_h)
            h = z * h + (1 - z) * np.tanh(g_x + sigmoid(r_x + r_h) * g_h)
            states.append(h)
        expected = np.max(states, axis=0) @ dense + offset
        np.testing.assert_allclose(model(IDS)[row], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_same_model_compiles_and_fits():
    model = small_model(bidirectional=False, dropout=0.0, word_dropout=0.0)
    model.compile(
        keras.optimizers.Adam(0.05),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    labels = np.array([0, 1, 2], np.int32)
    history = model.fit(IDS, labels, batch_size=3, epochs=40, verbose=0).history
    assert history["loss"][-1] < 0.2 * history["loss"][0]
    assert history["accuracy"][-1] == 1.0
