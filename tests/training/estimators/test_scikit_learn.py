"""Text estimators in scikit-learn's tools: its own checks, its scorers and its meta-estimators."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from sklearn import metrics
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from gru_training import Forecaster, TextClassifier, TextRegressor
from gru_training.errors import ConfigError, DataError
from gru_training.estimators.text import SETTINGS
from gru_training.sentiment.class_weights import class_weights
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.targets import make_target, training_rows
from gru_training.words.vocabulary import TokenRows

pytest.importorskip("sklearn", minversion="1.6")  # before, there were other checks

from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

TINY = {"epochs": 1, "units": 2, "embedding_size": 2, "bidirectional": False, "ngrams": False}
WORDS = ("invoice charged refund card", "password reset account locked")


def texts_and_labels(rows=60, seed=0):
    """Texts, and whether each is of the second kind."""
    draw = np.random.default_rng(seed)
    kinds = np.arange(rows) % 2
    texts = [f"{' '.join(draw.choice(WORDS[kind].split(), 3))} {n}" for n, kind in enumerate(kinds)]
    return texts, kinds


@pytest.fixture(scope="module", autouse=True)
def _without_pictures():
    """Reports whose pictures are empty files: drawing them takes as long as the training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda _, path, **__: Path(path).touch())
        yield


@pytest.fixture(scope="module")
def fitted():
    """A classifier of small integers, given as columns."""
    texts, kinds = texts_and_labels()
    labels = np.array([7, -3], np.int8)[kinds]
    with pytest.warns(DataConversionWarning, match=r"shape \(60, 1\)"):
        return TextClassifier(**TINY).fit(
            np.array(texts, object)[:, np.newaxis], labels[:, np.newaxis]
        )


@pytest.fixture(scope="module")
def regressor():
    texts, kinds = texts_and_labels()
    return TextRegressor(**TINY).fit(texts, kinds + np.linspace(0, 0.5, len(kinds)))


class Dataset:
    """What of Hugging Face's `datasets.Dataset` is read: an Arrow table, and a choice of rows."""

    def __init__(self, table, rows, kind=None):
        self.table, self.rows, self.kind = table, rows, kind
        self.features = dict.fromkeys(table.column_names)

    def with_format(self, kind):
        return Dataset(self.table, self.rows, kind)

    def __getitem__(self, rows):
        assert self.kind == "arrow"
        return self.table.take(self.rows[rows])


@pytest.mark.slow
def test_every_kind_of_input_gives_the_same_array(fitted):
    texts, _ = texts_and_labels(12, seed=3)
    expected = fitted.predict(texts)
    assert expected.shape == (12,)
    assert expected.dtype == fitted.classes_.dtype == np.int8
    assert fitted.classes_.tolist() == [-3, 7]
    table = pa.table({"text": texts[::-1], "n": range(12)})
    for data in (
        np.array(texts),
        np.array(texts, object)[:, np.newaxis],
        pd.Series(texts, index=range(5, 17)),
        pd.Index(texts),
        pd.DataFrame({"body": texts}),
        pd.DataFrame(texts),
        pd.DataFrame({"n": range(12), "text": texts}),
        pl.Series(texts),
        pl.DataFrame({"subject": texts}),
        pa.array(texts),
        pa.chunked_array([texts[:5], texts[5:]]),
        pa.table({"text": texts}),
        Dataset(table, list(range(12))[::-1]),
    ):
        np.testing.assert_array_equal(fitted.predict(data), expected)
    frame = fitted.predict_frame(texts)
    np.testing.assert_array_equal(frame["label"], expected)
    np.testing.assert_array_equal(frame[["-3", "7"]], fitted.predict_proba(texts))
    with pytest.raises(DataError, match=r"got ndarray of shape \(6, 2\)"):
        fitted.predict(np.array(texts).reshape(6, 2))


@pytest.mark.slow
def test_scorers_by_name(fitted, regressor):
    texts, kinds = texts_and_labels(30, seed=5)
    labels = np.array([7, -3])[np.random.default_rng(0).permutation(kinds)]
    said, scores = fitted.predict(texts), fitted.predict_proba(texts)
    for name, expected in {
        "accuracy": metrics.accuracy_score(labels, said),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, said),
        "f1_macro": metrics.f1_score(labels, said, average="macro"),
        "matthews_corrcoef": metrics.matthews_corrcoef(labels, said),
        "neg_log_loss": -metrics.log_loss(labels, scores),
        "roc_auc": metrics.roc_auc_score(labels == 7, scores[:, 1]),
        "roc_auc_ovr": metrics.roc_auc_score(labels == 7, scores[:, 1]),
    }.items():
        assert metrics.get_scorer(name)(fitted, texts, labels) == pytest.approx(expected), name
    weights = np.arange(30.0)
    assert fitted.score(texts, labels, weights) == pytest.approx(
        metrics.accuracy_score(labels, said, sample_weight=weights)
    )
    numbers, estimates = labels / 10, regressor.predict(texts)
    assert estimates.shape == (30,)
    r2 = metrics.r2_score(numbers, estimates, sample_weight=weights)
    assert regressor.score(texts, numbers, weights) == pytest.approx(r2)
    scorer = metrics.get_scorer("neg_mean_absolute_error")
    assert scorer(regressor, pd.Series(texts), numbers) == pytest.approx(
        -np.abs(numbers - estimates).mean()
    )
    with pytest.raises(DataError, match="y: expected a label for each of 30 texts, got 2"):
        fitted.score(texts, [7, 7])


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["bool", "<U9", "object", "float32"])
def test_labels_keep_their_type(dtype):
    texts, kinds = texts_and_labels(30)
    values = {"<U9": ["no", "certainly"], "object": ["no", "yes"]}.get(dtype, [0, 1])
    labels = np.array(values, dtype)[kinds]
    classifier = TextClassifier(**TINY).fit(texts, labels)
    assert classifier.classes_.dtype == np.unique(labels).dtype
    np.testing.assert_array_equal(classifier.classes_, np.unique(labels))
    assert set(classifier.predict(texts)) <= set(labels)


