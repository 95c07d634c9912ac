import re

import numpy as np
import pandas as pd
import pytest

from gru_training.errors import DataError, ForeignDataError
from gru_training.forecasting.check import check_forecasting
from gru_training.forecasting.config import ForecasterConfig, ForecastingConfig, SeriesConfig
from tests.training.conftest import write_waves
from tests.training.forecasting.reading import load_forecasting_data

MODEL = ForecasterConfig(units=4, segment=6)


def config(path, **settings):
    return ForecastingConfig(
        data=SeriesConfig(path, **{"lookback": 24, "horizon": 6, **settings}), model=MODEL
    )


def table(rows=300):
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=rows), "b": rng.normal(size=rows)}
    index = pd.date_range("2021-05-01", periods=rows, freq="h", name="time")
    return pd.DataFrame(
        {name: map(str, values) for name, values in columns.items()}, index.map(str)
    )


def write(path, frame):
    frame.to_csv(path, index_label="time")
    return path


@pytest.fixture
def spoilt(tmp_path):
    """A table with one of each problem, and the line of each."""
    frame = table()
    frame["flat"], frame["empty"] = "7", ""
    frame.iloc[10, 0], frame.iloc[20, 1], frame.iloc[21, 1] = "x1", "soon", "later"
    times = list(frame.index)
    times[30], times[41] = "no time", times[40]
    times[50], times[51] = times[51], times[50]
    times[60] = times[60].replace(":00:00", ":07:00")
    frame.index = times
    return write(tmp_path / "s.csv", frame.drop(index=times[100:104]))


def test_all_problems_come_at_once_with_counts_and_first_lines(spoilt):
    found = check_forecasting(config(spoilt))
    errors = [error.replace(f"{spoilt}, ", "") for error in found.errors]
    starts = [
        r"line 53, column 'time': expected a time after 2021-05-03 03:00:00 of a line before.*sort",
        r"line 12, column 'a': expected a number or an empty cell, got 'x1'$",
        r"line 22, column 'b': expected .*got 'soon' \(and 1 more such cell, line 23\)$",
        r"line 32, column 'time': expected a time \(see --time-format\), got 'no time'$",
        r"line 43, column 'time': expected each time once, but line 42 has it too",
        r"line 62, column 'time': expected times every h .*:07:00'$",
        r"column 'empty': expected values in the training rows",
    ]
    assert len(errors) == len(starts)
    for error, start in zip(errors, starts, strict=True):
        assert re.match(start, error), error
    assert set(found.remedies) == {"--drop-bad", "--sort-rows"}
    assert found.data is None
    with pytest.raises(DataError, match="problems keep it from"):
        load_forecasting_data(config(spoilt).data)


def test_without_what_is_dropped_the_series_is_as_a_clean_file_has_it(spoilt, tmp_path):
    found = check_forecasting(config(spoilt, drop_bad=True, sort_rows=True))
    assert found.errors == ()
    data = load_forecasting_data(config(spoilt, drop_bad=True, sort_rows=True).data)
    expected = table().astype(float)
    expected.iloc[10, 0] = expected.iloc[20, 1] = expected.iloc[21, 1] = np.nan
    expected.iloc[[50, 51]] = expected.iloc[[51, 50]].to_numpy()  # two times were swapped
    expected.iloc[[30, 41, 60, 100, 101, 102, 103]] = np.nan
    assert data.series.columns == ("a", "b")
    np.testing.assert_array_equal(data.series.values, expected.to_numpy())
    notes = "\n".join(data.series.notes)
    for said in (
        "rows sorted by time (--sort-rows): 1 row came after a later one, line 53",
        "2 cells read as missing (--drop-bad), lines 22, 23, column 'b'",
        "1 row dropped (--drop-bad), line 43, column 'time': expected each time once",
        "constant, and forecast as they are: flat (7)",
        "column 'empty' dropped (--drop-bad)",
    ):
        assert said in notes
    assert found.notes[:-1] == data.series.notes
    assert found.notes[-1].startswith("rough intervals: about 6 validation windows without overlap")


@pytest.mark.parametrize("value", [5000.0, 1e9])
def test_a_value_far_from_all_others_is_noted(tmp_path, value):
    frame = table()
    frame.iloc[-2, 0] = str(value)
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    (note,) = (note for note in notes if "far from all other values" in note)
    assert note.startswith(f"column 'a': {value:g} in row 299 is far")
    frame.iloc[::7, 0] = str(value)  # which is no error any more
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    assert not [note for note in notes if "far from" in note]


@pytest.mark.parametrize("value", ["-999", "-9999.0", "99999"])
def test_numbers_that_stand_for_a_missing_value_are_noted_however_many(tmp_path, value):
    frame = table()
    frame.iloc[5::9, 0] = value
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    (note,) = (note for note in notes if "far from all other values" in note)
    assert note.startswith(f"column 'a': {float(value):g} in row 6 is far")


