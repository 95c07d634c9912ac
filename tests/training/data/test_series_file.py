import gzip

import numpy as np
import pandas as pd
import pytest

from gru_training.data.series_file import read_series
from gru_training.errors import DataError


def write(tmp_path, text, name="s.csv", encoding="utf-8"):
    path = tmp_path / name
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


DAYS = "".join(f"2020-01-{day:02},{day * day},{-day}\n" for day in range(1, 10))


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz"])
def test_reads_columns_and_spacing(tmp_path, name):
    series = read_series(write(tmp_path, "date,a,b\n" + DAYS, name))
    assert (series.name, series.columns, series.frequency) == ("s", ("a", "b"), "D")
    np.testing.assert_array_equal(series.values, [[d * d, -d] for d in range(1, 10)])
    assert series.notes == ()


def test_the_time_column_need_not_be_first(tmp_path):
    text = "a,Timestamp\n" + "".join(f"{d},2020-01-{d:02}\n" for d in range(1, 5))
    assert read_series(write(tmp_path, text)).columns == ("a",)
    text = text.replace("Timestamp", "x")
    assert read_series(write(tmp_path, text), time_column="x").columns == ("a",)
    with pytest.raises(DataError, match=r"no column 'y'; its columns are \['a', 'x'\]"):
        read_series(write(tmp_path, text), time_column="y")


def test_missing_cells_and_times_become_nan_and_are_reported(tmp_path):
    text = "date,a\n2020-01-01,1\n2020-01-02,\n2020-01-03,NA\n2020-01-06,4\n2020-01-07,5\n"
    series = read_series(write(tmp_path, text))
    np.testing.assert_array_equal(series.values[:, 0], [1, np.nan, np.nan, np.nan, np.nan, 4, 5])
    assert [note.split(" ")[0] for note in series.notes] == ["2", "2"]


def test_headers_of_windows_are_read_and_said(tmp_path):
    series = read_series(write(tmp_path, "date,T (°C),b\n" + DAYS, encoding="cp1252"))
    assert series.columns == ("T (°C)", "b")
    assert "cp1252" in series.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,a\n2020-01-01,1\n", "at least 3 rows, got 1"),
        ("date,a\n2020-01-01,1\n2020-01-02,x1\n2020-01-03,2\n",
         r"s\.csv, line 3, column 'a': expected a number or an empty cell, got 'x1'"),
        ("date,a\n2020-01-01,1\n2020-01-02,inf\n2020-01-03,2\n", "line 3, column 'a'"),
        ("date,a\n2020-01-01,1\n2020-01-02,1_0\n2020-01-03,2\n", "got '1_0'"),
        ("date,a\n2020-01-01,1\n2020-01-03,2\n2020-01-02,3\n", "line 4, column 'date'.*sort"),
        ("date,a\n2020-01-01,1\n2020-01-01,2\n2020-01-02,3\n", "line 3.*line 2 has it too"),
        ("date,a\n2020-01-01,1\n2020-01-02\n2020-01-03,1\n", "line 3: expected 2 cells"),
        ("date\n2020-01-01\n2020-01-02\n2020-01-03\n", "columns of numbers beside"),
        ("date,a,a\n" + DAYS, "two columns have the same name"),
        ("", "is empty"),
        ("date,a\0\n" + DAYS, "line 1: a NUL character"),
        ("date,a\n2020-01-01,1\n2020-01-02,\0\n2020-01-03,2\n", "line 3: a NUL character"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_series(write(tmp_path, text))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: there is no such file"):
        read_series(tmp_path / "none.csv")


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "rows", "columns", "frequency"),
    [
        ("ett/ETTh1.csv", 17_420, 7, "h"),
        ("exchange_rate/exchange_rate.csv", 7_588, 8, "D"),
        ("classic/airline-passengers.csv", 144, 1, "MS"),
        ("classic/monthly-sunspots.csv", 2_820, 1, "MS"),
        ("classic/daily-min-temperatures.csv", 3_652, 1, "D"),  # two leap days added
    ],
)
def test_real_files(real_data, file, rows, columns, frequency):
    series = read_series(real_data / file)
    assert (*series.values.shape, series.frequency) == (rows, columns, frequency)


@pytest.mark.parametrize(
    "last", ["2030-01-01 00:00:00", "2100-01-01 00:00:00", "2261-12-31 00:00:00"]
)
def test_a_time_axis_far_longer_than_its_file_is_refused(tmp_path, last):
    rows = "".join(f"2020-01-01 00:00:0{second},{second}\n" for second in range(3))
    path = write(tmp_path, f"date,a\n{rows}{last},3\n")
    message = rf"s\.csv, line 5, column 'date'.*2020-01-01 00:00:02.*steps of s.*got '{last}'"
    with pytest.raises(DataError, match=message):
        read_series(path)


@pytest.mark.parametrize("year", ["1500", "2262", "2999", "9999"])
def test_a_time_that_nanoseconds_do_not_reach_is_named(tmp_path, year):
    rows = [f"2020-01-01 00:00:0{second},{second}" for second in range(3)]
    rows.insert(0 if year == "1500" else 3, f"{year}-06-01 00:00:00,3")
    line = 2 if year == "1500" else 5
    with pytest.raises(DataError, match=rf"s\.csv, line {line}, .*expected a time.*got '{year}"):
        read_series(write(tmp_path, "date,a\n" + "\n".join(rows) + "\n"))


def test_times_farther_apart_than_nanoseconds_count_are_refused(tmp_path):
    text = "date,a\n1700-01-01,1\n1700-01-02,2\n1700-01-03,2\n2200-01-01,3\n"
    with pytest.raises(DataError, match=r"line 5.*within 290 years, got 500 years.*'2200-01-01'"):
        read_series(write(tmp_path, text))


def test_files_with_long_gaps_are_read(tmp_path):
    """Three weeks of minutes, and three more a year later."""
    parts = [pd.date_range(day, periods=30_000, freq="min") for day in ("2020-01-01", "2021-01-01")]
    times = parts[0].append(parts[1])
    text = "date,a\n" + "".join(f"{time},{row % 7}\n" for row, time in enumerate(times))
    assert len(read_series(write(tmp_path, text))) == 366 * 24 * 60 + 30_000
