"""Times and the calendar in both runtimes, against pandas."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing import calendar as steps
from gru_serving.preprocessing.calendar import (
    AddCalendar,
    AddFutureCalendar,
    CalendarTable,
    date_of,
    days_of,
    parts_of,
)
from gru_serving.preprocessing.operations import Arrays, tensors
from gru_training.data.calendar import KINDS, make_calendar
from gru_training.errors import ConfigError
from gru_training.forecasting.export.calendar import make_inputs, step_times, time_zone

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


RUNTIMES = {"numpy": lambda: Arrays, "graph": tensors}


def times_of(frequency, texts, first, stop, runtime):
    """Seconds of the steps after times, and the weekday that the calendar makes of each."""
    ops = RUNTIMES[runtime]()
    table = CalendarTable(("weekday",), step_times(frequency))
    values = {"timestamp": strings(texts) if ops is Arrays else tf.constant(texts)}
    made = np.asarray(table.made(values, "timestamp", first, stop, ops))[..., 0]
    _, parts, ahead, _ = steps._read(strings(texts))
    last = steps._counted(parts, Arrays)[1] - ahead
    return np.asarray(table.times.steps(ops.cast(last, "int64"), ops.range(first, stop), ops)), made


def strings(texts):
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return array


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("frequency", "last"), LASTS.items())
def test_steps_are_those_of_pandas(frequency, last, runtime):
    expected = around(frequency, last)
    seconds, made = times_of(frequency, [last], 1 - BACK, AHEAD + 1, runtime)
    np.testing.assert_array_equal(seconds[0], expected.as_unit("s").asi8)
    parts = parts_of(seconds[0])
    np.testing.assert_array_equal(parts["year"], expected.year)
    np.testing.assert_array_equal(parts["month"], expected.month)
    np.testing.assert_array_equal(parts["weekday"], expected.day_of_week)
    np.testing.assert_array_equal(parts["day_of_year"], expected.day_of_year - 1)
    np.testing.assert_array_equal(made[0], expected.day_of_week)


def test_days_are_those_of_numpy():
    """Of each day of the years 1 to 9999."""
    first, last = (np.datetime64(f"{year}-01-01").astype(int) for year in ("0001", "9999"))
    days = np.arange(first, last)
    dates = days.astype("datetime64[D]")
    year, month, day = date_of(days)
    np.testing.assert_array_equal(year, dates.astype("datetime64[Y]").astype(int) + 1970)
    np.testing.assert_array_equal(month, dates.astype("datetime64[M]").astype(int) % 12 + 1)
    np.testing.assert_array_equal(days_of(year, month, day), days)


@pytest.mark.parametrize("runtime", RUNTIMES)
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
def test_times_are_read_with_their_offsets(text, utc, runtime):
    seconds, _ = times_of("s", [text], 0, 1, runtime)
    assert seconds[0, 0] == np.datetime64(utc, "s").astype(int)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("frequency", "text", "message"),
    [
        ("h", "yesterday", "timestamp: expected a time such as .* got yesterday"),
        ("h", "31.05.2024 13:00", "got 31.05.2024"),
        ("h", "\v2024-05-31 13:00", "expected a time such as"),
        ("h", "2023-02-29", "got 2023-02-29"),
        ("h", "2024-13-01", "got 2024-13-01"),
        ("h", "2024-01-01 24:00", "got 2024-01-01 24:00"),
        ("h", "", "timestamp: expected a time such as"),
        ("MS", "2024-05-31", "expected a time of the spacing MS, got 2024-05-31"),
        ("B", "2024-06-01", "expected a time of the spacing B, got 2024-06-01"),
    ],
)
def test_what_is_no_time_of_the_series_is_named(frequency, text, message, runtime):
    with pytest.raises((tf.errors.InvalidArgumentError, InvalidArgument), match=message):
        times_of(frequency, ["2024-04-01", text], 0, 1, runtime)


def test_other_spacings_are_refused():
    for frequency in ("ms", "SMS", "2B"):
        with pytest.raises(ConfigError, match=f"whole seconds.* got {frequency}"):
            step_times(frequency)


@pytest.mark.parametrize("timezone", [None, "Europe/Berlin", "Australia/Lord_Howe"])
@pytest.mark.parametrize("frequency", ["h", "D"])
def test_the_calendar_is_that_of_the_training(timezone, frequency):
    """Through changes of clocks, ends of years and holidays, in histories and behind them."""
    span = pd.date_range("2019-01-01", periods=400, freq="D")
    calendar = make_calendar(span, frequency, tuple(KINDS), "DE", timezone)
    lasts = ["2019-04-01", "2020-01-01", "2020-10-26", "2028-12-20"]
    inputs = make_inputs(calendar, frequency, True, ("own", *calendar.columns))
    table = CalendarTable.parse(inputs.table.text())
    add = [
        AddCalendar("history", "whole", "timestamp", table),
        AddFutureCalendar(
            "future", "ahead", "timestamp", AHEAD, inputs.places, inputs.order, table
        ),
    ]
    values = {
        "history": np.zeros((4, BACK, 2), np.float32),
        "future": np.ones((4, AHEAD, 1), np.float32),
        "timestamp": strings(lasts),
    }
    graph = {name: tf.constant(value) for name, value in values.items()}
    for step in add:
        step.numpy(values)
        step.graph(graph)
    for whole, ahead in ((values["whole"], values["ahead"]), (graph["whole"], graph["ahead"])):
        histories, futures = np.asarray(whole), np.asarray(ahead)
        assert histories.dtype == futures.dtype == np.float32
        assert (histories[..., :2] == 0).all()
        assert (futures[..., 0] == 1).all()
        for row, last in enumerate(lasts):
            utc = pd.Timestamp(last)
            if timezone is not None:
                utc = utc.tz_localize(timezone).tz_convert("UTC").tz_localize(None)
            expected = calendar.values(around(frequency, utc))
            made = np.concatenate([histories[row, :, 2:], futures[row, :, 1:]])
            np.testing.assert_allclose(made, expected, atol=1e-6)
    refused = (tf.errors.InvalidArgumentError, InvalidArgument)
    for late, run in ((strings(["2031-12-01"]), add[1].numpy), (["2031-12-01"], add[1].graph)):
        asked = {"future": np.ones((1, AHEAD, 1), np.float32), "timestamp": late}
        with pytest.raises(refused, match=r"in the years 2018 to 2030.* got 2031-12-01"):
            run(asked)


@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Tokyo"])
def test_local_times_are_those_of_pandas(name):
    """Of all half hours of three years; those that are there twice count as the earlier ones."""
    utc = pd.date_range("2019-01-01", "2021-12-31", freq="30min")
    local = utc.tz_localize("UTC").tz_convert(name).tz_localize(None)
    zone = time_zone(name, 2018, 2022)
    seconds = utc.as_unit("s").asi8.reshape(-1, 1)
    twice = local.duplicated(keep="first")
    for ops in (Arrays, tensors()):
        found = np.asarray(zone.to_local(seconds, ops))
        np.testing.assert_array_equal(found.ravel(), local.as_unit("s").asi8)
        back = np.asarray(zone.to_utc(found, ops)).ravel()
        np.testing.assert_array_equal(back[~twice], seconds.ravel()[~twice])
        assert (back[twice] < seconds.ravel()[twice]).all()
