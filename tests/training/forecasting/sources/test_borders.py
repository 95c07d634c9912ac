import numpy as np
import pandas as pd
import pytest

from gru_training.data.series import Series
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.sources.sets import borders_of


def series(rows, frequency="MS"):
    times = pd.date_range("2000-01-01", periods=rows, freq=frequency)
    return Series("s", "s.csv", ("a",), np.zeros((rows, 1)), times, frequency)


def test_a_look_back_chosen_later_moves_no_border():
    short = series(144)
    assert borders_of(short, SeriesConfig()) == borders_of(short, SeriesConfig(lookback=78))


@pytest.mark.parametrize(
    ("rows", "settings", "validation"),
    [
        (144, {}, 36),  # a quarter: four horizons of twelve would be more
        (400, {}, 48),  # four horizons
        (400, {"horizon": 3}, 40),  # a tenth
        (400, {"validation_fraction": 0.2}, 80),
        (96, {}, 17),  # what three seasons and two horizons to train on leave
    ],
)
def test_a_short_series_has_a_larger_validation_part(rows, settings, validation):
    borders = borders_of(series(rows), SeriesConfig(**settings))
    assert borders.validation - borders.train == validation
    assert borders.test - borders.validation == int(0.2 * rows)
