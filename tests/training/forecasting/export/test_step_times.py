"""Times and the calendar in the graph, against pandas."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_training.data.calendar import KINDS, make_calendar
from gru_training.errors import ConfigError
from gru_training.forecasting.export.times import CalendarInputs, StepTimes, TimeZone, parts_of

BACK, AHEAD = 30, 40
LASTS = {
    "h": "2024-02-29 23:00:00",
    "15min": "1999-12-31 23:45:00",
    "30s": "2024-03-01 00:00:30",
    "D": "1900-02-28",
    "3D": "2000-02-27",
    "B": "2024-05-31",
    "W-SAT": "2023-12-30",
    "MS": "2023-11-01",
    "2MS": "2023-11-01",
    "ME": "2024-01-31",
    "QS-JAN": "2023-10-01",
    "QE-DEC": "2023-12-31",
    "YS-JAN": "2001-01-01",
    "YE-DEC": "1999-12-31",
}


def around(frequency, last):
    after = pd.date_range(last, periods=AHEAD + 1, freq=frequency)
    before = pd.date_range(end=last, periods=BACK, freq=frequency)
    return before.append(after[1:])


@pytest.mark.parametrize(("frequency", "last"), LASTS.items())
def test_steps_are_those_of_pandas(frequency, last):
    times = StepTimes(frequency)
    offsets = tf.range(1 - BACK, AHEAD + 1, dtype=tf.int64)
    seconds = times.steps(times.read("timestamp", tf.constant([last])), offsets)[0].numpy()
    expected = around(frequency, last)
    np.testing.assert_array_equal(seconds, expected.as_unit("s").asi8)
    parts = {name: value.numpy() for name, value in parts_of(tf.constant(seconds)).items()}
    np.testing.assert_array_equal(parts["year"], expected.year)
    np.testing.assert_array_equal(parts["month"], expected.month)
    np.testing.assert_array_equal(parts["weekday"], expected.day_of_week)
    np.testing.assert_array_equal(parts["day_of_year"], expected.day_of_year - 1)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-05-31", "2024-05-31 00:00:00"),
        (" 2024-05-31T13:45Z ", "2024-05-31 13:45:00"),
        ("2024-05-31 13:45:10.250", "2024-05-31 13:45:10"),
        ("2024-05-31T00:15:00+02:00", "2024-05-30 22:15:00"),
        ("2024-05-31 23:30 -0530", "2024-06-01 05:00:00"),
        ("0001-01-01", "0001-01-01 00:00:00"),
    ],
)
def test_times_are_read_with_their_offsets(text, utc):
    seconds = StepTimes("s").read("timestamp", tf.constant([text])).numpy()[0]
    assert seconds == np.datetime64(utc, "s").astype(int)


@pytest.mark.parametrize(
    ("frequency", "text", "message"),
    [
        ("h", "yesterday", "timestamp: expected a time such as .* got yesterday"),
        ("h", "31.05.2024 13:00", "got 31.05.2024"),
        ("h", "2023-02-29", "got 2023-02-29"),
        ("h", "2024-13-01", "got 2024-13-01"),
        ("h", "2024-01-01 24:00", "got 2024-01-01 24:00"),
        ("h", "", "timestamp: expected a time such as"),
        ("MS", "2024-05-31", "expected a time of the spacing MS, got 2024-05-31"),
        ("B", "2024-06-01", "expected a time of the spacing B, got 2024-06-01"),
    ],
)
def test_what_is_no_time_of_the_series_is_named(frequency, text, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        StepTimes(frequency).read("timestamp", tf.constant(["2024-04-01", text]))


def test_other_spacings_are_refused():
    for frequency in ("ms", "SMS", "2B"):
        with pytest.raises(ConfigError, match=f"whole seconds.* got {frequency}"):
            StepTimes(frequency)


@pytest.mark.parametrize("timezone", [None, "Europe/Berlin", "Australia/Lord_Howe"])
@pytest.mark.parametrize("frequency", ["h", "D"])
def test_the_calendar_is_that_of_the_training(timezone, frequency):
    """Through changes of clocks, ends of years and holidays, in histories and behind them."""
    span = pd.date_range("2019-01-01", periods=400, freq="D")
    calendar = make_calendar(span, frequency, tuple(KINDS), "DE", timezone)
    lasts = ["2019-04-01", "2020-01-01", "2020-10-26", "2028-12-20"]
    inputs = CalendarInputs(calendar, frequency, True, ("own", *calendar.columns))
    histories = inputs.history(tf.zeros((4, BACK, 2)), tf.constant(lasts)).numpy()
    futures = inputs.future(tf.ones((4, AHEAD, 1)), tf.constant(lasts), AHEAD).numpy()
    assert (histories[..., :2] == 0).all()
    assert (futures[..., 0] == 1).all()
    for row, last in enumerate(lasts):
        utc = pd.Timestamp(last)
        if timezone is not None:
            utc = utc.tz_localize(timezone).tz_convert("UTC").tz_localize(None)
        expected = calendar.values(around(frequency, utc))
        made = np.concatenate([histories[row, :, 2:], futures[row, :, 1:]])
        np.testing.assert_allclose(made, expected, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in the years 2018 to 2030"):
        inputs.future(tf.ones((1, AHEAD, 1)), tf.constant(["2031-12-01"]), AHEAD)
    with pytest.raises(tf.errors.InvalidArgumentError, match="for each of the 4 of history, got 1"):
        inputs.history(tf.zeros((4, BACK, 2)), tf.constant(lasts[:1]))


@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Tokyo"])
def test_local_times_are_those_of_pandas(name):
    """Of all half hours of three years; those that are there twice count as the earlier ones."""
    utc = pd.date_range("2019-01-01", "2021-12-31", freq="30min")
    local = utc.tz_localize("UTC").tz_convert(name).tz_localize(None)
    zone = TimeZone(name, 2018, 2022)
    seconds = utc.as_unit("s").asi8.reshape(-1, 1)
    found = zone.to_local(tf.constant(seconds)).numpy()
    np.testing.assert_array_equal(found.ravel(), local.as_unit("s").asi8)
    back = zone.to_utc(tf.constant(found)).numpy().ravel()
    twice = local.duplicated(keep="first")
    np.testing.assert_array_equal(back[~twice], seconds.ravel()[~twice])
    assert (back[twice] < seconds.ravel()[twice]).all()
