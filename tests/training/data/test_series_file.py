import gzip

import numpy as np
import pandas as pd
import pytest

from gru_training.data.even_series import ExpectedSeries
from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.data.series_frame import series_of_frame
from gru_training.errors import DataError
from tests.training.tables.formats import workbook


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


DATED = pd.DataFrame(
    {
        "id": range(1, 31),
        "order_date": pd.date_range("2022-01-01", periods=30).strftime("%Y-%m-%d"),
        "region": ["north", "south"] * 15,
        "sales": np.arange(30.0) % 7,
    }
)


def both_ways(tmp_path, table):
    """Read a table from a file and from memory, which must agree."""
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    file = read_series(path)
    frame = series_of_frame(table, None, None, Problems("table"))
    assert (file.columns, file.frequency, file.notes) == (
        frame.columns, frame.frequency, frame.notes,
    )  # fmt: skip
    np.testing.assert_array_equal(file.values, frame.values)
    np.testing.assert_array_equal(file.times, frame.times)
    return file


@pytest.mark.parametrize(
    "order", [["id", "order_date", "region", "sales"], ["sales", "order_date"]]
)
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y"])
def test_dates_are_the_times_wherever_they_stand_and_whatever_they_are_called(
    tmp_path, order, form
):
    table = DATED.assign(order_date=pd.to_datetime(DATED["order_date"]).dt.strftime(form))
    series = both_ways(tmp_path, table[order])
    assert (series.columns, series.frequency) == (("sales",), "D")
    assert str(series.times[0])[:10] == "2022-01-01"
    assert "times are those of the column 'order_date' (--time-column names another)" in (
        series.notes
    )
    assert ("columns of row numbers that are not read: id" in series.notes) == ("id" in order)


@pytest.mark.parametrize("left", [slice(5, None), [*range(10), *range(13, 30)]])
def test_an_index_of_which_rows_are_gone_is_no_series(tmp_path, left):
    """As pandas writes it after a filter, to Parquet and to CSV."""
    table = DATED[["order_date", "sales"]].iloc[left]
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv")
    for name in ("t.parquet", "t.csv"):
        assert read_series(tmp_path / name).columns == ("sales",)


def test_columns_that_do_not_count_the_rows_are_read_whatever_they_are_called(tmp_path):
    table = DATED[["order_date", "id"]].assign(id=DATED["id"] ** 2)
    assert both_ways(tmp_path, table).columns == ("id",)
    assert both_ways(tmp_path, DATED[["order_date", "id"]]).columns == ("id",)  # there is no other


def test_two_columns_of_dates_must_be_told_apart(tmp_path):
    table = DATED.assign(shipped=DATED["order_date"])
    message = "got 'order_date', 'shipped'; choose one, such as --time-column order_date"
    with pytest.raises(DataError, match=message):
        both_ways(tmp_path, table)
    path = tmp_path / "t.csv"
    assert read_series(path, time_column="order_date").columns == ("sales",)
    assert both_ways(tmp_path, table.drop(columns="id")).columns == ("sales",)  # the first is taken


@pytest.mark.parametrize(
    "months", [["2000-01", "2000-02", "2000-03", "2000-04"], range(1990, 1999)]
)
def test_a_table_with_a_row_for_each_series_must_be_turned_around(tmp_path, months):
    table = pd.DataFrame(1.5, ["a", "b"], [str(month) for month in months])
    path = tmp_path / "wide.csv"
    table.to_csv(path, index_label="series")
    with pytest.raises(DataError, match="got columns called") as raised:
        read_series(path)
    with pytest.raises(DataError, match="turn the table around"):
        series_of_frame(pd.read_csv(path), None, None, Problems("table"))
    table = pd.concat([table, table])
    table.assign(step=range(len(table))).to_csv(tmp_path / "named.csv", index=False)
    assert read_series(tmp_path / "named.csv", time_column="step").columns == tuple(table.columns)
    advice = str(raised.value).rpartition("such as ")[2]
    exec(advice, {"pandas": pd, "FILE": path, "OTHER": tmp_path / "turned.csv"})
    assert read_series(tmp_path / "turned.csv").columns == ("a", "b")


def test_a_workbook_is_turned_around_as_the_error_advises(tmp_path):
    path, turned = tmp_path / "wide.xlsx", tmp_path / "turned.csv"
    months = [f"2000-{month:02}" for month in range(1, 10)]
    workbook(path, [["series", *months], ["a", *range(9)], ["b", *range(1, 10)]])
    with pytest.raises(DataError, match="turn the table around") as raised:
        read_series(path)
    advice = str(raised.value).rpartition("such as ")[2]
    exec(advice, {"pandas": pd, "FILE": path, "OTHER": turned})
    assert read_series(turned).values.tolist() == [[month, month + 1.0] for month in range(9)]