def test_numbers_that_are_no_classes_are_named():
    texts, kinds = texts_and_labels(40)
    with pytest.raises(DataError, match=r"got continuous numbers such as 0\.5; TextRegressor"):
        TextClassifier(**TINY).fit(texts, kinds + np.linspace(0.5, 0.9, 40))


@pytest.mark.long
def test_meta_estimators(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, kinds = texts_and_labels()
    labels = np.array(["a", "b"])[kinds]
    classifier = TextClassifier(**TINY)
    assert np.isfinite(cross_val_score(classifier, texts, labels, cv=2, scoring="f1_macro")).all()
    scores = cross_val_predict(classifier, texts, labels, cv=2, method="predict_proba")
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    assert cross_val_predict(classifier, pd.Series(texts), labels, cv=2).shape == (60,)
    search = GridSearchCV(classifier, {"units": [2, 3]}, cv=2, n_jobs=2, scoring="roc_auc")
    search.fit(texts, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(texts).dtype == labels.dtype
    lower = FunctionTransformer(lambda frame: frame.apply(lambda column: column.str.lower()))
    chain = make_pipeline(lower, classifier).set_output(transform="pandas")
    frame = pd.DataFrame({"body": texts})
    chain.fit(frame, labels)
    assert set(chain.predict(frame)) <= {"a", "b"}
    vote = VotingClassifier(
        [("one", classifier), ("two", TextClassifier(**TINY, seed=1))], voting="soft"
    )
    assert set(vote.fit(texts, labels).predict(texts)) <= {"a", "b"}
    calibrated = CalibratedClassifierCV(classifier, cv=2, ensemble=False)
    calibrated.fit(texts, labels)
    assert calibrated.predict_proba(texts).shape == (60, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_rows_of_no_weight_might_as_well_not_be_there():
    texts, kinds = texts_and_labels(50)
    weights = np.where(np.arange(50) < 40, 2.5, 0.0)
    one = TextClassifier(**TINY).fit(texts, kinds, sample_weight=weights)
    two = TextClassifier(**TINY).fit(texts[:40], kinds[:40])
    np.testing.assert_array_equal(one.predict_proba(texts), two.predict_proba(texts))


@pytest.mark.long
def test_weights_decide_between_rows_that_contradict_each_other():
    texts, kinds = texts_and_labels(240)
    labels = np.where(np.arange(240) % 4 < 2, kinds, 1 - kinds)  # half of them wrong
    right = labels == kinds
    settings = {**TINY, "units": 8, "embedding_size": 8, "epochs": 30, "patience": 30}
    for heavy, expected in ((right, kinds), (~right, 1 - kinds)):
        weights = np.where(heavy, 1.0, 0.01)
        found = TextClassifier(**settings, learning_rate=0.02, metric="log_loss", dropout=0.0)
        found.fit(texts, labels, sample_weight=weights, validation=(texts, expected))
        assert np.mean(found.predict(texts) == expected) > 0.9


@pytest.mark.parametrize("kind", ["class", "labels", "number"])
def test_a_weight_multiplies_the_loss_of_its_row(kind):
    from gru_training.sentiment.data import LabelledTexts, SentimentData

    draw = np.random.default_rng(1)
    labels = {
        "class": draw.integers(0, 3, 6).astype(np.int32),
        "labels": draw.integers(0, 2, (6, 3)).astype(np.float32),
        "number": draw.normal(size=6).astype(np.float32),
    }[kind]
    names = ("stars",) if kind == "number" else ("a", "b", "c")
    part = LabelledTexts(("text",) * 6, labels)
    inner = make_target(SentimentData("t", names, part, part, part, kind=kind), SentimentConfig())
    weights = np.array([1, 0.5, 4, 2, 8, 0.25])
    rows = TokenRows([np.ones(2, np.int32)] * 6, labels, weights)
    target, train, validation, _ = training_rows(inner, rows, rows, None, SentimentConfig().soft)
    learned = train.labels
    logits = draw.normal(size=(6, len(names))).astype(np.float32)
    plain = inner.loss(labels, logits).numpy()
    np.testing.assert_allclose(
        target.loss(learned, logits).numpy(), plain * weights / weights.mean(), rtol=1e-5
    )
    np.testing.assert_allclose(target.loss(validation.labels, logits).numpy(), plain, rtol=1e-5)
    np.testing.assert_array_equal(target.in_units(learned), inner.in_units(labels))
    for name, measure in target.row_metrics().items():
        np.testing.assert_array_equal(
            measure(learned, logits), inner.row_metrics()[name](labels, logits)
        )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 39, "expected a weight for each of 40 rows, got 39"),
        ([1.0] * 39 + [-1.0], "sample_weight, row 39: expected a finite number from 0, got -1.0"),
        ([None] + [1.0] * 39, "sample_weight, row 0: expected a finite number from 0, got nan"),
        (["much"] * 40, "sample_weight: expected numbers"),
        (np.zeros(40), "expected a weight above zero, got zero for all rows"),
        (
            np.ones((40, 2)),
            r"expected a table, or a list or column, got ndarray of shape \(40, 2\)",
        ),
    ],
)
def test_weights_that_cannot_be_used_are_named(weights, message):
    texts, kinds = texts_and_labels(40)
    with pytest.raises(DataError, match=message):
        TextClassifier(**TINY).fit(texts, kinds, sample_weight=weights)


