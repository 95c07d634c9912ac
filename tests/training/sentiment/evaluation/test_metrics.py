"""The numbers of a run, compared with its stored predictions."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from gru_training.sentiment.evaluation.metrics import same_words
from gru_training.words.vocabulary import TokenRows


def test_pairs_of_the_same_words_are_counted_as_by_enumeration():
    rng = np.random.default_rng(0)
    ids = [rng.permutation(rng.integers(2, 4, 3)).astype(np.int32) for _ in range(60)]
    test = TokenRows(ids, rng.integers(0, 3, 60))
    answers = np.where(rng.random(60) < 0.6, test.labels, (test.labels + 1) % 3)
    pairs = [
        (i, j)
        for i in range(60)
        for j in range(i)
        if sorted(ids[i]) == sorted(ids[j]) and test.labels[i] != test.labels[j]
    ]
    both = sum((answers[[i, j]] == test.labels[[i, j]]).all() for i, j in pairs)
    found = same_words(test, answers, test.labels)
    assert found == {"pairs": len(pairs), "gru": both / len(pairs), "bag_of_words": 1.0}


def test_rows_with_unknown_words_are_no_pairs():
    """As "good X" and "Y good", of which the model knows neither X nor Y."""
    known, unknown = np.array([5, 6], np.int32), np.array([5, 1], np.int32)
    test = TokenRows([known, known[::-1], unknown, unknown[::-1]], np.array([0, 1, 0, 1]))
    found = same_words(test, np.array([0, 1, 0, 0]), np.array([0, 0, 0, 0]))
    assert found == {"pairs": 1, "gru": 1.0, "bag_of_words": 0.0}


def test_calibrated_predictions_have_the_likelihood_that_is_told(tiny_run):
    rows = list(tiny_run.test_predictions())
    labels = [tiny_run.classes.index(row.label) for row in rows]
    scores = np.array([row.scores for row in rows])
    told = tiny_run.metrics["calibration"]["test"]
    likelihood = log_loss(labels, scores / scores.sum(axis=1, keepdims=True), labels=[0, 1])
    assert told["after"]["negative_log_likelihood"] == pytest.approx(likelihood, rel=1e-4)
    before = tiny_run.metrics["model"]["test"]["loss"]
    assert told["before"]["negative_log_likelihood"] == before
    validation = tiny_run.metrics["calibration"]["validation"]
    assert (
        validation["after"]["negative_log_likelihood"]
        <= validation["before"]["negative_log_likelihood"]
    )


def test_lengths_add_up_to_all_test_rows(tiny_run):
    metrics = tiny_run.metrics
    bins = metrics["by_length"]
    rows = [one["rows"] for one in bins]
    assert sum(rows) == metrics["data"]["rows"]["test"]
    accuracy = {
        "gru": metrics["model"]["test"]["accuracy"],
        "bag_of_words": metrics["baselines"]["bag of words, logistic regression"]["test_accuracy"],
    }
    for model, share in accuracy.items():
        assert np.average([one[model]["accuracy"] for one in bins], weights=rows) == (
            pytest.approx(share)
        )
        assert all(one[model]["low"] < one[model]["high"] for one in bins)
    lengths = [len(tiny_run.preprocessor().tokens([row.text])[0]) for row in
               tiny_run.test_predictions()]  # fmt: skip
    assert (bins[0]["shortest"], bins[-1]["longest"]) == (min(lengths), max(lengths))