def test_a_run_of_equal_values_is_noted_where_values_differ(tmp_path):
    frame = table()
    frame.iloc[100:120, 0] = "0"
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    (note,) = (note for note in notes if "all are" in note)
    assert note.startswith("column 'a': rows 101 to 120 all are 0; leave the cells empty")
    frame.iloc[100:120:5, 0] = "0.5"  # too short to be told from chance
    frame.iloc[200:300:2, 1] = frame.iloc[201:300:2, 1].to_numpy()  # as many values do
    frame.iloc[200:220, 1] = "1"
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    assert not [note for note in notes if "all are" in note]


def test_values_in_another_unit_are_noted(tmp_path):
    frame = table().astype(float)
    frame["a"] = 2 + np.sin(np.arange(len(frame)))
    for factor, told in ((1000.0, True), (1 / 1000, True), (20.0, False)):
        changed = frame.copy()
        changed.loc[changed.index[150:], "a"] *= factor
        changed.iloc[140, 0] = np.nan
        notes = check_forecasting(config(write(tmp_path / "s.csv", changed))).notes
        shown = [note for note in notes if note.endswith("are all values in the same unit?")]
        assert len(shown) == told
        assert all(note.startswith("column 'a': about ") for note in shown)
        assert all(" before row 151 and " in note for note in shown)
    growing = pd.DataFrame({"a": np.exp(np.arange(300) / 10.0)}, frame.index)
    growing["b"] = np.where(np.arange(300) < 150, 0.0, 1000 + np.arange(300))  # begins to be sold
    notes = check_forecasting(config(write(tmp_path / "s.csv", growing))).notes
    assert not [note for note in notes if "same unit" in note]


def test_inputs_that_may_be_known_ahead_are_noted_and_the_advice_reads_them(tmp_path):
    frame = table()
    frame.iloc[-5:, 0] = ""
    path = write(tmp_path / "s.csv", frame)
    (note,) = (note for note in check_forecasting(config(path)).notes if "--future" in note)
    assert note.startswith("the last 5 rows have no value of a: leave out of the file what ")
    names = tuple(note.partition("--future ")[2].split())
    found = check_forecasting(config(path, future=names))
    assert found.errors == ()
    assert len(load_forecasting_data(config(path, future=names).data).series.ahead) == 5
    assert not [note for note in found.notes if "--future" in note]
    assert not [
        note for note in check_forecasting(config(path, target=("b",))).notes if "last" in note
    ]
    for number in range(11):
        frame[f"shop{number}"] = frame["b"]  # more than a line has room for
    (note,) = (
        note for note in check_forecasting(config(write(path, frame))).notes if "--future" in note
    )
    assert note.endswith("--future and their names")


def test_rows_of_the_steps_ahead_are_told_from_missing_values(tmp_path):
    frame = table()
    frame.loc[frame.index[-6:], "a"] = ""
    path = write(tmp_path / "s.csv", frame)
    found = check_forecasting(config(path, target=("a",), future=("b",)))
    said = "the last 6 rows without a value of a: known inputs of the steps to forecast"
    assert said in found.notes
    assert not [note for note in check_forecasting(config(path)).notes if note == said]


def test_a_known_input_of_words_is_not_helped_by_dropping_its_cells(tmp_path):
    path = write(tmp_path / "s.csv", table().assign(sky="cloud"))
    assert check_forecasting(config(path, target=("a",), future=("sky",))).remedies == ()


def test_days_of_the_week_without_a_value_are_noted(tmp_path):
    frame = table(100)
    frame.index = pd.date_range("2024-01-01", periods=100).map(str)
    days = pd.to_datetime(frame.index).day_name()
    path = write(tmp_path / "s.csv", frame[days != "Sunday"])
    (note,) = (note for note in check_forecasting(config(path)).notes if "no value on" in note)
    assert note.startswith("no value on Sundays: forecasts have these days, too; ")
    frame[days == "Sunday"] = "0"  # as it advises
    path = write(tmp_path / "s.csv", frame)
    assert not [note for note in check_forecasting(config(path)).notes if "no value on" in note]


def test_gaps_are_counted_and_the_longest_is_named(tmp_path):
    frame = table()
    path = write(tmp_path / "s.csv", frame.drop(index=frame.index[[10, 50, 51, 52, 90]]))
    note, _ = check_forecasting(config(path)).notes
    assert note == (
        "5 times are missing from the file and were added as missing values, in 3 gaps, the "
        f"longest of 3 from {frame.index[50]}"
    )


def test_a_short_series_says_what_is_needed_and_what_is_there(tmp_path):
    found = check_forecasting(config(write(tmp_path / "s.csv", table(40))))
    (error,) = found.errors
    assert "the train part has 26 of 40 rows, expected at least 30 (look-back 24 + " in error
    assert error.endswith("; leave out --lookback")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lookback": 5}, "--segment must be at most the look-back of 5 steps, got 6"),
        ({"season": 211}, "expected a season of at most the 210 training rows, got 211"),
    ],
)
def test_settings_that_do_not_fit_the_series(tmp_path, settings, message):
    found = check_forecasting(config(write(tmp_path / "s.csv", table()), **settings))
    assert message in found.errors[0]