def test_weights_are_for_rows_in_memory(tmp_path):
    with pytest.raises(
        ConfigError, match="y, sample_weight, and rows for validation and test, are"
    ):
        TextClassifier(**TINY).fit(tmp_path / "rows.csv", sample_weight=[1.0])


def test_class_weights_by_label():
    settings = {**SETTINGS.with_defaults({}, "it"), "class_weight": {1: 2.5, -3: 4}}
    written = SETTINGS.config(settings).training.class_weight
    assert json.loads(written) == {"1": 2.5, "-3": 4}
    members = np.eye(3, dtype=bool)
    found = class_weights(written, ("-3", "0", "1"), members)
    np.testing.assert_array_equal(found, [4, 1, 2.5])
    with pytest.raises(ConfigError, match="expected the classes 'a', 'b'; got 'c'"):
        class_weights('{"c": 2}', ("a", "b"), members)


class NumbersAsTexts:
    """Lets scikit-learn's checks, which know matrices of numbers, ask an estimator of texts.

    A row of numbers becomes a text: for each column a coarse word and a fine one.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        assert (tags.input_tags.one_d_array, tags.input_tags.string) == (True, True)
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False
        tags.input_tags.string = tags.input_tags.allow_nan = False
        tags.target_tags.required = True
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # after one epoch of two units
        return tags

    def _source(self, data, y, *further, **named):
        data, _ = validate_data(self, data, y, dtype=float, multi_output=True)
        return super()._source(as_texts(data), y, *further, **named)

    def _texts(self, data, text):
        self._run()
        return super()._texts(as_texts(validate_data(self, data, reset=False, dtype=float)), text)

    def score(self, data, y, sample_weight=None):
        data = as_texts(validate_data(self, data, reset=False, dtype=float))
        return super().score(data, y, sample_weight)


def as_texts(numbers):
    return [
        " ".join(
            f"c{k}w{np.floor(2 * number):.0f} c{k}n{number:.3f}" for k, number in enumerate(row)
        )
        for row in numbers
    ]


class NumbersClassifier(NumbersAsTexts, TextClassifier):
    pass


class NumbersRegressor(NumbersAsTexts, TextRegressor):
    pass


SAME = "rows with one text stay in one part of a split, and the check repeats a few rows"
REFUSED = "a preset that does not exist is refused at once"
EXPECTED_FAILURES = {
    "check_do_not_raise_errors_in_init_or_set_params": REFUSED,
    "check_set_params": REFUSED,
    "check_sample_weights_shape": SAME,
    "check_sample_weights_not_overwritten": SAME,
    "check_sample_weight_equivalence_on_dense_data": "a row twice is another epoch than a row of "
    "weight two: batches are shuffled, and the split keeps equal texts together",
}

OF_THE_INTERFACE = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
)


@pytest.mark.slow
def test_every_fit_with_a_name_has_a_run_of_its_own(tmp_path):
    first = TextClassifier(**TINY, runs_dir=tmp_path, name="kinds").fit(*texts_and_labels())
    again = clone(first).fit(*texts_and_labels(seed=1))
    again.fit(*texts_and_labels())
    assert [each.run_.path.name for each in (first, again)] == ["kinds", "kinds-3"]
    assert {each.name for each in tmp_path.iterdir()} == {"kinds", "kinds-2", "kinds-3"}


@pytest.mark.parametrize("name", OF_THE_INTERFACE)
@pytest.mark.parametrize("estimator", [TextClassifier, TextRegressor, Forecaster])
def test_scikit_learns_checks_of_the_interface(estimator, name):
    getattr(estimator_checks, name)(estimator.__name__, estimator())


@pytest.mark.long
@parametrize_with_checks(
    [NumbersClassifier(**TINY), NumbersRegressor(**TINY)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
