import numpy as np
import pytest

from gru_training.errors import ConfigError
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import build_sentiment_model, initialise_words
from gru_training.words.ngrams import word_ratios
from gru_training.words.vocabulary import TokenRows


def rows(labels):
    ids = [[2, 2, 3], [2, 4], [3, 3, 1], [9, 4]]
    return TokenRows([np.array(row, np.int32) for row in ids], np.array(labels, np.int32))


def test_two_classes_by_hand():
    """Texts with word 2: 2 of class 1, none of class 0; word 3: one each; word 4: one each."""
    got = word_ratios(rows([1, 1, 0, 0]), 2, 5)
    p = np.array([1, 1, 1 + 2, 1 + 1, 1 + 1])
    q = np.array([1, 1, 1 + 0, 1 + 1, 1 + 1])
    expected = np.log(p / p.sum()) - np.log(q / q.sum())
    expected[:2] = 0
    np.testing.assert_allclose(got, expected[:, None], rtol=1e-12)


def test_each_of_three_classes_against_the_rest():
    got = word_ratios(rows([0, 1, 2, 2]), 3, 6)
    assert got.shape == (6, 3)
    assert got[2, 0] > 0 > got[2, 2]
    assert got[3, 0] > got[4, 0]
    assert not got[:2].any()


@pytest.mark.parametrize("subwords", [False, True])
def test_the_vectors_begin_with_them(subwords):
    config = ClassifierConfig(embedding_size=3, units=2)
    pieces = np.ones((6, 1), np.int32) if subwords else None
    model = build_sentiment_model(config, 6, 2, pieces=pieces)
    before = model.get_layer("embedding").get_weights()[0]
    ratios = np.linspace(-1, 1, 6)[:, None]
    initialise_words(model, ratios)
    after = model.get_layer("embedding").get_weights()[0]
    np.testing.assert_allclose(after[:, 0], 0.3 * ratios[:, 0], rtol=1e-6)
    np.testing.assert_array_equal(after[:, 1:], before[:, 1:])
    with pytest.raises(ConfigError, match=r"--embedding-size must be at least 4 .* got 3"):
        initialise_words(model, np.zeros((6, 4)))
