"""Calibration, compared with scikit-learn and with values computed by hand."""

import math

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from gru_training.sentiment.decision import negative_log_likelihood, reliability


def some_answers(rows, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (rows, classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (logits / 3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return labels, logits, probabilities


def test_likelihood_is_that_of_scikit_learn():
    labels, logits, probabilities = some_answers(200)
    assert negative_log_likelihood(labels, logits) == pytest.approx(log_loss(labels, probabilities))
    assert negative_log_likelihood(np.array([1]), np.array([[5000.0, -5000.0]])) == 10_000


def test_the_curve_is_that_of_scikit_learn():
    labels, logits, probabilities = some_answers(600)
    right = probabilities.argmax(axis=1) == labels
    confidence = probabilities.max(axis=1)
    curve = reliability(labels, logits, bins=12)
    accuracy, mean = calibration_curve(right, confidence, n_bins=12, strategy="quantile")
    np.testing.assert_allclose(curve.accuracy, accuracy)
    np.testing.assert_allclose(curve.confidence, mean)
    assert curve.rows.tolist() == [50] * 12
    assert curve.expected_error == pytest.approx(np.mean(np.abs(accuracy - mean)))


def test_three_of_four_right_at_three_quarters_is_no_error():
    logits = np.tile([math.log(3), 0.0], (8, 1))
    assert reliability(np.array([0, 0, 0, 1] * 2), logits).expected_error == pytest.approx(0)
    assert reliability(np.zeros(8, int), logits).expected_error == pytest.approx(0.25)


def test_bins_count_by_their_rows():
    def logits(confidence):
        return [math.log(confidence), math.log(1 - confidence)]

    answers = np.array([logits(0.9), logits(0.6), logits(0.6)])
    curve = reliability(np.array([1, 0, 1]), answers, bins=2)
    assert curve.rows.tolist() == [2, 1]
    np.testing.assert_allclose(curve.confidence, [0.6, 0.9])
    np.testing.assert_allclose(curve.accuracy, [0.5, 0.0])
    assert curve.expected_error == pytest.approx((2 * 0.1 + 0.9) / 3)


@pytest.mark.parametrize(("rows", "bins"), [(1, 1), (79, 1), (80, 2), (5000, 15)])
def test_bins_have_enough_rows(rows, bins):
    labels, logits, _ = some_answers(rows)
    curve = reliability(labels, logits)
    assert len(curve.rows) == bins
    assert curve.rows.sum() == rows
