"""Simple models to beat.

They read the same token ids as the network: the same words are known, and the same texts are cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

from gru_serving.preprocessing.texts import PADDING
from gru_training.sentiment.decision import f1_threshold
from gru_training.sentiment.targets import Target
from gru_training.words.ngrams import FittedNgrams, NgramModel
from gru_training.words.vocabulary import TokenRows, members_of

_INVERSE_PENALTIES = (0.03, 0.3, 3.0)
_RIDGE_PENALTIES = (0.1, 1.0, 10.0)
_ORDER_NAMES = {2: "bigrams", 3: "trigrams"}
"""Names of the longest n-grams by their order."""


@dataclass(frozen=True)
class BaselineResult:
    """The measures and predictions of a simple model."""

    name: str
    validation: Mapping[str, float]
    """Measures on the validation rows, by name."""
    test: Mapping[str, float]
    """Measures on the test rows, by name."""
    test_predictions: np.ndarray
    """Class numbers (N,), labels (N, C) bool, or numbers (N,)."""


def fit_baselines(
    target: Target, parts: Mapping[str, TokenRows], ngrams: FittedNgrams | None
) -> list[BaselineResult]:
    """Fit the simple models that stand beside a network.

    Args:
        target: Target of the data.
        parts: Rows by part: train, validation, test.
        ngrams: Regression on n-grams, if there is one; the last model then.
    """
    rows = parts["train"], parts["validation"], parts["test"]
    if target.kind == "labels":
        floors = [labels_bag_of_words(target, *rows)]
    elif target.kind == "number":
        floors = [mean_number(target, *rows), numbers_bag_of_words(target, *rows)]
    else:
        floors = [majority_class(target, *rows), bag_of_words(target, *rows)]
        if ngrams is not None:
            floors.append(naive_bayes(target, ngrams.trained, *rows))
    if ngrams is not None:
        floors.append(ngram_regression(target, ngrams, *rows[1:]))
    return floors


def majority_class(target: Target, train: TokenRows, *held_out: TokenRows) -> BaselineResult:
    """Make the model that always answers the most frequent class of the training rows."""
    answer = int(np.bincount(train.labels).argmax())
    always = [np.full(len(rows.labels), answer) for rows in held_out]
    return _measured("majority class", target, held_out, always)


def bag_of_words(target: Target, train: TokenRows, *held_out: TokenRows) -> BaselineResult:
    """Fit a logistic regression on the count of each word, independent of word order.

    The penalty is chosen on the validation rows, the first held-out ones, by the target's metric.
    """
    x, *held = _features(CountVectorizer(analyzer=_unigrams), train, *held_out)
    candidates = []
    for penalty in _INVERSE_PENALTIES:
        model = word_regression(target.outputs, penalty).fit(x, train.labels)
        scores = np.full((held[0].shape[0], target.outputs), -np.inf)
        with np.errstate(divide="ignore"):  # some classes have no rows
            scores[:, model.classes_] = np.log(model.predict_proba(held[0]))
        candidates.append((target.metric.score(held_out[0].labels, scores), model))
    _, model = max(candidates, key=lambda candidate: candidate[0])
    answers = [model.predict(rows) for rows in held]
    return _measured("bag of words, logistic regression", target, held_out, answers)


def word_regression(classes: int, penalty: float) -> LogisticRegression | OneVsRestClassifier:
    """Make the logistic regression of classes on words.

    Of more than two classes each has a regression of its own, against all others. With 150 classes
    it is as often right as one for all, in a fifth of the time.

    Args:
        classes: Number of classes.
        penalty: Inverse penalty.
    """
    if classes == 2:
        return LogisticRegression(C=penalty, solver="newton-cg", max_iter=5000)
    one = LogisticRegression(
        C=penalty, solver="liblinear", intercept_scaling=10.0, max_iter=5000, random_state=0
    )
    return OneVsRestClassifier(one)


def labels_bag_of_words(target: Target, train: TokenRows, *held_out: TokenRows) -> BaselineResult:
    """Fit a logistic regression on TF-IDF for each label, with thresholds as for the network."""
    x, *held = _features(_tfidf(), train, *held_out)
    candidates = []
    for penalty in (*_INVERSE_PENALTIES, 30.0):
        scores = [np.zeros((len(part.labels), target.outputs)) for part in held_out]
        for k in range(target.outputs):
            is_label = members_of(train.labels, k)
            if is_label.all() or not is_label.any():
                for part in scores:
                    part[:, k] = float(is_label.all())
                continue
            model = LogisticRegression(C=penalty, max_iter=5000).fit(x, is_label)
            for part, rows in zip(scores, held, strict=True):
                part[:, k] = model.predict_proba(rows)[:, 1]
        value = target.metric.score(held_out[0].labels, logit(np.clip(scores[0], 1e-9, 1 - 1e-9)))
        candidates.append((value, scores))
    _, scores = max(candidates, key=lambda candidate: candidate[0])
    return _thresholded("bag of words, logistic regressions", target, held_out, scores)


def mean_number(target: Target, train: TokenRows, *held_out: TokenRows) -> BaselineResult:
    """Make the model that always answers the median of training."""
    always = [np.full(len(rows.labels), float(np.median(train.labels))) for rows in held_out]
    return _measured("always the median", target, held_out, always)


def numbers_bag_of_words(target: Target, train: TokenRows, *held_out: TokenRows) -> BaselineResult:
    """Fit a ridge regression on TF-IDF; the penalty is chosen on the validation rows."""
    x, *held = _features(_tfidf(), train, *held_out)
    models = [Ridge(penalty).fit(x, train.labels) for penalty in _RIDGE_PENALTIES]
    model = min(models, key=lambda m: np.mean(np.abs(m.predict(held[0]) - held_out[0].labels)))
    answers = [model.predict(rows) for rows in held]
    return _measured("bag of words, ridge regression", target, held_out, answers)


def naive_bayes(
    target: Target, ngrams: NgramModel, train: TokenRows, *held_out: TokenRows
) -> BaselineResult:
    """Fit a multinomial naive Bayes on the n-grams in a text (Wang and Manning 2012, 2.1).

    Args:
        target: Target of the data.
        ngrams: Model that says which n-grams the training rows hold; its weights are not used.
        train: Rows to count in; every count begins at 1.
        *held_out: Validation and test rows.
    """
    model = MultinomialNB().fit(ngrams.indicators(train.ids), train.labels)
    answers = [model.predict(ngrams.indicators(rows.ids)) for rows in held_out]
    name = f"{_ORDER_NAMES[ngrams.order]}, multinomial naive Bayes"
    return _measured(name, target, held_out, answers)


def ngram_regression(
    target: Target, ngrams: FittedNgrams, validation: TokenRows, test: TokenRows
) -> BaselineResult:
    """Measure the regression on n-grams, for classes and labels with naive-Bayes or TF-IDF weights.

    Args:
        target: Target of the data.
        ngrams: Regression of `gru_training.words.ngrams`.
        validation: Rows that the penalty was chosen on.
        test: Test rows.
    """
    known, held_out = _ORDER_NAMES[ngrams.final.order], (validation, test)
    logits = ngrams.trained.logits(validation.ids), ngrams.final.logits(test.ids)
    if target.kind == "number":
        scale = target.in_units(np.array([0.0, 1.0]))  # of standard units, and back
        values = [(of[:, 0] - scale[0]) / (scale[1] - scale[0]) for of in logits]
        return _measured(f"{known}, ridge regression", target, held_out, values)
    name = f"{'NB-weighted' if ngrams.final.squares is None else 'TF-IDF of'} {known}, logistic "
    if target.kind == "labels":
        return _thresholded(f"{name}regressions", target, held_out, list(map(expit, logits)))
    answers = [of.argmax(axis=1) for of in logits]
    return _measured(f"{name}regression", target, held_out, answers)


def _unigrams(ids: np.ndarray) -> Iterator[int]:
    return (int(i) for i in ids if i != PADDING)


def _tfidf() -> Pipeline:
    return make_pipeline(CountVectorizer(analyzer=_unigrams), TfidfTransformer())


def _features(of: Pipeline | CountVectorizer, train: TokenRows, *held_out: TokenRows) -> list[Any]:
    """Learn features of the training rows, and compute those of all rows."""
    return [of.fit_transform(train.ids), *(of.transform(rows.ids) for rows in held_out)]


def _thresholded(
    name: str, target: Target, held_out: Sequence[TokenRows], scores: Sequence[np.ndarray]
) -> BaselineResult:
    """Measure probabilities (N, C), with the threshold of best validation F1 for each label."""
    members = target.members(held_out[0].labels)
    least = [f1_threshold(members[:, k], scores[0][:, k]) for k in range(target.outputs)]
    return _measured(name, target, held_out, [of >= np.array(least) for of in scores])


def _measured(
    name: str, target: Target, held_out: Sequence[TokenRows], answers: Sequence[np.ndarray]
) -> BaselineResult:
    """Compare answers with the validation and test rows, in this order."""
    known, tested = (
        target.measures(rows.labels, said) for rows, said in zip(held_out, answers, strict=True)
    )
    return BaselineResult(name, known, tested, answers[1])
