"""Inputs made of times: seasons, months and holidays."""

import numpy as np
import pandas as pd
import pytest

from gru_training.data.calendar import Calendar, make_calendar
from gru_training.errors import ConfigError, DataError


def calendar(times, frequency, *kinds, country=None, timezone=None):
    made = make_calendar(times, frequency, kinds, country, timezone)
    return made, dict(zip(made.columns, made.values(times).T, strict=True))


def test_cycles_repeat():
    times = pd.date_range("2021-03-01", periods=24 * 21, freq="h")  # a Monday
    made, columns = calendar(times, "h", "auto")
    assert made.columns == ("day_sin", "day_cos", "weekday", "year_sin", "year_cos")
    np.testing.assert_allclose(columns["day_sin"][24:], columns["day_sin"][:-24], atol=1e-12)
    assert columns["day_sin"][6] == pytest.approx(1)
    assert columns["weekday"][::24].tolist() == [*range(7)] * 3
    for cycle in ("day", "year"):
        radius = columns[f"{cycle}_sin"] ** 2 + columns[f"{cycle}_cos"] ** 2
        np.testing.assert_allclose(radius, 1)
    assert not made.years  # nothing of it ends


@pytest.mark.parametrize(
    ("frequency", "columns"),
    [
        ("W-SUN", ("year_sin", "year_cos")),
        ("B", ("weekday", "year_sin", "year_cos")),
        ("YS-JAN", ()),
    ],
)
def test_only_what_varies_within_its_cycle_is_made(frequency, columns):
    times = pd.date_range("2015-01-01", periods=60, freq=frequency)
    assert calendar(times, frequency, "auto")[0].columns == columns


def test_months_and_holidays_are_those_of_the_country():
    times = pd.date_range("2023-01-01", "2024-12-31", freq="D")
    made, columns = calendar(times, "D", "month", country="DE-BY")
    assert made.columns == ("month", "holiday")
    np.testing.assert_array_equal(columns["month"], times.month)
    days = set(times[columns["holiday"] == 1].strftime("%m-%d"))
    assert {"01-01", "01-06", "05-01", "10-03", "11-01", "12-25", "12-26"} <= days
    easter = {"2023-04-07", "2023-04-10", "2024-03-29", "2024-04-01"}
    assert easter <= set(times[columns["holiday"] == 1].strftime("%Y-%m-%d"))
    assert made.years == (2022, 2034)
    hamburg = make_calendar(times, "D", (), "DE-HH", None)
    assert set(hamburg.holidays) != set(made.holidays)
    with pytest.raises(DataError, match=r"years 2022 to 2034, .*got 2035-01-01"):
        made.values(pd.date_range("2034-12-30", periods=4))


def test_hours_are_those_of_the_time_zone():
    times = pd.DatetimeIndex(["2024-03-31 00:30", "2024-03-31 01:30", "2024-12-24 23:30"])
    made = make_calendar(times, "h", ("hour",), "DE", "Europe/Berlin")
    sine, cosine, holiday = made.values(times).T
    angle = np.arctan2(sine, cosine) % (2 * np.pi)
    hours = angle / (2 * np.pi) * 24
    np.testing.assert_allclose(hours, [1.5, 3.5, 0.5])  # on 31 March the clock skips an hour
    assert holiday.tolist() == [0, 0, 1]  # in Berlin it is Christmas by then


def test_other_countries_are_refused():
    times = pd.date_range("2024-01-01", periods=3)
    with pytest.raises(ConfigError, match=r"--holidays: .*got 'XX': .*not available"):
        make_calendar(times, "D", (), "XX", None)
    with pytest.raises(ConfigError, match=r"got 'DE-QQ': .*QQ"):
        make_calendar(times, "D", (), "DE-QQ", None)
    assert Calendar().values(times).shape == (3, 0)
