"""The n-gram regression in SciPy, in the graph, and beside a GRU."""

from collections import Counter
from dataclasses import replace
from functools import cache

import keras
import numpy as np
import pytest
from onnxruntime import InferenceSession
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from gru_serving.preprocessing.texts import RESERVED
from gru_training.errors import ConfigError
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.decision import Decision
from gru_training.sentiment.network.model import build_sentiment_model, combine, fit_shares
from gru_training.sentiment.network.steps import SentimentSteps
from gru_training.sentiment.served.head import ClassHead
from gru_training.sentiment.served.onnx import GraphWriter
from gru_training.words import ngrams
from gru_training.words.ngrams import NgramLogits, fit_ngrams
from gru_training.words.vocabulary import TokenRows

V = 12
TOKENS = (*RESERVED, *(f"w{number}" for number in range(2, V)))
WITHOUT_PIECES = (RESERVED[1],) * V


def rows(count, seed, classes=2):
    rng = np.random.default_rng(seed)
    ids = [rng.integers(1, V, rng.integers(1, 9)).astype(np.int32) for _ in range(count)]
    labels = np.array([(row.sum() + (row[0] > 5)) % classes for row in ids], np.int32)
    return TokenRows(ids, labels)


@cache
def small_model(classes, order=2):
    """A model of `rows`, and the rows that it was validated with."""
    train, validation = rows(200, 2, classes), rows(40, 3, classes)
    return fit_ngrams(train, validation, classes, TOKENS, order=order).final, validation


def grams(row, order):
    words = [int(i) for i in row if i]
    lengths = range(1, order + 1)
    return {
        tuple(words[k : k + length]) for length in lengths for k in range(len(words) - length + 1)
    }


def by_hand(train, validation, penalty, order):
    """Decision values of a binary regression from sets of n-grams, in plain Python."""
    times = Counter(name for row in train.ids for name in grams(row, order))
    names = sorted(name for name in times if len(name) < 3 or times[name] > 1)
    f = np.array([[float(name in grams(row, order)) for name in names] for row in train.ids])
    p = 1 + f[train.labels == 1].sum(0)
    q = 1 + f[train.labels == 0].sum(0)
    r = np.log((p / p.sum()) / (q / q.sum()))
    model = LogisticRegression(C=penalty, max_iter=5000).fit(f * r, train.labels)
    g = np.array([[float(name in grams(row, order)) for name in names] for row in validation.ids])
    return model.decision_function(g * r)


@pytest.mark.parametrize("order", [2, 3])
def test_against_sets_of_ngrams(order, monkeypatch):
    monkeypatch.setattr(ngrams, "MOST_FOLDED", 0)
    train, validation = rows(200, 0), rows(80, 1)
    fitted = fit_ngrams(train, validation, 2, TOKENS, order=order)
    assert fitted.final is fitted.trained
    logits = fitted.final.logits(validation.ids)
    decisions = {
        penalty: by_hand(train, validation, penalty, order) for penalty in (0.03, 0.3, 3.0)
    }
    best = max(decisions, key=lambda k: np.mean((decisions[k] > 0) == validation.labels))
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], decisions[best], atol=2e-3)


@pytest.mark.slow_cases
@pytest.mark.parametrize("classes", [2, 5])
def test_of_few_rows_all_are_learned(classes, monkeypatch):
    """The model is that of all rows; what validation is measured with knows the training rows."""
    monkeypatch.setattr(ngrams, "_INVERSE_PENALTIES_OF_TFIDF", ())
    train, validation = rows(200, 6, classes), rows(100, 7, classes)
    test = rows(100, 8, classes)
    both = TokenRows([*train.ids, *validation.ids], np.append(train.labels, validation.labels))
    fitted = fit_ngrams(train, validation, classes, WITHOUT_PIECES)
    assert fitted.trained.penalty == fitted.final.penalty
    for model, learned in ((fitted.trained, train), (fitted.final, both)):
        expected = np.stack(
            [
                by_hand(
                    TokenRows(learned.ids, np.int64(learned.labels == k)), test, model.penalty, 2
                )
                for k in range(classes)
            ],
            axis=1,
        )
        if classes == 2:
            expected /= 2  # half of it for either class
        # Dual coordinate descent to a tolerance of 0.1, beside L-BFGS.
        agreed = np.mean(model.logits(test.ids).argmax(axis=1) == expected.argmax(axis=1))
        assert agreed > 0.95
        np.testing.assert_allclose(
            model.logits(test.ids), expected, atol=0.1 * np.abs(expected).max()
        )


