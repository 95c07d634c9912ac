"""Scores of words add up to the answer, and are those of a plain sum of finite differences."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from onnxruntime import InferenceSession

from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.decision import Decision
from gru_training.sentiment.network.model import build_sentiment_model, combine, shares_of
from gru_training.sentiment.network.steps import Attribution
from gru_training.sentiment.served.head import ClassHead, LabelsHead
from gru_training.sentiment.served.onnx import GraphWriter
from gru_training.words.ngrams import NgramModel, fit_ngrams
from gru_training.words.vocabulary import TokenRows
from tests import oracle

V, C = 14, 3
RNG = np.random.default_rng(0)
ROWS = [RNG.integers(2, V, length).astype(np.int32) for length in (5, 1, 9, 3, 7, 4)]
IDS = np.zeros((len(ROWS), 9), np.int32)
for number, row in enumerate(ROWS):
    IDS[number, : len(row)] = row
WEIGHTS = RNG.normal(size=(len(ROWS), C)).astype(np.float32)


def model(pooling="max", bidirectional=True, layers=2):
    keras.utils.set_random_seed(1)
    config = ClassifierConfig(6, 5, layers=layers, pooling=pooling, bidirectional=bidirectional)
    built = build_sentiment_model(config, V, C)
    for variable in built.trainable_variables:
        variable.assign(RNG.normal(0, 0.5, variable.shape))
    return built


def explained(built, attribution, ids=IDS, weights=WEIGHTS):
    """What the scores should add up to."""
    return ((built(ids).numpy() - attribution.baseline(ids).numpy()) * weights).sum(axis=1)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("pooling", "bidirectional"),
    [("last", False), ("max", True), ("mean", True), ("attention", True)],
)
def test_scores_add_up_to_the_answer(pooling, bidirectional):
    built = model(pooling, bidirectional)
    attribution = Attribution(built)
    scores = attribution(IDS, WEIGHTS).numpy()
    # The maximum has kinks along the line, at which a quadrature is less exact.
    tolerance = 0.05 if pooling == "max" else 1e-4
    np.testing.assert_allclose(scores.sum(axis=1), explained(built, attribution), atol=tolerance)
    assert (scores[IDS == 0] == 0).all()
    alone = attribution(ROWS[3][np.newaxis], WEIGHTS[3:4])
    np.testing.assert_allclose(alone[0], scores[3, :3], atol=1e-5)


def oracle_answer(built, vectors, weights):
    """Of one text's vectors (T, D), in float64 with loops: one layer, one direction, last state."""
    cell = built.get_layer("gru_1").cell
    arrays = [
        np.asarray(each, np.float64) for each in (cell.kernel, cell.recurrent_kernel, cell.bias)
    ]
    states, _ = oracle.forward(vectors, np.zeros(5), *arrays, reset_after=True)
    dense = built.get_layer("logits")
    logits = states[-1] @ np.asarray(dense.kernel, np.float64) + np.asarray(dense.bias, np.float64)
    return logits @ weights


@pytest.mark.slow
def test_scores_are_a_riemann_sum_of_finite_differences():
    built = model("last", bidirectional=False, layers=1)
    table = np.asarray(built.get_layer("embedding").embeddings, np.float64)
    points, step = 100, 1e-5
    for row in (0, 2):
        vectors = table[ROWS[row]]
        sums = np.zeros(len(vectors))
        for t in range(len(vectors)):
            towards = np.zeros_like(vectors)
            towards[t] = vectors[t]
            for place in (np.arange(points) + 0.5) / points:
                high, low = (
                    oracle_answer(built, place * vectors + sign * step * towards, WEIGHTS[row])
                    for sign in (1, -1)
                )
                sums[t] += (high - low) / (2 * step) / points
        found = Attribution(built)(IDS[row : row + 1], WEIGHTS[row : row + 1])[0]
        np.testing.assert_allclose(found[: len(sums)], sums, atol=1e-4)


@pytest.mark.slow
def test_with_ngrams_they_add_up_too():
    rows = [RNG.integers(2, V, 6).astype(np.int32) for _ in range(90)]
    labels = np.array([0 if 5 in row else 1 if 7 in row else 2 for row in rows], np.int32)
    part = TokenRows(rows, labels)
    both = combine(
        model("last", False), fit_ngrams(part, part, C, ("[UNK]",) * V).final, (0.5, 2.0)
    )
    assert shares_of(both) == (0.5, 2.0)
    attribution = Attribution(both)
    scores = attribution(IDS, WEIGHTS).numpy()
    np.testing.assert_allclose(scores.sum(axis=1), explained(both, attribution), atol=1e-4)


