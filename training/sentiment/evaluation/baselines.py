"""Simple models to beat.

They read the same token ids as the network: the same words are known and the same texts cut.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from training.words.ngram_model import NgramModel
from training.words.token_rows import TokenRows
from training.words.vocabulary import PADDING

_INVERSE_PENALTIES = (0.03, 0.3, 3.0)


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
        model = LogisticRegression(C=penalty, solver="newton-cg", max_iter=5000)
        model.fit(x_train, train.labels)
        candidates.append((float(model.score(x_validation, validation.labels)), model))
    accuracy, model = max(candidates, key=lambda candidate: candidate[0])
    return _result(
        "bag of words, logistic regression", accuracy, model.predict(x_test), test.labels
    )


def naive_bayes(
    ngrams: NgramModel, train: TokenRows, validation: TokenRows, test: TokenRows
) -> BaselineResult:
    """Multinomial naive Bayes on which uni- and bigrams a text holds (Wang and Manning 2012, 2.1).

    Args:
        ngrams: Says which n-grams the training rows hold; its weights are not used.
        train: Rows to count in; every count begins at 1.
        validation: Held-out rows.
        test: Held-out rows.
    """
    model = MultinomialNB().fit(ngrams.indicators(train.ids), train.labels)
    predicted = [model.predict(ngrams.indicators(rows.ids)) for rows in (validation, test)]
    return _result(
        "bigrams, multinomial naive Bayes",
        float(np.mean(predicted[0] == validation.labels)),
        predicted[1],
        test.labels,
    )


def nb_weighted_ngrams(model: NgramModel, validation: TokenRows, test: TokenRows) -> BaselineResult:
    """Logistic regression on uni- and bigrams weighted by naive-Bayes log-count ratios.

    Args:
        model: Of `training.words.ngram_model.fit_ngrams`.
        validation: Rows that the penalty was chosen on.
        test: Held-out rows.
    """
    predicted = [model.logits(rows.ids).argmax(axis=1) for rows in (validation, test)]
    return _result(
        "NB-weighted bigrams, logistic regression",
        float(np.mean(predicted[0] == validation.labels)),
        predicted[1],
        test.labels,
    )


def _unigrams(ids: np.ndarray) -> Iterator[int]:
    return (int(i) for i in ids if i != PADDING)


def _result(
    name: str, validation_accuracy: float, predictions: np.ndarray, labels: np.ndarray
) -> BaselineResult:
    return BaselineResult(
        name, validation_accuracy, float(np.mean(predictions == labels)), predictions
    )
