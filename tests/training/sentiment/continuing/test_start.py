"""Before it has learned anything, the grown network answers as the one it came from."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from gru_training.sentiment.config import PretrainingConfig, SentimentDataConfig
from gru_training.sentiment.continuing.growth import grown_ngrams
from gru_training.sentiment.continuing.rows import load_data
from gru_training.sentiment.continuing.start import Start, log_odds
from gru_training.sentiment.fitting import read_texts
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.pipeline import train_sentiment
from gru_training.sentiment.run import SentimentRun
from gru_training.words.ngram_model import fit_ngrams
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import UNKNOWN, token_ids
from tests.made_once import made_once
from tests.training.sentiment.continuing.tickets import (
    NEW_WORDS,
    config,
    settings,
    tickets,
    write,
)


def make_run(folder, name):
    data = SentimentDataConfig(data=write(folder / "old.csv", tickets(240, 0)), min_count=2)
    vectors = PretrainingConfig(word_vectors=True, vector_size=3, topic_size=2)
    made = {
        "plain": lambda: config(folder, name, data, pooling="attention", ngrams=False),
        "subwords": lambda: config(folder, name, data, subwords=True, layers=2, chunk=4),
        "vectors": lambda: replace(config(folder, name, data, ngrams=False), pretraining=vectors),
        "pieces": lambda: config(folder, name, replace(data, pieces=120), bidirectional=True),
    }
    train_sentiment(made[name]())


@pytest.fixture(scope="module")
def run_of():
    def opened(name):
        folder = made_once(f"continued_{name}", lambda folder: make_run(folder, name))
        return SentimentRun.open(folder / name)

    return opened


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "plain",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("subwords", "vectors", "pieces")),
    ],
)
def test_old_texts_get_the_same_logits(run_of, name, tmp_path):
    run = run_of(name)
    wanted = settings(run, write(tmp_path / "new.csv", tickets(90, 1, NEW_WORDS)))
    data, start = load_data(wanted), Start(run)
    read = read_texts(data, wanted, tmp_path, start=start)
    known = run.vocabulary.tokens
    assert read.words.vocabulary.tokens[: len(known)] == known
    grows = name != "pieces"
    assert ("password" in read.words.vocabulary.tokens) == grows
    vocabulary, vectors, trained, pieces = read.words
    model = build_sentiment_model(
        wanted.model, len(vocabulary), len(data.classes), vectors, trained, pieces
    )
    labels = data.train.labels
    odds = log_odds(labels[:, np.newaxis] == np.arange(len(data.classes)))
    start.set_weights(model, odds)
    texts = [text for part in data.parts().values() for text in part.texts[:60]]
    of_old = predict_logits(_gru(run.load_model()), token_ids(run.preprocessor(), texts))
    of_new = predict_logits(model, token_ids(read.preprocessor, texts))
    if name == "subwords":  # a new word has its own pieces, so that texts with it differ
        ids = token_ids(read.preprocessor, texts)
        same = np.array([row.max() < len(known) for row in ids])
        of_old, of_new = of_old[same], of_new[same]
        assert same.sum() > 100
    np.testing.assert_allclose(of_new[:, :3], of_old, atol=1e-6)
    np.testing.assert_allclose(of_new[:, 3], odds[3], atol=1e-6)
    share = np.mean(labels == 3)
    assert odds[3] == pytest.approx(np.log(share / (1 - share)), abs=0.1)


def _gru(model):
    import keras

    return keras.Model(model.input, model.get_layer("logits").output)


@pytest.mark.slow
def test_new_words_begin_with_the_unknown_words_vector(run_of, tmp_path):
    run = run_of("plain")
    wanted = settings(run, write(tmp_path / "new.csv", tickets(90, 1, NEW_WORDS)))
    data, start = load_data(wanted), Start(run)
    words = start.words(data.train.texts, wanted)
    model = build_sentiment_model(wanted.model, len(words.vocabulary), 4)
    start.set_weights(model, np.zeros(4, np.float32))
    table = model.get_layer("embedding").embeddings.numpy()
    before = run.load_model().get_layer("embedding").embeddings.numpy()
    np.testing.assert_array_equal(table[: len(before)], before)
    assert len(table) > len(before)
    np.testing.assert_array_equal(table[len(before) :] - before[UNKNOWN], 0)
    # The same rules: seen twice or more, and no more words than --max-vocabulary.
    seen = Counter(word for text in data.train.texts for word in text.split())
    added = words.vocabulary.tokens[len(before) :]
    assert added
    assert min(seen[word.strip("\N{ZERO WIDTH JOINER}")] for word in added if word in seen) >= 2
    assert not any("1x" in word for word in added)  # each of those stands in one text alone
    full = replace(wanted.data, max_vocabulary=len(before) - 2 + 3)
    capped = start.words(data.train.texts, replace(wanted, data=full))
    assert len(capped.vocabulary) == len(before) + 3


@pytest.mark.parametrize("order", [2, 3])
def test_grown_ngrams_answer_known_ngrams_as_before(order):
    rng = np.random.default_rng(0)
    size = 7
    rows = [rng.integers(1, size, 5).astype(np.int32) for _ in range(40)]
    part = TokenRows(rows, rng.integers(0, 2, 40))
    model = fit_ngrams(part, part, 2, size, order=order)
    assert (model.keys >= size + size**2).any() == (order == 3)
    grown = grown_ngrams(model, 11, np.array([0, 0, -3], np.float32))
    np.testing.assert_allclose(grown.logits(rows)[:, :2], model.logits(rows), atol=1e-6)
    np.testing.assert_array_equal(grown.logits(rows)[:, 2], -3)
    assert np.all(np.diff(grown.keys) > 0)