@pytest.mark.parametrize(("squares", "length"), [(None, 1), ((1, 4, 2, 2), 3)])
def test_an_ngram_is_shared_by_its_words(squares, length):
    keys = np.array([3, 5, V + 3 * V + 5, V + 5 * V + 3])  # "3", "5", "3 5", "5 3"
    values = np.array([[1.0, 0], [0, 2], [4, 0], [0, 8]], np.float32)
    ngrams = NgramModel(
        V,
        keys,
        values,
        np.array([0.25, 0.5], np.float32),
        squares=None if squares is None else np.array(squares, np.float32),
    )
    config = ClassifierConfig(6, 5)
    both = combine(build_sentiment_model(config, V, 2), ngrams, (0.0, 1.0))
    attribution = Attribution(both)
    # The word 3 occurs twice, and each time it has half of what it is worth once.
    ids, weights = np.array([[3, 5, 3, 9]], np.int32), np.array([[1, -1]], np.float32)
    expected = np.array([2.5, -4, 0.5 - 4, 0]) / length
    np.testing.assert_allclose(attribution(ids, weights)[0], expected, atol=1e-6)
    np.testing.assert_allclose(attribution.baseline(ids), [[0.25, 0.5]], atol=1e-6)


def test_three_words_share_a_trigram():
    triple = V + V**2 + (3 * V + 5) * V + 9
    ngrams = NgramModel(
        V, np.array([3, triple]), np.array([[1.0, 0], [6, 0]], np.float32), np.zeros(2), order=3
    )
    both = combine(build_sentiment_model(ClassifierConfig(6, 5), V, 2), ngrams, (0.0, 1.0))
    attribution, weights = Attribution(both), np.array([[1, -1]], np.float32)
    for ids, scores in (([4, 3, 5, 9], [0, 3, 2, 2]), ([3, 5], [1, 0]), ([3], [1])):
        found = attribution(np.array([ids], np.int32), weights)[0]
        np.testing.assert_allclose(found, scores, atol=1e-6)


COSTS = ((0.0, -5.0, -1.0), (-1.0, 0.0, -3.0), (-1.0, -9.0, 0.0))
HEADS = {
    "class": ClassHead(tuple("abc"), 1.5, Decision()),
    "costs": ClassHead(tuple("abc"), 1.0, Decision((0.1, 0.5, 0.2), COSTS)),
    "none eligible": ClassHead(tuple("abc"), 1.0, Decision(thresholds=(0.99999,) * 3)),
    "labels": LabelsHead(tuple("abc"), 0.7, Decision(thresholds=(0.2, 0.9, 0.5))),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("pooling", "bidirectional", "head", "squares"),
    [
        ("last", False, "labels", False),
        ("max", True, "class", True),
        ("mean", True, "costs", False),
        ("attention", True, "none eligible", True),
        ("last", True, "class", None),
    ],
)
def test_the_graph_of_onnx_explains_alike(pooling, bidirectional, head, squares):
    """Written-out gradients beside TensorFlow's, of each text alone and beside padding."""
    built, head = model(pooling, bidirectional), HEADS[head]
    if squares is not None:
        keys = np.unique(RNG.integers(2, V + V**2 + V**3, 900))
        ngrams = NgramModel(
            V,
            keys,
            RNG.normal(size=(len(keys), C)).astype(np.float32),
            RNG.normal(size=C).astype(np.float32),
            order=3,
            squares=RNG.uniform(0.5, 2, len(keys)).astype(np.float32) if squares else None,
        )
        built = combine(built, ngrams, (0.5, 2.0))
    graph = GraphWriter(built, IDS.shape[1], head).attribution()
    session, attribution = InferenceSession(graph.SerializeToString()), Attribution(built)
    ids = np.concatenate([IDS, np.zeros((1, 9), np.int32)])
    logits, baselines = built(ids).numpy(), attribution.baseline(ids).numpy()
    for place in (-1, 2):
        explained = head.foremost(logits).numpy() if place < 0 else np.full(len(ids), place)
        weights = head.contrast(explained).numpy()
        expected = {
            "attribution": attribution(ids, weights).numpy(),
            "value": (logits * weights).sum(axis=1),
            "baseline": (baselines * weights).sum(axis=1),
        }
        for number, row in enumerate([*ROWS, np.zeros(2, np.int32)]):
            for text in (row, ids[number]):
                feeds = {"token_ids": text[np.newaxis], "place": np.array([place])}
                *found, of = session.run([*expected, "explained"], feeds)
                assert of.tolist() == [explained[number]]
                for got, wanted in zip(found, expected.values(), strict=True):
                    shown = wanted[number, : len(text)] if wanted.ndim == 2 else wanted[number]
                    np.testing.assert_allclose(got[0], shown, atol=1e-5)


def test_a_text_without_words_has_no_scores():
    attribution = Attribution(model())
    empty = np.zeros((2, 1), np.int32)
    np.testing.assert_array_equal(attribution(empty, WEIGHTS[:2]), np.zeros((2, 1)))
    nothing = tf.zeros((0, 3), tf.int32)
    assert attribution(nothing, tf.zeros((0, C))).shape == (0, 3)
