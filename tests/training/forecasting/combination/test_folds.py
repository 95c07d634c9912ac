"""Folds that simple forecasters are weighed by."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gru_training.data.series import Series
from gru_training.forecasting.config import CombinationConfig, ForecastingConfig, SeriesConfig
from gru_training.forecasting.data import prepare
from gru_training.forecasting.evaluation import calibrate
from gru_training.forecasting.intervals import LEVELS
from gru_training.forecasting.plan import InitialWeights, few_windows, make_plan, rolling_folds

RNG = np.random.default_rng(6)


def folds(rows, columns=1, horizon=12):
    data = prepare(walk(rows, columns), SeriesConfig(horizon=horizon))
    return rolling_folds(data), data


def walk(rows, columns=1):
    values = RNG.normal(size=(rows, columns)).cumsum(axis=0)
    times = pd.date_range("2000-01-01", periods=rows, freq="MS").as_unit("ns").to_numpy()
    names = tuple(f"x{number}" for number in range(columns))
    return Series("x", "x", names, values, times, "MS")


@pytest.mark.parametrize("columns", [1, 3])
def test_a_short_series_is_forecast_from_many_origins(columns):
    found, data = folds(140, columns)
    assert len(found) > 1
    origins = np.concatenate([fold.origins for fold in found])
    first = found[0].train
    assert first >= data.borders.train // 2
    assert origins.tolist() == list(range(first, data.borders.validation - 12 + 1))
    for fold in found:  # nothing is forecast that was learned
        assert fold.train == fold.origins[0]
    assert found[-1].train == data.borders.train


@pytest.mark.parametrize(("rows", "columns"), [(1500, 1), (140, 20), (140, 40)])
def test_the_validation_windows_are_enough_of_a_long_series_or_of_several(rows, columns):
    found, data = folds(rows, columns)
    assert [fold.train for fold in found] == [data.borders.train]


@pytest.mark.parametrize(
    ("rows", "columns", "few"), [(140, 1, True), (140, 9, False), (700, 1, False)]
)
def test_a_handful_of_windows_tells_nothing_of_networks(rows, columns, few):
    assert few_windows(folds(rows, columns)[1]) is few


def planned(series, deliver):
    config = ForecastingConfig(
        data=SeriesConfig(horizon=12, transform="none"),
        combination=CombinationConfig(deliver=deliver),
    )
    return make_plan(series, InitialWeights(config))


def test_intervals_know_the_errors_of_all_folds():
    rows = 140
    series = walk(rows)
    quiet = rolling_folds(prepare(series, SeriesConfig(horizon=12)))[-1].train
    series.values[quiet:] = series.values[quiet - 1] + 0.01 * RNG.normal(size=(rows - quiet, 1))
    plan = planned(series, "last-value")
    values, forecasts = plan.earlier
    known = plan.data.standardised_targets[:, 0]
    first = quiet - len(values)
    for window, origin in enumerate(range(first, quiet)):
        np.testing.assert_allclose(values[window, :, 0], known[origin : origin + 12], rtol=1e-6)
        np.testing.assert_allclose(forecasts[window, :, 0], known[origin - 1], rtol=1e-6)

    def last_value(histories):
        read = np.asarray(plan.data.preprocessor.standardise(histories))
        return read[:, -1:, :, np.newaxis].repeat(12, axis=1)

    windows = plan.data.windows("validation")
    alone, all_folds = (
        calibrate(last_value, windows, False, LEVELS, earlier) for earlier in (None, plan.earlier)
    )
    step = known[1:quiet] - known[: quiet - 1]
    widths = [(each[..., -1] - each[..., 0]).mean() for each in (alone, all_folds)]
    assert widths[0] < step.std() < widths[1]


@pytest.mark.parametrize(("rows", "deliver"), [(140, "network"), (1500, "combination")])
def test_errors_of_what_is_not_delivered_tell_nothing(rows, deliver):
    assert planned(walk(rows), deliver).earlier is None


@pytest.mark.parametrize("rows", [40, 44])
def test_the_last_season_is_delivered_of_few_rows(rows):
    """It may be longer than training windows are: nothing is fitted to it."""
    series = walk(rows)
    season = 10 * np.sin(np.arange(rows) * np.pi / 6)[:, np.newaxis]
    plan = planned(replace(series, values=season + RNG.normal(size=(rows, 1))), "seasonal-naive")
    weights = dict(zip([each.name for each in plan.candidates], plan.weights, strict=True))
    assert weights["seasonal naive"] == 1
    assert plan.data.shape.lookback == 12 > plan.data.borders.train - 12
    assert all(len(plan.data.windows(part)) for part in ("train", "validation", "test"))
