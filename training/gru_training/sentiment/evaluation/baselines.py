"""Simple models to beat.

They read the same token ids as the network: the same words are known, and the same texts are cut.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from gru_serving.preprocessing.texts import PADDING
from gru_training.sentiment.decision import f1_threshold
from gru_training.sentiment.measures import class_measures, labels_agreement, number_measures
from gru_training.sentiment.targets import Target
from gru_training.words.ngrams import FittedNgrams, NgramModel
from gru_training.words.vocabulary import TokenRows, members_of

_INVERSE_PENALTIES = (0.03, 0.3, 3.0)
_RIDGE_PENALTIES = (1.0, 10.0, 100.0)
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

    @property
    def validation_accuracy(self) -> float:
        """The accuracy on the validation rows, for a model that answers classes."""
        return self.validation["accuracy"]

    @property
    def test_accuracy(self) -> float:
        """The accuracy on the test rows, for a model that answers classes."""
        return self.test["accuracy"]


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
        floors = [labels_bag_of_words(*rows, target)]
    elif target.kind == "number":
        floors = [mean_number(*rows), numbers_bag_of_words(*rows)]
    else:
        floors = [majority_class(*rows), bag_of_words(*rows, target)]
        if ngrams is not None:
            floors.append(naive_bayes(ngrams.trained, *rows))
    if ngrams is not None:
        floors.append(ngram_regression(ngrams, target, *rows[1:]))
    return floors


def majority_class(train: TokenRows, validation: TokenRows, test: TokenRows) -> BaselineResult:
    """Make the model that always answers the most frequent class of the training rows."""
    answer = int(np.bincount(train.labels).argmax())
    always = (np.full(len(rows.labels), answer) for rows in (validation, test))
    return _of_classes("majority class", validation, test, *always)


def bag_of_words(
    train: TokenRows, validation: TokenRows, test: TokenRows, target: Target | None = None
) -> BaselineResult:
    """Fit a logistic regression on the count of each word, independent of word order.

    The penalty is chosen on the validation rows, by the target's metric or by accuracy.
    """
    vectorizer = CountVectorizer(analyzer=_unigrams)
    x_train = vectorizer.fit_transform(train.ids)
    x_validation, x_test = vectorizer.transform(validation.ids), vectorizer.transform(test.ids)
    candidates = []
    for penalty in _INVERSE_PENALTIES:
        model = LogisticRegression(C=penalty, solver="newton-cg", max_iter=5000)
        model.fit(x_train, train.labels)
        if target is None or target.metric.name == "accuracy":
            value = float(model.score(x_validation, validation.labels))
        else:
            value = target.metric.score(validation.labels, _log_scores(model, x_validation))
        candidates.append((value, model))
    _, model = max(candidates, key=lambda candidate: candidate[0])
    return _of_classes(
        "bag of words, logistic regression",
        validation,
        test,
        model.predict(x_validation),
        model.predict(x_test),
    )


def labels_bag_of_words(
    train: TokenRows, validation: TokenRows, test: TokenRows, target: Target
) -> BaselineResult:
    """Fit a logistic regression on TF-IDF for each label, with thresholds as for the network."""
    features = make_pipeline(CountVectorizer(analyzer=_unigrams), TfidfTransformer())
    x = [features.fit_transform(train.ids)]
    x += [features.transform(rows.ids) for rows in (validation, test)]
    best: tuple[float, list[np.ndarray]] | None = None
    for penalty in (*_INVERSE_PENALTIES, 30.0):
        scores = [np.zeros((len(part.labels), target.outputs)) for part in (validation, test)]
        for k in range(target.outputs):
            is_label = members_of(train.labels, k)
            if is_label.all() or not is_label.any():
                for part in scores:
                    part[:, k] = float(is_label.all())
                continue
            model = LogisticRegression(C=penalty, max_iter=5000).fit(x[0], is_label)
            for part, rows in zip(scores, x[1:], strict=True):
                part[:, k] = model.predict_proba(rows)[:, 1]
        logits = np.log(np.clip(scores[0], 1e-9, 1)) - np.log(np.clip(1 - scores[0], 1e-9, 1))
        value = target.metric.score(validation.labels, logits)
        if best is None or value > best[0]:
            best = value, scores
    assert best is not None
    return _of_labels("bag of words, logistic regressions", validation, test, target, *best[1])


def mean_number(train: TokenRows, validation: TokenRows, test: TokenRows) -> BaselineResult:
    """Make the model that always answers the median of training."""
    answer = float(np.median(train.labels))
    always = [np.full(len(rows.labels), answer) for rows in (validation, test)]
    return _of_numbers("always the median", validation, test, *always)


def numbers_bag_of_words(
    train: TokenRows, validation: TokenRows, test: TokenRows
) -> BaselineResult:
    """Fit a ridge regression on TF-IDF; the penalty is chosen on the validation rows."""
    features = make_pipeline(CountVectorizer(analyzer=_unigrams), TfidfTransformer())
    x = [features.fit_transform(train.ids)]
    x += [features.transform(rows.ids) for rows in (validation, test)]
    models = [Ridge(penalty / 10).fit(x[0], train.labels) for penalty in _RIDGE_PENALTIES]
    model = min(models, key=lambda m: np.mean(np.abs(m.predict(x[1]) - validation.labels)))
    return _of_numbers(
        "bag of words, ridge regression", validation, test, model.predict(x[1]), model.predict(x[2])
    )


def naive_bayes(
    ngrams: NgramModel, train: TokenRows, validation: TokenRows, test: TokenRows
) -> BaselineResult:
    """Fit a multinomial naive Bayes on the n-grams in a text (Wang and Manning 2012, 2.1).

    Args:
        ngrams: Model that says which n-grams the training rows hold; its weights are not used.
        train: Rows to count in; every count begins at 1.
        validation: Validation rows.
        test: Test rows.
    """
    model = MultinomialNB().fit(ngrams.indicators(train.ids), train.labels)
    predicted = (model.predict(ngrams.indicators(rows.ids)) for rows in (validation, test))
    return _of_classes(
        f"{_ORDER_NAMES[ngrams.order]}, multinomial naive Bayes", validation, test, *predicted
    )


def ngram_regression(
    ngrams: FittedNgrams, target: Target, validation: TokenRows, test: TokenRows
) -> BaselineResult:
    """Fit the regression on n-grams, for classes and labels with naive-Bayes or TF-IDF weights.

    Args:
        ngrams: Regression of `gru_training.words.ngrams`.
        target: Target of the data.
        validation: Rows that the penalty was chosen on.
        test: Test rows.
    """
    known = _ORDER_NAMES[ngrams.final.order]
    logits = ngrams.trained.logits(validation.ids), ngrams.final.logits(test.ids)
    if target.kind == "number":
        scale = target.in_units(np.array([0.0, 1.0]))  # of standard units, and back
        values = [(of[:, 0] - scale[0]) / (scale[1] - scale[0]) for of in logits]
        return _of_numbers(f"{known}, ridge regression", validation, test, *values)
    weighted = "NB-weighted" if ngrams.final.squares is None else "TF-IDF of"
    if target.kind == "labels":
        name = f"{weighted} {known}, logistic regressions"
        return _of_labels(name, validation, test, target, *map(expit, logits))
    name = f"{weighted} {known}, logistic regression"
    return _of_classes(name, validation, test, *(of.argmax(axis=1) for of in logits))


def _unigrams(ids: np.ndarray) -> Iterator[int]:
    return (int(i) for i in ids if i != PADDING)


def _log_scores(model: LogisticRegression, rows: object) -> np.ndarray:
    """Compute logits (N, C), also for a regression that knows fewer classes than there are."""
    scores = np.full((rows.shape[0], int(model.classes_.max()) + 1), -np.inf)  # type: ignore[attr-defined]
    scores[:, model.classes_] = model.predict_log_proba(rows)
    return scores


def _of_classes(
    name: str, validation: TokenRows, test: TokenRows, *predicted: np.ndarray
) -> BaselineResult:
    classes = int(max(validation.labels.max(), test.labels.max(), *(p.max() for p in predicted)))
    known, tested = (
        class_measures(rows.labels, answers, classes + 1)
        for rows, answers in zip((validation, test), predicted, strict=True)
    )
    return BaselineResult(name, known, tested, predicted[1])


def _of_labels(
    name: str,
    validation: TokenRows,
    test: TokenRows,
    target: Target,
    validation_scores: np.ndarray,
    test_scores: np.ndarray,
) -> BaselineResult:
    """Measure probabilities (N, C), with the threshold of best validation F1 for each label."""
    members = target.members(validation.labels)
    least = np.array(
        [f1_threshold(members[:, k], validation_scores[:, k]) for k in range(target.outputs)]
    )
    known, tested = (scores >= least for scores in (validation_scores, test_scores))
    return BaselineResult(
        name,
        labels_agreement(members, known),
        labels_agreement(target.members(test.labels), tested),
        tested,
    )


def _of_numbers(
    name: str, validation: TokenRows, test: TokenRows, *predicted: np.ndarray
) -> BaselineResult:
    known, tested = (
        number_measures(rows.labels, answers)
        for rows, answers in zip((validation, test), predicted, strict=True)
    )
    return BaselineResult(name, known, tested, predicted[1])
