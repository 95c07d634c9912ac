"""Folds that simple forecasters are weighed by."""

import numpy as np
import pandas as pd
import pytest

from gru_training.data.series import Series
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.data import prepare
from gru_training.forecasting.plan import few_windows, rolling_folds

RNG = np.random.default_rng(6)


def folds(rows, columns=1, horizon=12):
    values = RNG.normal(size=(rows, columns)).cumsum(axis=0)
    times = pd.date_range("2000-01-01", periods=rows, freq="MS").as_unit("ns").to_numpy()
    names = tuple(f"x{number}" for number in range(columns))
    series = Series("x", "x", names, values, times, "MS")
    data = prepare(series, SeriesConfig(horizon=horizon))
    return rolling_folds(data), data


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