def test_a_penalty_is_chosen_by_the_training_rows_where_validation_is_small():
    """One validation row tells no penalties apart; the folds of the training rows do."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300).astype(np.int32)
    noise = rng.integers(4, V, (300, 6))
    told = np.where(rng.random(300) < 0.8, labels, 1 - labels) + 2
    train = TokenRows(
        [np.append(a, b).astype(np.int32) for a, b in zip(noise, told, strict=True)], labels
    )
    one = TokenRows(train.ids[:1], labels[:1])
    chosen = fit_ngrams(train, one, 2, WITHOUT_PIECES).final.penalty
    few, many = (
        np.mean((by_hand(part(train, 0), part(train, 1), penalty, 2) > 0) == labels[1::2])
        for penalty in (0.3, 10.0)
    )
    assert few > many
    assert chosen < 10


def part(every, first):
    return TokenRows(every.ids[first::2], every.labels[first::2])


def test_classes_weigh_the_same_where_folds_say_that_it_helps():
    """One row in twelve is of a class whose word others have, too: odds alone never answer it."""

    def drawn(count, seed):
        rng = np.random.default_rng(seed)
        labels = (rng.random(count) < 1 / 12).astype(np.int32)
        told = rng.random(count) < np.where(labels, 0.6, 0.15)
        ids = [np.append(rng.integers(3, V, 4), 2 if word else 3).astype(np.int32) for word in told]
        return TokenRows(ids, labels)

    def recall(labels, logits):
        right = logits.argmax(axis=1) == labels
        return float(np.mean([right[labels == k].mean() for k in (0, 1)]))

    train, validation, test = drawn(300, 0), drawn(60, 1), drawn(2000, 2)
    ones = [replace(part, weights=np.ones(len(part.ids))) for part in (train, validation)]
    even = fit_ngrams(train, validation, 2, WITHOUT_PIECES, recall).final
    given = fit_ngrams(*ones, 2, WITHOUT_PIECES, recall).final
    reached, least = (recall(test.labels, of.logits(test.ids)) for of in (even, given))
    assert reached > least + 0.03


def test_pieces_of_words_help_where_words_are_rare():
    """Each of 200 words of two stems stands in two or three rows, and stands for its stem."""
    tokens = [*RESERVED, *(f"##{stem}{n:03}" for stem in ("klarin", "trubos") for n in range(100))]
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.tile(np.arange(2, 202), 3)).reshape(300, 2).astype(np.int32)
    labels = np.int32(ids.max(axis=1) >= 102)
    train, validation, test = (
        TokenRows(list(ids[which]), labels[which])
        for which in (slice(0, 220), slice(220, 260), slice(260, 300))
    )
    fitted = fit_ngrams(train, validation, 2, tokens)
    alone = fit_ngrams(train, validation, 2, [RESERVED[1]] * 202)
    assert fitted.final.with_pieces
    assert not alone.final.with_pieces

    def right(model):
        return np.mean(model.logits(test.ids).argmax(axis=1) == test.labels)

    assert right(fitted.final) > right(alone.final) + 0.05


def test_the_most_frequent_ngrams_stay_where_they_are_too_many(monkeypatch):
    train = rows(200, 2, 3)
    every = fit_ngrams(train, train, 3, TOKENS).trained
    monkeypatch.setattr(ngrams, "MOST_WEIGHTS", 3 * 20 + 2)
    few = fit_ngrams(train, train, 3, TOKENS).trained
    held = np.asarray(every.indicators(train.ids).sum(axis=0)).ravel()
    assert few.weights.shape == (20, 3)
    assert (held[np.isin(every.keys, few.keys)]).min() >= np.sort(held)[-20]


@pytest.mark.parametrize("classes", [2, 3])
def test_tfidf_against_scikit_learn(classes, monkeypatch):
    """Inverse frequencies of all rows, vectors of length 1, the same regressions."""
    monkeypatch.setattr(ngrams, "_INVERSE_PENALTIES_OF_FEW", ())
    train, validation, test = (rows(count, seed, classes) for count, seed in
                               ((150, 0), (50, 1), (60, 2)))  # fmt: skip
    model = fit_ngrams(train, validation, classes, WITHOUT_PIECES).final
    both = [*train.ids, *validation.ids]
    labels = np.append(train.labels, validation.labels)
    vectors = TfidfVectorizer(analyzer=lambda row: sorted(grams(row, 2)), binary=True)
    x, y = vectors.fit_transform(both), vectors.transform(test.ids)
    expected = np.stack(
        [
            LogisticRegression(C=model.penalty, max_iter=5000)
            .fit(x, labels == k)
            .decision_function(y)
            for k in range(classes)
        ],
        axis=1,
    )
    if classes == 2:
        expected /= 2
    logits = model.logits(test.ids)
    assert np.mean(logits.argmax(axis=1) == expected.argmax(axis=1)) > 0.93
    np.testing.assert_allclose(logits, expected, atol=0.1 * np.abs(expected).max())
    np.testing.assert_array_equal(model.logits([np.array([0])]), [model.bias])


@pytest.mark.parametrize("unit_length", [False, True])
@pytest.mark.parametrize(("classes", "order"), [(2, 2), (3, 2), (2, 3)])
def test_the_layer_answers_as_the_model(classes, order, unit_length, tmp_path):
    model, validation = small_model(classes, order)
    assert (model.keys >= V + V**2).any() == (order == 3)
    squares = np.random.default_rng(0).uniform(0.5, 4, len(model.keys)).astype(np.float32)
    model = replace(model, squares=squares if unit_length else None)
    inputs = keras.Input((None,), dtype="int32")
    layer = NgramLogits(len(model.keys), classes, V, order, unit_length)
    network = keras.Model(inputs, layer(inputs))
    layer.set_model(model)
    padded = np.zeros((42, 9), np.int32)  # the last two rows are empty
    for place, row in enumerate(validation.ids):
        padded[place, : len(row)] = row
    expected = np.concatenate([model.logits(validation.ids), np.tile(model.bias, (2, 1))])
    np.testing.assert_allclose(network(padded), expected, atol=1e-5)
    single = np.array([[3], [0]], np.int32)  # no room for a pair
    alone = [model.logits([np.array([3])])[0], model.bias]
    np.testing.assert_allclose(network(single), alone, atol=1e-5)
    network.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(padded), network(padded))


HEAD = ClassHead(tuple("abc"), 1.0, Decision())


@pytest.mark.parametrize("unit_length", [False, True])
def test_the_graph_of_onnx_answers_as_the_network(unit_length):
    keras.utils.set_random_seed(0)
    model, validation = small_model(3)
    squares = np.random.default_rng(0).uniform(0.5, 4, len(model.keys)).astype(np.float32)
    model = replace(model, squares=squares if unit_length else None)
    both = combine(build_sentiment_model(ClassifierConfig(3, 4), V, 3), model, (0.75, 0.5))
    padded = np.zeros((41, 9), np.int32)  # the last row is empty
    for place, row in enumerate(validation.ids):
        padded[place, : len(row)] = row
    session = InferenceSession(GraphWriter(both, 9, HEAD).answer().SerializeToString())
    for ids in (padded, padded[:, :1]):
        (logits,) = session.run(None, {"token_ids": ids})
        np.testing.assert_allclose(logits, both(ids), atol=1e-5)


def test_words_have_room_in_the_keys():
    train = rows(20, 5)
    most = 2**21 - 1
    assert most + most**2 + most**3 < 2**63 <= 2**21 + 2**42 + 2**63
    large, small = (fit_ngrams(train, train, 2, ("w",) * size, order=3).final for size in (most, V))
    np.testing.assert_array_equal(large.logits(train.ids), small.logits(train.ids))
    with pytest.raises(ConfigError, match=r"--ngram-order 3 .* at most 2,097,151 .* 2,097,152"):
        fit_ngrams(train, train, 2, ("w",) * 2**21, order=3)


def test_shares_are_the_likeliest_on_a_grid():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    signal = np.where(labels == 1, 1.0, -1.0)

    def logits(strength):
        score = strength * signal + rng.normal(0, 2, 500)
        return np.stack([-score, score], 1)

    gru, ngrams = logits(1.5), logits(0.5)
    shares = fit_shares(labels, gru, ngrams)

    def loss(a, b):
        margin = (a * gru + b * ngrams) @ [-1, 1] * signal
        return np.logaddexp(0, -margin).mean()

    grid = min(loss(a, b) for a in np.linspace(0, 1, 41) for b in np.linspace(0, 1, 41))
    assert loss(*shares) <= grid + 1e-6
    assert shares[0] > shares[1] > 0


def test_a_regression_that_misleads_gets_no_share():
    labels = np.array([0, 1] * 50)
    right = np.where(labels[:, np.newaxis] == [0, 1], 1.0, -1.0)
    noisy = right + np.random.default_rng(1).normal(0, 1.5, (100, 2))
    assert fit_shares(labels, noisy, -right)[1] == 0


def test_a_network_that_helps_by_chance_alone_gets_no_share():
    """Of 60 rows: noise never counts; what tells the classes as well as the regression does."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 60)
    signal = np.where(labels[:, np.newaxis] == [0, 1], 1.0, -1.0)
    shares = []
    for _ in range(10):
        told, noise, also = (rng.normal(0, 1.5, (60, 2)) for _ in range(3))
        shares.append([fit_shares(labels, noise, signal + told)[0]])
        shares[-1].append(fit_shares(labels, 2 * signal + also, signal + told)[0])
    chance, real = np.mean(np.array(shares) > 0, axis=0)
    assert chance <= 0.2
    assert real >= 0.8


