import copy

import numpy as np
import pytest
from matplotlib.image import imread

from gru_training.forecasting.evaluation import Evaluation, ForecastErrors, Interval, WindowErrors
from gru_training.forecasting.pictures import draw_coverage, draw_residuals
from gru_training.forecasting.report import coverage_remarks, not_better_than_naive, write_markdown
from tests.training.forecasting.reading import load_forecasting_data

NO_WINDOWS = WindowErrors(*np.zeros((2, 0, 2), np.float32), np.zeros(0, int))


@pytest.fixture
def metrics(forecasting_run):
    return copy.deepcopy(forecasting_run.metrics)


def test_every_baseline_stands_beside_the_network(metrics):
    summary = write_markdown(metrics)
    rows = [line for line in summary.split("\n") if line.startswith("|")]
    for name, floor in metrics["baselines"].items():
        row = next(line for line in rows if line.startswith(f"| {name}"))
        assert f"{floor['test']['mse']:.4f}" in row
    assert f"{metrics['model']['test']['mse']:.4f}" in summary
    for column in ("up", "down"):
        values = metrics["model"]["test"]["by_column"][column]
        row = next(line for line in rows if line.startswith(f"| {column} "))
        assert f"{values['raw_rmse']:.4g}" in row
        assert f"{metrics['intervals'][1]['by_column'][column]:.1%}" in row
        assert f"{metrics['quantiles']['by_column'][column]['crps']:.4f}" in row
    assert "nan" not in summary.lower()


def test_a_network_worse_than_naive_is_said_loudly(metrics):
    metrics["beats_seasonal_naive"] = True
    assert not_better_than_naive(metrics) is None
    assert "DOES NOT BEAT" not in write_markdown(metrics)
    metrics["beats_seasonal_naive"] = False
    assert "DOES NOT BEAT SEASONAL NAIVE" in write_markdown(metrics).split("\n")[2]
    own, naive = (
        metrics["model"]["validation"],
        metrics["baselines"]["seasonal naive"]["validation"],
    )
    assert f"MSE is {own['mse']:.4f}" in not_better_than_naive(metrics)
    of_medians = not_better_than_naive(metrics | {"measure": "mae"})
    assert f"MAE is {own['mae']:.4f}" in of_medians
    assert f"season {naive['mae']:.4f}" in of_medians


def test_it_begins_with_the_error_beside_that_of_the_last_season(metrics):
    own, naive = metrics["model"]["test"], metrics["baselines"]["seasonal naive"]["test"]
    own["mae"], naive["mae"] = 0.3, 0.4
    metrics["beats_seasonal_naive"] = True
    first = write_markdown(metrics).split("\n")[2]
    assert first.startswith("**On the test windows forecasts are off by 0.300 standard deviations")
    assert "25% less than those that repeat the last season" in first
    widest = max(metrics["intervals"], key=lambda interval: interval["nominal"])
    assert f"interval holds {widest['coverage']:.0%} of the values" in first
    metrics["data"]["targets"], own["by_column"]["up"]["raw_mae"] = ["up"], 12.5
    naive["mae"] = 0.2
    first = write_markdown(metrics).split("\n")[2]
    assert "off by 12.5 on average, in the units of up**, 50% more than" in first


def test_it_begins_with_what_is_delivered_and_what_was_better(metrics):
    metrics["beats_seasonal_naive"] = True
    shares = [
        {"name": name, "detail": "", "weight": weight, "network": network, "validation_loss": 0.1}
        for name, weight, network in (("GRU", 0.0, "network_1"), ("ridge", 1.0, None))
    ]
    metrics["combination"] = {
        "shares": shares,
        "criterion": "mean squared error",
        "deliver": "combination",
        "few_windows": False,
        "transforms": {"none": 0.1},
    }
    metrics["model"]["test"]["mse"] = 0.25
    for name, floor in metrics["baselines"].items():
        floor["test"]["mse"] = 0.2 if name == "last value" else 0.3
    first = write_markdown(metrics).split("\n")[2]
    assert "Delivered is the weighted mean of simple forecasters that does best" in first
    assert "there, networks add nothing." in first
    assert "**Better on the test windows** (MSE 0.2500): last value (0.2000), each alone" in first
    assert "ridge" not in first
    metrics["combination"]["few_windows"] = True
    assert "they are too few to show that networks help." in write_markdown(metrics).split("\n")[2]
    metrics["combination"]["deliver"] = "last-value"
    first = write_markdown(metrics).split("\n")[2]
    assert "Delivered is last value alone, as `--deliver last-value` asks." in first
    metrics["combination"]["deliver"] = "combination"
    shares[0]["weight"], shares[1]["weight"] = 0.6, 0.4
    metrics["baselines"]["last value"]["test"]["mse"] = 0.3
    first = write_markdown(metrics).split("\n")[2]
    assert "Delivered is the weighted mean of networks and simple forecasters" in first
    assert "Better" not in first


