"""Measures by which epochs are chosen, weights of classes, and averages, against scikit-learn."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    precision_recall_fscore_support,
)
from sklearn.utils.class_weight import compute_class_weight

from gru_training.errors import ConfigError
from gru_training.sentiment.class_weights import class_weights, label_weights
from gru_training.sentiment.evaluation.markdown import class_table
from gru_training.sentiment.measures import (
    METRICS,
    averages,
    chosen_metric,
    labels_agreement,
    per_class,
)

NAMES = ("a", "b", "c", "d")
RNG = np.random.default_rng(1)
LABELS = RNG.choice(3, 90, p=[0.7, 0.25, 0.05])  # no row of class d
LOGITS = RNG.normal(size=(90, 4)) + 2 * np.eye(4)[LABELS]
PREDICTED = LOGITS.argmax(axis=1)
MEMBERS = RNG.random((90, 4)) < [0.5, 0.2, 0.1, 0.3]
LABEL_LOGITS = RNG.normal(size=(90, 4)) + 2 * MEMBERS - 1


def value(name, kind="class"):
    if kind == "labels":
        return chosen_metric(name, kind, NAMES).of(MEMBERS.astype(np.float32), LABEL_LOGITS)
    return chosen_metric(name, kind, NAMES).of(LABELS, LOGITS)


def test_measures_of_classes_are_those_of_scikit_learn():
    assert value("accuracy") == np.mean(PREDICTED == LABELS)
    assert value("macro_f1") == pytest.approx(f1_score(LABELS, PREDICTED, average="macro"))
    assert value("weighted_f1") == pytest.approx(f1_score(LABELS, PREDICTED, average="weighted"))
    assert value("f1:b") == pytest.approx(f1_score(LABELS == 1, PREDICTED == 1))
    assert value("balanced_accuracy") == pytest.approx(
        np.mean([np.mean(PREDICTED[k == LABELS] == k) for k in range(3)])
    )
    seen = LABELS[np.isin(PREDICTED, LABELS)], PREDICTED[np.isin(PREDICTED, LABELS)]
    if len(seen[0]) == len(LABELS):
        assert value("balanced_accuracy") == pytest.approx(balanced_accuracy_score(*seen))
    exact = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    assert value("log_loss") == pytest.approx(log_loss(LABELS, exact, labels=range(4)))
    areas = [average_precision_score(k == LABELS, exact[:, k]) for k in range(3)]
    assert value("average_precision") == pytest.approx(np.mean(areas))


def test_measures_of_labels_are_at_the_best_threshold():
    levels = np.unique(LABEL_LOGITS)
    best = max(f1_score(MEMBERS, level <= LABEL_LOGITS, average="micro") for level in levels)
    assert 0.97 * best <= value("micro_f1", "labels") <= best + 1e-12
    assert value("log_loss", "labels") == pytest.approx(
        np.mean([log_loss(MEMBERS[:, k], expit(LABEL_LOGITS[:, k])) for k in range(4)])
    )
    assert value("average_precision", "labels") == pytest.approx(
        average_precision_score(MEMBERS, LABEL_LOGITS, average="macro")
    )


def test_less_may_be_better():
    metric = chosen_metric("mae", "number", ("stars",))
    assert metric.of(np.array([1.0, 3.0]), np.array([[2.0], [5.0]])) == 1.5
    assert metric.score(np.array([1.0]), np.array([[2.0]])) == -1.0


def test_unknown_measures_are_named():
    with pytest.raises(
        ConfigError, match=r"--metric: expected accuracy, .* or f1:CLASS; got 'auc'"
    ):
        chosen_metric("auc", "class", NAMES)
    with pytest.raises(ConfigError, match="--metric f1:x: expected one of the classes 'a', 'b'"):
        chosen_metric("f1:x", "labels", NAMES)
    assert {kind: chosen_metric(None, kind, NAMES).name for kind in METRICS} == {
        "class": "accuracy",
        "labels": "micro_f1",
        "number": "mae",
    }


def test_averages_and_classes():
    found = averages(LABELS, PREDICTED, 4)
    for kind in ("macro", "weighted"):
        expected = precision_recall_fscore_support(
            LABELS, PREDICTED, average=kind, zero_division=0.0
        )
        names = ("precision", "recall", "f1")
        assert [found[f"{kind}_{name}"] for name in names] == pytest.approx(expected[:3])
    members = np.eye(4, dtype=bool)
    table = per_class(members[LABELS], members[PREDICTED], LOGITS, NAMES)
    columns = precision_recall_fscore_support(LABELS, PREDICTED, labels=range(4), zero_division=0.0)
    keys = ("precision", "recall", "f1", "rows")
    for k, name in enumerate(NAMES[:3]):
        assert [table[name][key] for key in keys] == pytest.approx([each[k] for each in columns])
    nothing = dict.fromkeys((*keys, "average_precision"))
    assert table["d"] == {**nothing, "precision": 0.0, "f1": 0.0, "rows": 0}  # was answered
    answered = np.where(PREDICTED == 3, 0, PREDICTED)
    never = per_class(members[LABELS], members[answered], LOGITS, NAMES)
    assert never["d"] == {**nothing, "rows": 0}  # and so it is in no mean
    means = averages(LABELS, answered, 4)
    assert means["macro_f1"] == pytest.approx(np.mean([never[name]["f1"] for name in NAMES[:3]]))
    balance = {name: {"train": 5} for name in NAMES}
    assert "| d | – | – | – | – | 0 | 5 |" in class_table(never, balance)


def test_a_label_that_never_occurs_is_in_no_mean():
    members = np.array([[True, False, False], [False, True, False]])
    assert labels_agreement(members, members)["macro_f1"] == 1.0
    logits = np.where(members, 1.0, -1.0)
    assert chosen_metric("macro_f1", "labels", NAMES[:3]).of(members * 1.0, logits) == 1.0


def test_balanced_weights_are_those_of_scikit_learn():
    members = np.eye(3, dtype=bool)[LABELS]
    expected = compute_class_weight("balanced", classes=np.arange(3), y=LABELS)
    np.testing.assert_allclose(class_weights("balanced", NAMES[:3], members), expected, rtol=1e-6)
    weights = label_weights("balanced", NAMES, MEMBERS)
    rows = MEMBERS.sum(axis=0)
    np.testing.assert_allclose(weights, (90 - rows) / rows, rtol=1e-6)
    np.testing.assert_array_equal(class_weights(None, NAMES, MEMBERS), 1)


def test_weights_from_a_file(tmp_path):
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"c": 2.5}))
    np.testing.assert_array_equal(class_weights(str(path), NAMES, MEMBERS), [1, 1, 2.5, 1])
    for content, message in (
        ('{"x": 1}', "expected the classes 'a', 'b', 'c', 'd'; got 'x'"),
        ('{"a": -1}', "expected a number above 0 for 'a', got -1"),
        ("[]", "expected an object"),
    ):
        path.write_text(content)
        with pytest.raises(ConfigError, match=message):
            class_weights(str(path), NAMES, MEMBERS)
    with pytest.raises(
        ConfigError, match="--class-weight: expected balanced, none, or a JSON object"
    ):
        class_weights("equal", NAMES, MEMBERS)
