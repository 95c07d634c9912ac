"""Simple models to beat.

They read the same token ids as the network: the same words are known and the same texts cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from training.vocabulary import PADDING

_INVERSE_PENALTIES = (0.03, 0.3, 3.0)


@dataclass(frozen=True)
class TokenRows:
    """Rows as the baselines read them."""

    ids: Sequence[np.ndarray]
    labels: np.ndarray


@dataclass(frozen=True)
class BaselineResult:
    """How well a simple model does."""

    name: str
    validation_accuracy: float
    test_accuracy: float
    test_predictions: np.ndarray
    """(N,) class numbers."""


def majority_class(train: TokenRows, validation: TokenRows, test: TokenRows) -> BaselineResult:
    """Always answers the class most frequent in training."""
    answer = int(np.bincount(train.labels).argmax())
    return BaselineResult(
        "majority class",
        float(np.mean(validation.labels == answer)),
        float(np.mean(test.labels == answer)),
        np.full(len(test.labels), answer),
    )


def bag_of_words(train: TokenRows, validation: TokenRows, test: TokenRows) -> BaselineResult:
    """Logistic regression on how often each word occurs, blind to word order.

    The penalty is chosen on the validation rows.
    """
    vectorizer = CountVectorizer(analyzer=_unigrams)
    x_train = vectorizer.fit_transform(train.ids)
    x_validation, x_test = vectorizer.transform(validation.ids), vectorizer.transform(test.ids)
    candidates = []
    for penalty in _INVERSE_PENALTIES:
        model = LogisticRegression(C=penalty, max_iter=5000).fit(x_train, train.labels)
        candidates.append((float(model.score(x_validation, validation.labels)), model))
    accuracy, model = max(candidates, key=lambda candidate: candidate[0])
    return _result(
        "bag of words, logistic regression", accuracy, model.predict(x_test), test.labels
    )


def nb_weighted_ngrams(
    train: TokenRows, validation: TokenRows, test: TokenRows, classes: int
) -> BaselineResult:
    """Logistic regression on uni- and bigrams weighted by naive-Bayes log-count ratios.

    After Wang and Manning (2012), "Baselines and Bigrams", with logistic regression in place of
    the support vector machine; one model per class against the rest where there are more than
    two. The penalty is chosen on the validation rows.
    """
    vectorizer = CountVectorizer(analyzer=_unigrams_and_bigrams, binary=True)
    x_train = vectorizer.fit_transform(train.ids).astype(np.float64)
    x_validation, x_test = vectorizer.transform(validation.ids), vectorizer.transform(test.ids)
    positives = range(1, 2) if classes == 2 else range(classes)
    candidates = []
    for penalty in _INVERSE_PENALTIES:
        scores = [
            _one_against_rest(x_train, train.labels == k, penalty, (x_validation, x_test))
            for k in positives
        ]
        predicted = []
        for part in range(2):
            columns = np.stack([score[part] for score in scores], axis=1)  # (N, C or 1)
            predicted.append(
                (columns[:, 0] > 0).astype(int) if classes == 2 else columns.argmax(axis=1)
            )
        candidates.append((float(np.mean(predicted[0] == validation.labels)), predicted[1]))
    accuracy, test_predictions = max(candidates, key=lambda candidate: candidate[0])
    return _result(
        "NB-weighted bigrams, logistic regression", accuracy, test_predictions, test.labels
    )


def _one_against_rest(
    x: sp.csr_matrix, is_class: np.ndarray, penalty: float, parts: Sequence[sp.csr_matrix]
) -> list[np.ndarray]:
    """Decision values for each part; the ratio is that of Wang and Manning, section 2.1."""
    p = 1 + np.asarray(x[is_class].sum(axis=0)).ravel()
    q = 1 + np.asarray(x[~is_class].sum(axis=0)).ravel()
    ratio = sp.diags(np.log((p / p.sum()) / (q / q.sum())))
    model = LogisticRegression(C=penalty, max_iter=5000).fit(x @ ratio, is_class)
    return [model.decision_function(part @ ratio) for part in parts]


def _unigrams(ids: np.ndarray) -> Iterator[int]:
    return (int(i) for i in ids if i != PADDING)


def _unigrams_and_bigrams(ids: np.ndarray) -> list[tuple[int, ...]]:
    words = list(_unigrams(ids))
    return [*((word,) for word in words), *pairwise(words)]


def _result(
    name: str, validation_accuracy: float, predictions: np.ndarray, labels: np.ndarray
) -> BaselineResult:
    return BaselineResult(
        name, validation_accuracy, float(np.mean(predictions == labels)), predictions
    )
