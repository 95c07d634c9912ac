import numpy as np
import pandas as pd
import pytest

from gru_training.data.calendar import season_length
from gru_training.data.problems import Problems
from gru_training.data.time_axis import (
    TimeCells,
    complete,
    in_order,
    infer_frequency,
    parse_times,
    time_text,
)
from gru_training.errors import DataError


def cells(texts):
    return TimeCells("f.csv", "when", texts, range(2, 2 + len(texts)))


def parsed(texts, time_format=None):
    return [time_text(time) for time in parse_times(cells(texts), time_format).times]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2020-01-01 00:10:00", "2020-01-01 00:20:00"], ["2020-01-01 00:10:00"]),
        (["1949-01", "1949-02"], ["1949-01-01 00:00:00"]),
        (["1990/1/1 0:00", "1990/1/2 0:00"], ["1990-01-01 00:00:00"]),
        (["2020-03-01T12:00:00+02:00", "2020-03-01T13:00:00+02:00"], ["2020-03-01 10:00:00"]),
        (["1749", "1750"], ["1749-01-01 00:00:00"]),
    ],
)
def test_common_ways_to_write_times(texts, expected):
    assert parsed(texts)[:1] == expected


def test_day_first_where_only_that_ascends():
    days = [f"{day:02}.{month:02}.2021" for month in (1, 2) for day in range(1, 29)]
    assert parsed(days)[1] == "2021-01-02 00:00:00"
    assert parsed(["01/02/2021", "01/03/2021"], "%d/%m/%Y")[1] == "2021-03-01 00:00:00"


@pytest.mark.parametrize("pattern", ["%d/%m/%Y", "%m/%d/%Y"])
@pytest.mark.parametrize(("frequency", "rows"), [("MS", 36), ("h", 12 * 24), ("QS", 12)])
def test_day_and_month_are_told_apart_by_even_steps(pattern, frequency, rows):
    """No day is after the twelfth, so both orders of day and month ascend."""
    times = pd.date_range("2018-04-01", periods=rows, freq=frequency)
    found = parse_times(cells(list(times.strftime(f"{pattern} %H:%M")))).times
    assert list(pd.DatetimeIndex(found)) == list(times)


def test_times_that_could_be_days_or_months():
    texts = [f"01/{number:02}/2021" for number in range(1, 13)]
    message = r"line 3, .* not as 2021-01-02 .* or 2021-02-01 .*--time-format.*got '01/02/2021'"
    with pytest.raises(DataError, match=message):
        parse_times(cells(texts))
    assert parsed(texts, "%m/%d/%Y")[1] == "2021-01-02 00:00:00"


def test_a_cell_that_is_no_time_is_named():
    with pytest.raises(DataError, match=r"f\.csv, line 3, column 'when': .*got 'soon'"):
        parsed(["2020-01-01", "soon", "2020-01-03"])
    with pytest.raises(DataError, match=r"a time like %d\.%m\.%Y .*got '2020-01-01'"):
        parsed(["2020-01-01", "2020-01-02"], "%d.%m.%Y")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["2020-01-02", "2020-01-03", "2020-01-01"], "line 4.*expected a time after 2020-01-03"),
        (["2020-01-02", "2020-01-02"], "line 3.*each time once, but line 2 has it too"),
        (["2020-02-01", "2020-01-02"], "line 3.*expected a time after 2020-02-01"),  # no 1 February
    ],
)
def test_times_that_do_not_ascend(texts, message):
    problems = Problems("f.csv")
    order = in_order(parse_times(cells(texts)).times, cells(texts), problems)
    problems.close_rows()
    with pytest.raises(DataError, match=message):
        problems.raise_errors()
    assert sorted(order) == list(range(len(set(texts))))


@pytest.mark.parametrize(
    ("frequency", "season"),
    [
        ("h", 24), ("15min", 96), ("10min", 144), ("W-SAT", 52), ("W-MON", 52), ("MS", 12),
        ("D", 7), ("B", 5), ("QS-JAN", 4), ("YS-JAN", 1), ("2h", 12), ("s", 3600), ("ME", 12),
        ("BME", 12), ("BMS", 12), ("QE-MAR", 4), ("14D", 26), ("28D", 13), ("91D", 4), ("364D", 1),
    ],
)  # fmt: skip
def test_frequencies_are_recognised_and_have_their_season(frequency, season):
    times = pd.date_range("2019-01-07", periods=50, freq=frequency)
    found = infer_frequency(times.to_numpy())
    assert list(pd.date_range(times[0], periods=50, freq=found)) == list(times)
    assert season_length(found) == season


@pytest.mark.parametrize("frequency", ["h", "W-SUN", "MS", "B", "28D"])
def test_left_out_times_are_completed(frequency):
    whole = pd.date_range("2019-01-01", periods=40, freq=frequency)
    kept = np.setdiff1d(np.arange(40), [3, 4, 5, 20])
    axis = complete(whole[kept].to_numpy(), cells([str(time) for time in whole[kept]]))
    assert list(pd.DatetimeIndex(axis.times)) == list(whole)
    np.testing.assert_array_equal(axis.places, kept)


def test_a_time_off_the_grid_is_named():
    times = list(pd.date_range("2020-01-01", periods=9, freq="h"))
    times[4] += pd.Timedelta("7min")
    texts = [str(time) for time in times]
    with pytest.raises(DataError, match=r"line 6.*every h .*got '2020-01-01 04:07:00'"):
        complete(pd.DatetimeIndex(times).to_numpy(), cells(texts))


@pytest.mark.parametrize(("frequency", "season"), [("BQE", 4), ("SME", 24), ("WOM-2TUE", 12)])
def test_other_calendar_steps_repeat_every_year(frequency, season):
    assert season_length(frequency) == season


def test_a_time_alone_that_can_be_read_in_two_ways_is_refused():
    cells = TimeCells("new.csv", "date", ["04-01-2003"], [2])
    with pytest.raises(DataError, match=r"line 2, .* in one way only, not as 2003-04-01"):
        parse_times(cells)
