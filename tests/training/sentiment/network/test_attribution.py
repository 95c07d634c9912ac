"""Scores of words add up to the answer, and name the words that decide."""

import keras
import numpy as np
import pytest

from training.sentiment.config import ClassifierConfig
from training.sentiment.network.attribution import Attribution, against_others
from training.sentiment.network.combination import combine
from training.sentiment.network.model import build_sentiment_model
from training.words.ngram_model import fit_ngrams
from training.words.token_rows import TokenRows

V, C = 14, 3
RNG = np.random.default_rng(0)
ROWS = [RNG.integers(2, V, length).astype(np.int32) for length in (5, 1, 9, 3, 7, 4)]
IDS = np.zeros((len(ROWS), 9), np.int32)
for number, row in enumerate(ROWS):
    IDS[number, : len(row)] = row
WEIGHTS = against_others([0, 1, 2, 0, 1, 2], C)


def model(pooling="max", bidirectional=True):
    keras.utils.set_random_seed(1)
    config = ClassifierConfig(6, 5, layers=2, pooling=pooling, bidirectional=bidirectional)
    built = build_sentiment_model(config, V, C)
    for variable in built.trainable_variables:
        variable.assign(RNG.normal(0, 0.5, variable.shape))
    return built


@pytest.mark.parametrize(
    ("pooling", "bidirectional"), [("max", True), ("attention", True), ("last", False)]
)
def test_scores_add_up_to_the_answer(pooling, bidirectional):
    built = model(pooling, bidirectional)
    attribution = Attribution(built, steps=300)
    scores = attribution(IDS, WEIGHTS)
    difference = ((built(IDS).numpy() - attribution.baseline(IDS)) * WEIGHTS).sum(axis=1)
    np.testing.assert_allclose(scores.sum(axis=1), difference, atol=5e-3)
    assert (scores[IDS == 0] == 0).all()
    # Padding and the other rows do not matter.
    alone = attribution(ROWS[3][np.newaxis], WEIGHTS[3:4])
    np.testing.assert_allclose(alone[0], scores[3, :3], atol=1e-5)


def test_with_ngrams_they_add_up_too_and_name_the_word_that_decides():
    rows = [RNG.integers(2, V, 6).astype(np.int32) for _ in range(90)]
    labels = np.array([0 if 5 in row else 1 if 7 in row else 2 for row in rows], np.int32)
    part = TokenRows(rows, labels)
    ngrams = fit_ngrams(part, part, C, V)
    built = model()
    both = combine(built, ngrams, (0.5, 2.0))
    attribution = Attribution(both, (0.5, 2.0), steps=300)
    scores = attribution(IDS, WEIGHTS)
    difference = ((both(IDS).numpy() - attribution.baseline(IDS)) * WEIGHTS).sum(axis=1)
    np.testing.assert_allclose(scores.sum(axis=1), difference, atol=5e-3)
    ngram_only = Attribution(combine(built, ngrams, (0.0, 1.0)), (0.0, 1.0), steps=2)
    text = np.array([[3, 9, 5, 11]], np.int32)
    assert ngram_only(text, against_others([0], C))[0].argmax() == 2


def test_weights_of_an_answer():
    np.testing.assert_allclose(against_others([2, 0], 3), [[-0.5, -0.5, 1], [1, -0.5, -0.5]])
