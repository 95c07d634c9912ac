import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gru_serving.commands.files.series_csv import (
    Tick,
    Ticks,
    known_ticks,
    stacked,
    uneven_times,
)
from gru_serving.errors import InvalidArgument

TEXT = """time,load,wind
2024-01-01,1.5,-3
2024-01-02,,nan
"2024-01-03, noon",2e3, 4
"""


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ticks(text, columns=(), optional=()):
    Path("s.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(Ticks("s.csv", columns, optional))


def test_all_but_the_first_column_are_read_and_gaps_are_nan():
    read = ticks(TEXT)
    assert [tick.label for tick in read] == ["2024-01-01", "2024-01-02", "2024-01-03, noon"]
    history = stacked(read, "s.csv")
    assert history.dtype == np.float32
    np.testing.assert_array_equal(
        history, [[[1.5, -3], [math.nan, math.nan], [2000, 4]]], strict=False
    )


def test_columns_are_read_in_the_order_asked_for():
    np.testing.assert_array_equal(ticks(TEXT, ["wind", "load"])[0].values, [-3, 1.5])
    np.testing.assert_array_equal(ticks(TEXT, ["load"])[2].values, [2000])


def test_columns_that_may_be_missing_are_nan():
    (first, *_) = ticks(TEXT, ["rain", "load"], ["rain"])
    np.testing.assert_array_equal(first.values, [math.nan, 1.5])
    with pytest.raises(InvalidArgument, match="with the columns rain, sun; got"):
        ticks(TEXT, ["rain", "load", "sun"])


def test_rows_behind_the_last_known_value_are_left_out():
    read = ticks("time,load,wind\n1,5,\n2,,3\n3,6,2\n4,,1\n5,,\n")
    kept, note = known_ticks(read, [0])
    assert [tick.label for tick in kept] == ["1", "2", "3"]
    assert note.startswith("the last 2 rows have no value")
    assert known_ticks(read, [0, 1])[0] == read[:4]
    assert known_ticks(read[:3], [0]) == (read[:3], None)
    assert known_ticks(read[3:], [0]) == (read[3:], None)  # the server says what it needs


def test_empty_lines_are_no_rows():
    read = ticks("time,load\n\n1,2\r\n\n3,4\n\n")
    assert [(tick.label, *tick.values) for tick in read] == [("1", 2), ("3", 4)]


def test_a_mark_of_the_byte_order_is_no_part_of_the_header():
    (tick,) = ticks(b"\xef\xbb\xbfload,wind\n1,2\n", ["load"])
    assert tick.values.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (TEXT, ["rain"], "s.csv: expected a header with the column rain; got 'time,load,wind'"),
        ("ds,id,y\n1,a,2\n", ["a", "b"], "a, b; got 'ds,id,y'; make a column of each series, or"),
        ("", [], "s.csv is empty; expected a header line"),
        ("time\n1\n", [], "expected a header with a time and columns of numbers; got 'time'"),
        (TEXT + "4,5\n", [], "s.csv, line 5: expected 3 cells as in the header, got 2"),
        (
            "time,a,b,a\n1,2,3,4\n",
            [],
            "s.csv: two columns have the same name: ['time', 'a',",
        ),
        ('time,a\n1,"' + "2\n3,4\n" * 40_000, [], "s.csv, line 80001: not well-formed"),
        (TEXT + "\n\n4,5\n", [], "s.csv, line 7: expected 3 cells as in the header, got 2"),
        (TEXT.encode() + b"\0,5,6\n", [], "s.csv, line 5: a NUL character; is this a text file?"),
        (
            TEXT + "4,5,x\n",
            [],
            "s.csv, line 5, column wind: expected a number or an empty cell, got 'x'",
        ),
        (
            TEXT + "4,5,1_0\n",
            [],
            "line 5, column wind: expected a number or an empty cell, got '1_0'",
        ),
        (
            TEXT + "4,1e39,5\n",
            [],
            "line 5, column load: expected a number in the range of float32; got",
        ),
        (
            TEXT + "4,5,-inf\n",
            [],
            "line 5, column wind: expected a number or an empty cell, got '-inf'",
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text, columns, message):
    with pytest.raises(InvalidArgument) as caught:
        ticks(text, columns)
    assert message in str(caught.value)


def test_standard_input_is_read_as_a_file_is(monkeypatch):
    raw = '\ufeff"time, UTC",load\r\n"2024\r\n01",1\r\n'.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8"))
    read = [ticks(raw), list(Ticks("-"))]
    assert read[0] == read[1] == [("2024\r\n01", np.float32([1]))]


def test_a_series_needs_a_row():
    with pytest.raises(
        InvalidArgument, match="expected rows of numbers below the header; got none"
    ):
        stacked(ticks("time,load\n"), "s.csv")


def test_a_missing_value_is_written_as_in_training(tmp_path):
    """The file that a model was trained on can be sent to it."""
    from gru_training.data.series_file import read_series

    spellings = ["", "NA", "nan", "NaN", "n/a", "NULL", "null", "None", "-", "?", " ", " ? "]
    path = tmp_path / "series.csv"
    lines = [f"2020-01-{day:02},{cell}" for day, cell in enumerate([*spellings, "1.5"], start=1)]
    path.write_text("\n".join(["date,a", *lines, ""]))
    sent = stacked(Ticks(str(path)), "series.csv")[0, :, 0]
    np.testing.assert_array_equal(sent, read_series(path).values[:, 0])
    assert np.isnan(sent[:-1]).all()


@pytest.mark.parametrize("frequency", ["15min", "h", "D", "B", "W-SAT", "MS", "ME", "QS-JAN", "YS"])
@pytest.mark.parametrize("left_out", [None, 1, 14, 22])
def test_times_are_uneven_where_training_would_add_rows(tmp_path, frequency, left_out):
    from gru_training.data.series_file import read_series

    times = pd.date_range("2019-12-31", periods=24, freq=frequency)
    labels = [str(time) for number, time in enumerate(times) if number != left_out]
    path = tmp_path / "series.csv"
    lines = [f"{label},{number}" for number, label in enumerate(labels)]
    path.write_text("\n".join(["time,a", *lines, ""]))
    added = len(read_series(path)) - len(labels)
    assert added == (left_out is not None)
    said = uneven_times([Tick(label, np.zeros(1, np.float32)) for label in labels], "s.csv")
    if not added:
        assert said is None
    else:
        assert f" apart, {labels[left_out - 1]} and {labels[left_out]} are " in said
        assert "in all" not in said


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m", "%d/%m/%Y", "%b-%y", "%Y%m"])
def test_rows_whose_newest_is_the_first_are_refused(form):
    times = pd.date_range("2010-01-01", periods=60, freq="MS").strftime(form)
    ticks = [Tick(label, np.zeros(1, np.float32)) for label in times]
    assert uneven_times(ticks, "s.csv") is None
    assert f"{times[8]} and {times[10]} are " in uneven_times(ticks[:9] + ticks[10:], "s.csv")
    with pytest.raises(InvalidArgument, match=f"the newest last; got {times[-1]} in the first row"):
        uneven_times(ticks[::-1], "s.csv")


@pytest.mark.parametrize("labels", [(), ("3",), ("1", "0", "0", "1"), ("c", "b", "a")])
def test_labels_that_tell_no_order_are_left(labels):
    uneven_times([Tick(label, np.zeros(1, np.float32)) for label in labels], "s.csv")


def test_times_that_go_back_are_uneven_and_labels_without_times_are_not():
    def said(*labels):
        return uneven_times([Tick(label, np.zeros(1, np.float32)) for label in labels], "s.csv")

    days = [f"2024-01-{day:02}" for day in (1, 2, 3, 3, 4, 5, 6, 5)]
    assert "2024-01-03 and 2024-01-03 are 0:00:00; uneven steps in all: 2." in said(*days)
    for labels in ((), ("2024-01-01",), ("a", "b", "d"), ("1", "2", "9"), ("2024-01-01", "", "x")):
        assert said(*labels) is None
