"""The temperature, compared with closed forms and with statsmodels' logistic regression."""

import json
import math
import shutil

import numpy as np
import pytest
import statsmodels.api as sm

from gru_training.config import from_dict
from gru_training.errors import RunDirectoryError
from gru_training.sentiment.decision import HIGHEST, LOWEST, Temperature, fit_temperature
from gru_training.sentiment.run import SentimentRun


def test_of_one_margin_it_is_margin_over_log_odds():
    # Every row has a logit of 2.5 and 3 in 4 are right, so sigmoid(2.5 / T) must be 3/4.
    labels = np.array([0, 1, 0, 1, 1, 1, 0, 0])
    said = np.array([0, 1, 0, 1, 1, 1, 1, 1])
    logits = np.where(np.arange(2) == said[:, np.newaxis], 2.0, -0.5)
    found = fit_temperature(labels, logits)
    assert found.value == pytest.approx(2.5 / math.log(3), rel=1e-5)
    assert found.remark is None


@pytest.mark.parametrize("seed", range(3))
def test_of_two_classes_it_is_the_inverse_slope_of_a_logistic_regression(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (400, 2)).astype(np.float32)
    margin = (logits[:, 1] - logits[:, 0]).astype(np.float64)
    labels = (rng.random(400) < 1 / (1 + np.exp(-margin / (1 + seed)))).astype(int)
    slope = sm.Logit(labels, margin).fit(disp=0).params[0]
    assert fit_temperature(labels, logits).value == pytest.approx(1 / slope, rel=1e-4)


def test_what_was_drawn_at_a_temperature_is_found_again():
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 3, (40_000, 4))
    drawn = logits / 2.5 + rng.gumbel(
        size=logits.shape
    )  # the right class is drawn from the softmax
    found = fit_temperature(drawn.argmax(axis=1), logits.astype(np.float32))
    assert found.value == pytest.approx(2.5, rel=0.03)


def test_rows_that_are_all_right_leave_the_model_as_it_is():
    logits = np.array([[9.0, -9.0], [-8.0, 7.0], [5.0, 4.0]], np.float32)
    found = fit_temperature(np.array([0, 1, 0]), logits)
    assert found.value == 1
    assert "all 3 validation rows are right" in found.remark


@pytest.mark.parametrize(("scale", "shift", "bound"), [(3, 1, HIGHEST), (0.001, 0, LOWEST)])
def test_the_end_of_the_search_is_said(scale, shift, bound):
    """Answers that are all wrong except one, and right answers that are far too cautious."""
    labels = np.tile([0, 1, 2], 20)
    logits = scale * np.eye(3)[(labels + shift) % 3]
    logits[0] = scale * np.eye(3)[(labels[0] + 1 - shift) % 3]
    found = fit_temperature(labels, logits)
    assert found.value == bound
    side = "above" if bound == HIGHEST else "below"
    assert f"the best one lies {side} it" in found.remark


def test_the_run_keeps_it(tiny_run, tmp_path):
    copied = SentimentRun(shutil.copytree(tiny_run.path, tmp_path / "copy"))
    path = copied.path / "temperature.json"
    values = json.loads(path.read_text())
    assert copied.temperature == from_dict(Temperature, values)
    assert copied.temperature.value == tiny_run.metrics["calibration"]["temperature"]
    path.write_text('{"value": 0}')
    with pytest.raises(RunDirectoryError, match=r"temperature\.json: .* above 0, got 0"):
        _ = SentimentRun(copied.path).temperature