def test_a_column_that_cannot_be_calibrated(tmp_path):
    frame = table(2400)
    frame.iloc[1680:1917, 0] = ""  # of the validation rows, 1680 to 1919, the last three remain
    (error,) = check_forecasting(config(write(tmp_path / "s.csv", frame))).errors
    assert "column 'a': expected a value 1 steps ahead in some validation window" in error


def test_the_table_tells_each_series(tmp_path):
    found = check_forecasting(config(write_waves(tmp_path / "waves.csv")))
    assert found.summary.startswith("320 hourly rows from 2021-05-01 00:00:00 to 2021-05-14 07:")
    up, down = found.table().rows
    assert up[:5] == ("up", "317", "3", "2021-05-01", "2021-05-14 07:00:00")
    assert down[:3] == ("down", "320", "0")
    values = pd.read_csv(tmp_path / "waves.csv")["up"].dropna()
    assert [float(cell) for cell in up[5:]] == pytest.approx(
        [values.min(), values.median(), values.max()], rel=1e-4
    )


def test_steps_are_shown_as_numbers(tmp_path):
    frame = table().assign(time=range(7, 307)).set_index("time")
    found = check_forecasting(config(write(tmp_path / "s.csv", frame)))
    assert [row[3:5] for row in found.table().rows] == [("7", "306"), ("7", "306")]
    assert found.summary.startswith("300 rows from 7 to 306; ")


def test_uneven_times_are_read_as_the_error_says(tmp_path):
    """Periods of four, four and five weeks, as retailers count months."""
    frame = table(rows=120)
    ends = pd.Timestamp("2015-01-31") + pd.to_timedelta(np.cumsum([28, 28, 35] * 40), unit="D")
    path = write(tmp_path / "s.csv", frame.set_index(ends.map(str)))
    with pytest.raises(DataError) as refused:
        load_forecasting_data(config(path).data)
    advice = re.search(r"expected times every MS \(--frequency (\S+) moves", str(refused.value))
    data = load_forecasting_data(config(path, frequency=advice[1]).data)
    assert len(data.raw) == 120
    assert not np.isnan(data.raw).any()  # no two periods share a month


def test_texts_are_another_task_s(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,body\n" + "".join(f"{i},some words\n" for i in range(9)))
    with pytest.raises(ForeignDataError, match="column 'body': expected a number"):
        check_forecasting(config(path))


def test_one_row_for_each_series_and_time_is_recognised(tmp_path):
    path = tmp_path / "long.csv"
    times = pd.date_range("2021-01-01", periods=50).strftime("%Y-%m-%d")
    rows = [f"S{k},{time},{k}.{row % 7}\n" for k in range(3) for row, time in enumerate(times)]
    path.write_text("unique_id,ds,y\n" + "".join(rows))
    found = check_forecasting(config(path))
    assert found.errors == ()
    assert [row[0] for row in found.table().rows] == ["S0", "S1", "S2"]
    path.write_text("shop,ds,y\n" + "".join(rows))
    (error,) = check_forecasting(config(path)).errors
    assert "got several rows for a time, told apart by 'shop'" in error
    assert "--id-column shop --value-column NAME" in error
    assert check_forecasting(config(path, id_column="shop")).errors == ()


def test_remarks_on_many_columns_are_one_line(tmp_path):
    frame = table()
    frame = pd.concat([frame["a"].rename(f"s{number}") for number in range(12)], axis=1)
    frame.iloc[:180, :10] = ""
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    assert [note for note in notes if "training rows" in note] == [
        f"column 's{number}': 86% of its training rows are missing" for number in range(10)
    ]
    frame.iloc[:180] = ""
    notes = check_forecasting(config(write(tmp_path / "s.csv", frame))).notes
    assert [note for note in notes if "training rows" in note] == [
        "column 's0' and 11 others like it: 86% of its training rows are missing"
    ]


def test_a_series_of_two_seasons_is_read_as_far_as_it_has_room(tmp_path):
    times = pd.date_range("2022-01-02", periods=120, freq="W-SUN").map(str)
    path = write(tmp_path / "weeks.csv", table(120).set_axis(times))
    found = check_forecasting(ForecastingConfig(data=SeriesConfig(path, horizon=8)))
    assert not found.errors  # three seasons would be 156 of 84 training rows
    data = load_forecasting_data(SeriesConfig(path, horizon=8))
    assert data.season == 52
    assert data.shape.lookback == 38  # 84 - 38 - 8 + 1 windows: one more than steps read
    longer = load_forecasting_data(SeriesConfig(path, horizon=8, season=4))
    assert longer.shape.lookback == 12
