from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gru_training.data.series import Series
from gru_training.errors import DataError
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.data import prepare
from gru_training.forecasting.sets import Borders, borders_of, steps_of


def series(rows, frequency="MS"):
    times = pd.date_range("2000-01-01", periods=rows, freq=frequency)
    return Series("s", "s.csv", ("a",), np.zeros((rows, 1)), times.to_numpy(), frequency)


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
        (48, {"horizon": 6}, 6),  # one horizon, whatever is left
        (60, {}, 12),
    ],
)
def test_a_short_series_has_a_larger_validation_part(rows, settings, validation):
    borders = borders_of(series(rows), SeriesConfig(**settings))
    assert borders.validation - borders.train == validation
    assert borders.test - borders.validation == int(0.2 * rows)


@pytest.mark.parametrize("frequency", ["MS", "W-SUN", "D", "h", "QS"])
def test_a_short_series_is_never_refused_by_default(frequency):
    """From eight rows on; each part then has a window, and a season is seen in training."""
    rng = np.random.default_rng(1)
    for rows in (8, 13, 20, 37, 44, 60, 97, 104, 156, 157, 300):
        values = rng.normal(size=(rows, 1))
        short = replace(series(rows, frequency), values=values)
        for settings in ({}, {"horizon": max(1, rows // 8)}):
            data = prepare(short, SeriesConfig(**settings))
            assert data.season <= data.borders.train
            assert all(len(data.windows(part)) for part in ("train", "validation", "test"))
    assert steps_of(series(157, "W-SUN"), SeriesConfig())[1:] == (39, 52)
    assert steps_of(series(44, "W-SUN"), SeriesConfig())[1:] == (11, 1)
    assert steps_of(series(44, "YS"), SeriesConfig()) == (3, 1, 1)


@pytest.mark.parametrize(("name", "steps"), [("ETTh2", 1), ("ETTm1", 4)])
def test_published_borders_are_months_of_thirty_days(name, steps):
    columns = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
    month = 30 * 24 * steps
    whole = replace(series(20 * month + 5, "h"), name=name, columns=columns)
    assert borders_of(whole, SeriesConfig()) == Borders(12 * month, 16 * month, 20 * month)
    for other in (replace(whole, columns=columns[::-1]), replace(whole, name="own")):
        assert borders_of(other, SeriesConfig()).test == len(other)


def test_what_a_short_series_lacks_is_said():
    values = np.random.default_rng(2).normal(size=(44, 1))
    notes = prepare(replace(series(44, "W-SUN"), values=values), SeriesConfig()).series.notes
    assert any(note.startswith("no season: the usual one of 52 steps") for note in notes)
    assert any(note.startswith("a horizon of 11 steps in place of the usual 52") for note in notes)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"horizon": 30}, {"horizon": 15}),
        ({"horizon": 6, "lookback": 60}, {"lookback": None}),
        (
            {"horizon": 6, "validation_fraction": 0.1},
            {"validation_fraction": None, "test_fraction": None},
        ),
    ],
)
def test_the_advice_of_a_refusal_helps(settings, advice):
    """It is tried: the settings that the error names are accepted, a step more is not."""
    short = replace(series(48), values=np.random.default_rng(3).normal(size=(48, 1)))
    refused = SeriesConfig(**settings)
    with pytest.raises(DataError) as error:
        prepare(short, refused)
    flags = " and ".join(f"--{name.replace('_', '-')}" for name in advice)
    said = f"--horizon {advice['horizon']} fits" if "horizon" in advice else f"leave out {flags}"
    assert str(error.value).endswith(f"; {said}")
    prepare(short, replace(refused, **advice))
    if "horizon" in advice:
        with pytest.raises(DataError):
            prepare(short, replace(refused, horizon=advice["horizon"] + 1))
