"""Thresholds and costs, against enumeration."""

import json

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score

from gru_training.config import to_dict
from gru_training.errors import ConfigError
from gru_training.sentiment.decision import (
    Decision,
    decision_from_json,
    f1_threshold,
    precision_threshold,
    read_costs,
    read_targets,
)

CLASSES = ("billing", "bug", "other")


def scores(rows=200, classes=3, seed=0):
    drawn = np.random.default_rng(seed).dirichlet(np.ones(classes), rows)
    return drawn.astype(np.float32)


def test_without_thresholds_the_likeliest_class_is_answered():
    drawn = scores()
    np.testing.assert_array_equal(Decision().classes(drawn), drawn.argmax(axis=1))


def test_the_answer_has_the_least_expected_cost(tmp_path):
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"bug": {"other": 10}, "billing": {"bug": 0.5, "billing": 0.1}}))
    costs = {("bug", "other"): 10, ("billing", "bug"): 0.5, ("billing", "billing"): 0.1}
    decision = Decision(utilities=read_costs(path, CLASSES))
    drawn = scores()
    for row, answer in zip(drawn, decision.classes(drawn), strict=True):
        of = dict(zip(CLASSES, row, strict=True))
        expected = [
            sum(of[true] * costs.get((true, said), true != said) for true in CLASSES)
            for said in CLASSES
        ]
        assert expected[answer] == pytest.approx(min(expected), abs=1e-6)


def test_a_class_is_answered_from_its_threshold_on():
    drawn = scores()
    answers = Decision(thresholds=(0.0, 0.8, 0.0)).classes(drawn)
    for row, answer in zip(drawn, answers, strict=True):
        left = [k for k in range(3) if k != 1 or row[1] >= 0.8]
        assert answer == max(left, key=lambda k: row[k])
    # Where no class reaches its threshold, the likeliest is answered all the same.
    np.testing.assert_array_equal(
        Decision(thresholds=(2.0, 2.0, 2.0)).classes(drawn), drawn.argmax(axis=1)
    )


def test_labels_apply_from_their_thresholds_on():
    drawn = scores()
    least = (0.1, 0.3, 0.5)
    np.testing.assert_array_equal(
        Decision(thresholds=least).labels(drawn), drawn >= np.array(least, np.float32)
    )
    np.testing.assert_array_equal(Decision().labels(drawn), drawn >= 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.random(80), 2)  # with ties
    truth = rng.random(80) < values
    best = max(f1_score(truth, values >= level) for level in np.unique(values))
    assert f1_score(truth, values >= f1_threshold(truth, values)) == pytest.approx(best)
    levels = [v for v in np.unique(values) if precision_score(truth, values >= v) >= 0.75]
    assert precision_threshold(truth, values, 0.75) == min(levels)
    assert precision_threshold(np.zeros(80, bool), values, 0.75) is None


def test_a_label_without_rows_has_the_usual_threshold():
    assert f1_threshold(np.zeros(5, bool), np.arange(5) / 5) == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"bug": {"none": 1}}', "expected the classes 'billing', 'bug', 'other'; got 'none'"),
        ('{"bug": {"other": "much"}}', "expected numbers for 'bug'"),
        ("[1]", "expected a JSON file as"),
        ("{", "expected a JSON file as"),
    ],
)
def test_bad_costs_are_named(tmp_path, content, message):
    path = tmp_path / "costs.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_costs(path, CLASSES)


def test_target_precisions():
    assert read_targets(["bug=0.9", "other=1"], CLASSES) == {1: 0.9, 2: 1.0}
    for bad in ("bug", "bug=much", "bug=0", "none=0.5"):
        with pytest.raises(ConfigError, match="--target-precision: expected"):
            read_targets([bad], CLASSES)


def test_a_decision_survives_json():
    decision = Decision((0.1, 0.0), ((0.0, -1.0), (-2.5, 0.0)), "why")
    assert decision_from_json(json.loads(json.dumps(to_dict(decision)))) == decision
    with pytest.raises(ConfigError, match="expected thresholds, utilities and a reason"):
        decision_from_json({"thresholds": [0.5]})
