"""Simple models for the same rows, each with its best settings on the validation rows."""

import tempfile
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from gru_training.sentiment.data import LabelledTexts, SentimentData
from gru_training.sentiment.decision import f1_threshold
from gru_training.sentiment.measures import f1, micro_f1

_PENALTIES = (0.3, 3.0, 30.0, 300.0)
_FASTTEXT = tuple(product((10, 30), (1, 2)))  # epochs, length of n-grams
Scores = tuple[np.ndarray, np.ndarray]
"""Of the validation and of the test rows, (N, C)."""


def members(part: LabelledTexts, classes: int) -> np.ndarray:
    """Mark the classes or labels of each row, (N, C) bool."""
    if part.labels.ndim == 2:
        return np.asarray(part.labels > 0.5)
    return np.asarray(part.labels[:, np.newaxis] == np.arange(classes))


def measured(data: SentimentData, scores: Scores) -> dict[str, float]:
    """Macro and micro F1 on validation and test rows; thresholds of labels by validation."""
    count = len(data.classes)
    known, tested = (members(part, count) for part in (data.validation, data.test))
    if data.kind == "labels":
        least = [f1_threshold(known[:, k], scores[0][:, k]) for k in range(count)]
        answered = [of >= np.array(least) for of in scores]
    else:
        answered = [of.argmax(axis=1)[:, np.newaxis] == np.arange(count) for of in scores]
    return {
        "validation": float(f1(known, answered[0]).mean()),
        "macro_f1": float(f1(tested, answered[1]).mean()),
        "micro_f1": micro_f1(tested, answered[1]),
    }


def best(data: SentimentData, tries: Sequence[Callable[[], Scores]]) -> dict[str, float]:
    """The measures of the try with the best macro F1 on the validation rows."""
    return max((measured(data, each()) for each in tries), key=lambda found: found["validation"])


def tfidf(data: SentimentData) -> dict[str, float]:
    """TF-IDF of uni- and bigrams with a logistic regression, balanced or not."""
    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|[^\w\s]"
    )
    x = vectorizer.fit_transform(data.train.texts)
    held = [vectorizer.transform(part.texts) for part in (data.validation, data.test)]
    count = len(data.classes)

    def scores(penalty: float, weight: str | None) -> Scores:
        def model() -> LogisticRegression:
            return LogisticRegression(C=penalty, class_weight=weight, max_iter=2000)

        if data.kind == "labels":
            fits = [model().fit(x, data.train.labels[:, k]) for k in range(count)]
            columns = [[fit.predict_proba(rows)[:, 1] for fit in fits] for rows in held]
            return np.stack(columns[0], 1), np.stack(columns[1], 1)
        fit = model().fit(x, data.train.labels)
        return fit.predict_proba(held[0]), fit.predict_proba(held[1])

    return best(
        data,
        [
            lambda penalty=penalty, weight=weight: scores(penalty, weight)
            for penalty, weight in product(_PENALTIES, (None, "balanced"))
        ],
    )


def fasttext_averages(data: SentimentData, seed: int) -> dict[str, float] | None:
    """The fastText package: averaged vectors of words, pieces and n-grams; None without it."""
    try:
        import fasttext
    except ImportError:
        return None
    count = len(data.classes)
    several = data.kind == "labels"

    def line(text: str) -> str:
        return " ".join(text.lower().replace("__label__", " ").split())

    def scores(epochs: int, ngrams: int) -> Scores:
        held = members(data.train, count)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            path.write_text(
                "".join(
                    " ".join(f"__label__{k}" for k in np.flatnonzero(row)) + f" {line(text)}\n"
                    for text, row in zip(data.train.texts, held, strict=True)
                ),
                "utf-8",
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fasttext.train_supervised(
                    str(path), epoch=epochs, wordNgrams=ngrams, lr=0.5, dim=100, minn=3, maxn=5,
                    loss="ova" if several else "softmax", thread=1, seed=seed, verbose=0,
                )  # fmt: skip
        found = []
        for part in (data.validation, data.test):
            table = np.zeros((len(part), count))
            for number, text in enumerate(part.texts):
                for share, name in model.f.predict(line(text) + "\n", count, 0.0, "strict"):
                    table[number, int(name.removeprefix("__label__"))] = share
            found.append(table)
        return found[0], found[1]

    return best(data, [lambda epochs=e, ngrams=n: scores(epochs, ngrams) for e, n in _FASTTEXT])