def test_where_all_rows_are_right_the_regression_is_as_sure_as_it_is():
    signal = np.where(np.array([0, 1] * 30)[:, np.newaxis] == [0, 1], 1.0, -1.0)
    noise = np.random.default_rng(3).normal(0, 1, (60, 2))
    assert fit_shares(np.array([0, 1] * 30), noise, 2 * signal) == (0.0, 1.0)


def test_combined_model():
    keras.utils.set_random_seed(0)
    ngrams, _ = small_model(2)
    gru = build_sentiment_model(ClassifierConfig(3, 4, bidirectional=False), V, 2)
    both = combine(gru, ngrams, (0.75, 0.5))
    batch = np.array([[3, 4, 5, 0], [7, 0, 0, 0]], np.int32)
    expected = 0.75 * gru(batch).numpy() + 0.5 * ngrams.logits([batch[0, :3], batch[1, :1]])
    np.testing.assert_allclose(both(batch), expected, atol=1e-5)
    steps = SentimentSteps(both)
    assert SentimentSteps(gru).streams
    assert not steps.streams
    shown = steps.unroll(batch)
    np.testing.assert_allclose(shown.logits[0, 2], expected[0], atol=1e-5)
    np.testing.assert_allclose(shown.logits[0, 0], both(batch[:1, :1])[0], atol=1e-5)
