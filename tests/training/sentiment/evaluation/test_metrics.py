"""The numbers of a run, compared with its stored predictions."""

import numpy as np
import pytest
from sklearn.metrics import log_loss


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