@pytest.mark.parametrize("first", ["2020-01-01,5", "01.02.2020,5", "Jan 2020,5"])
def test_a_file_without_the_names_of_its_columns_is_told(tmp_path, first):
    """Its first row was lost, and its value named the series."""
    days = pd.date_range("2020-02-01", periods=9, freq="MS").strftime("%Y-%m-%d")
    path = write(tmp_path, "\n".join([first, *(f"{day},{day[5:7]}" for day in days)]))
    with pytest.raises(DataError, match=r"got the time .*; is that a row\?"):
        read_series(path)
    named = write(tmp_path, "time,value\n" + path.read_text().partition("\n")[2])
    assert read_series(named).columns == ("value",)


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
        ("date,a\n2020-01-01,1\n2020-01-02,(20)\n2020-01-03,2\n",
         r"got '\(20\)'; write numbers without units or percent signs, and negative ones with"),
        ("date,a\n2020-01-01,1\n2020-01-02,20 %\n2020-01-03,2\n", "got '20 %'; write numbers"),
        ("date,a\n2020-01-01,1\n2020-01-02,€20\n2020-01-03,2\n", "got '€20'; write numbers"),
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


@pytest.mark.parametrize(
    ("cell", "remedy"), [("(20)", False), ("1.234.567", False), ("8 %", False), ("broken", True)]
)
def test_numbers_in_another_form_are_not_to_be_left_out(tmp_path, cell, remedy):
    path = tmp_path / "s.csv"
    path.write_text(f"date;y\n2024-01-01;1.5\n2024-01-02;{cell}\n2024-01-03;2\n2024-01-04;3\n")
    with pytest.raises(DataError, match="column 'y': expected a number") as raised:
        read_series(path)
    assert ("--drop-bad" in str(raised.value)) is remedy


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


def test_rows_of_another_spacing_do_not_continue_a_series(tmp_path):
    days = pd.date_range("2022-01-03", periods=20)
    table = pd.DataFrame({"date": days, "a": np.arange(20.0)})
    daily, path = ExpectedSeries(("a",), "D"), tmp_path / "t.csv"

    def both(rows, expected):
        rows.to_csv(path, index=False)
        series_of_frame(rows, None, None, Problems("t"), expected)
        return read_series(path, expected=expected)

    for step, spacing in ((2, "2D"), (7, "W-MON")):
        weekly = pd.DataFrame({"date": days[0] + step * (days - days[0]), "a": np.arange(20.0)})
        with pytest.raises(DataError, match=rf"expected rows every D, .* every {spacing};"):
            both(weekly, daily)
    numbered = pd.DataFrame({"t": range(0, 40, 2), "a": np.arange(20.0)})
    with pytest.raises(DataError, match=r"expected rows every step, .* got rows every 2 steps"):
        both(numbered, ExpectedSeries(("a",), "ns", numbered=True))
    with pytest.raises(DataError, match="expected the number of a step, as in the training, got"):
        both(table, ExpectedSeries(("a",), "ns", numbered=True))
    for kept in ([0, 1, 3, 5, 7], [0, 2, 5, 9, 12], [0, 7, 14]):  # gaps, or too few rows to tell
        assert len(both(table.iloc[kept], daily).times) == kept[-1] + 1


def test_newer_rows_of_many_series_name_them_as_the_error_says(tmp_path):
    names = tuple(f"shop {number}" for number in range(12))
    days = pd.date_range("2024-01-01", periods=20).strftime("%Y-%m-%d")
    rows = pd.DataFrame([(name, day, 1.5) for name in names for day in days])
    path, expected = tmp_path / "t.csv", ExpectedSeries(names, "D")
    rows.to_csv(path, index=False, header=["shop", "day", "sold"])
    with pytest.raises(DataError, match=r"'shop 9' and 2 more; .* names (\w+)$") as refused:
        read_series(path, expected=expected)
    name = str(refused.value).rpartition(" ")[2]
    rows.to_csv(path, index=False, header=[name, "day", "sold"])
    assert read_series(path, expected=expected).columns == names


def test_columns_that_newer_rows_may_lack_are_no_missing_values():
    table = pd.DataFrame({"date": pd.date_range("2022-01-03", periods=3), "a": [1, np.nan, 3]})
    expected = ExpectedSeries(("a", "b"), "D", optional=("b",))
    series = series_of_frame(table, None, None, Problems("t"), expected)
    assert series.notes == ("1 cell of the file is a missing value",)


@pytest.mark.parametrize("index", [slice(None), slice(1392, 1440)])
def test_newer_rows_without_times_do_not_continue_a_series_with_times(index):
    untimed = pd.DataFrame({"a": np.arange(1500.0)})[index]
    with pytest.raises(DataError, match=r"expected a column or an index of times, .* got a and an"):
        series_of_frame(untimed, None, None, Problems("t"), ExpectedSeries(("a",), "D"))
    years = untimed[:48].set_axis(range(1970, 2018))
    series = series_of_frame(years, None, None, Problems("t"), ExpectedSeries(("a",), "YS-JAN"))
    assert (series.times.astype("M8[Y]").astype(int) == range(48)).all()


@pytest.mark.parametrize("column", ["note", "date"])
def test_very_long_words_are_no_times_at_once(tmp_path, column):
    """Their patterns take the square of the length: hours, for these."""
    word = "a" * 1_000_000
    table = pd.DataFrame({"nr": [3.0, 1.0, 2.0], column: [word, f"{word} 2020", " " * 10**6 + "x"]})
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    with pytest.raises(DataError):
        read_series(path)
    with pytest.raises(DataError):
        series_of_frame(table, None, None, Problems("t"))
