import gzip

import numpy as np
import pytest

from training.errors import DataError
from training.series_file import read_series


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


def test_latin_1_headers_are_read_and_said(tmp_path):
    series = read_series(write(tmp_path, "date,T (°C),b\n" + DAYS, encoding="latin-1"))
    assert series.columns == ("T (°C)", "b")
    assert "Latin-1" in series.notes[0]


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
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_series(write(tmp_path, text))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*none\.csv"):
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