@pytest.mark.parametrize(
    ("coverage", "words"),
    [(0.83, None), (0.77, None), (0.769, "3.1 points less"), (0.9, "10.0 points more")],
)
def test_coverage_more_than_three_points_off_is_remarked(metrics, coverage, words):
    metrics["intervals"] = [{**metrics["intervals"][0], "nominal": 0.8, "coverage": coverage}]
    metrics["data"]["rows"]["validation"] = 3 * metrics["data"]["horizon"]
    remarks = coverage_remarks(metrics)
    assert bool(remarks) == bool(words)
    if words:
        assert words in remarks[0]
        assert f"{metrics['model']['validation']['mse']:.4f}" in remarks[1]
        assert remarks[0] in write_markdown(metrics)
    if "less" in (words or ""):  # a validation part of three horizons, whatever its windows
        assert "validation part is 3.0 horizons long" in remarks[2]


def test_column_names_do_not_break_the_table(metrics):
    parts = metrics["model"]["test"], metrics["quantiles"], *metrics["intervals"]
    for part in parts:
        part["by_column"]["a|b<c"] = part["by_column"].pop("up")
    assert r"| a\|b&lt;c |" in write_markdown(metrics)


def test_errors_that_are_nearly_all_alike_are_drawn(forecasting_run, tmp_path):
    """As for a series that does not change in its test part."""
    data = load_forecasting_data(forecasting_run.config.data)
    residuals = np.full((59, 2), 0.0645, np.float32)
    residuals[::2] = np.nextafter(residuals[::2], np.float32(1))
    errors = ForecastErrors(*np.zeros((3, 6, 2)), np.full((6, 2), 59), NO_WINDOWS)
    draw_residuals(
        data, Evaluation(errors, (), residuals, np.zeros((5, 6, 2))), tmp_path / "residuals.png"
    )
    assert imread(tmp_path / "residuals.png").std() > 0.03


def test_a_single_error_is_drawn(forecasting_run, tmp_path):
    """Of a single test window, which has no autocorrelation and no entry in the legend."""
    data = load_forecasting_data(forecasting_run.config.data)
    errors = ForecastErrors(*np.zeros((3, 6, 2)), np.full((6, 2), 1), NO_WINDOWS)
    test = Evaluation(errors, (), np.ones((1, 2), np.float32), np.zeros((5, 6, 2)))
    draw_residuals(data, test, tmp_path / "residuals.png")
    assert imread(tmp_path / "residuals.png").std() > 0.03


def test_coverage_of_a_step_never_seen_is_unknown(tmp_path):
    """Not zero: in the only test window, the second of three steps is missing."""
    inside, count = np.array([[1.0], [np.nan], [0.5]]), np.array([[2], [0], [2]])
    interval = Interval(0.8, inside, count, np.ones((3, 1)))
    np.testing.assert_array_equal(interval.by_horizon(), [1.0, np.nan, 0.5])
    assert interval.coverage == 0.75
    np.testing.assert_array_equal(interval.by_column(), [0.75])
    errors = ForecastErrors(inside, inside, inside, count, NO_WINDOWS)
    test = Evaluation(errors, (interval, interval), np.ones((2, 1)), np.zeros((5, 3, 1)))
    draw_coverage(test, tmp_path / "coverage.png")
    assert imread(tmp_path / "coverage.png").std() > 0.03
