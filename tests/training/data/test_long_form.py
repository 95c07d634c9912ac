"""Tables with a row for each series and time, from files and in memory."""

import numpy as np
import pandas as pd
import pytest

from gru_training.data.even_series import ExpectedSeries
from gru_training.data.long_form import LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.data.series_frame import series_of_frame
from gru_training.data.time_options import TimeOptions
from gru_training.errors import DataError, ForeignDataError
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.series_check import usable_series
from gru_training.forecasting.sets import load_series


def table():
    """Three series of unequal length, in no order: b begins late, c ends early, a has a gap."""
    times = pd.date_range("2024-01-01", periods=8)
    parts = {"a": [0, 1, 2, 4, 5, 6, 7], "b": [3, 4, 5, 6, 7], "c": [0, 1, 2, 3]}
    rows = [
        {"unique_id": name, "ds": times[step], "y": 10 * number + step, "promo": step % 2}
        for number, (name, steps) in enumerate(parts.items())
        for step in steps
    ]
    frame = pd.DataFrame(rows)
    return frame.sample(frac=1, random_state=3).sort_values("unique_id", kind="stable")


def expected():
    wide = table().pivot(index="ds", columns="unique_id", values="y")
    return wide.asfreq("D")


def check(series):
    wide = expected()
    assert set(series.columns) == {"a", "b", "c"}
    assert series.frequency == "D"
    assert series.panel
    np.testing.assert_array_equal(series.times, wide.index)
    for name in "abc":
        np.testing.assert_array_equal(series.values[:, series.column(name)], wide[name])


def test_a_file_and_a_table_give_the_same_series(tmp_path):
    path = tmp_path / "sales.csv"
    table().to_csv(path, index=False)
    series = read_series(path)
    check(series)
    assert "columns that are not read: promo" in series.notes
    check(series_of_frame(table(), None, None, Problems("table")))


def test_ids_of_which_one_is_missing_stay_whole_numbers():
    """Pandas makes floats of them."""
    frame = table().replace({"unique_id": {"a": 7, "b": 12, "c": None}})
    frame = frame.assign(unique_id=frame["unique_id"].astype(float))
    problems = Problems("table", drop_bad=True)
    assert set(series_of_frame(frame, None, None, problems).columns) == {"7", "12"}


def test_columns_of_other_names_are_named(tmp_path):
    frame = table().rename(columns={"unique_id": "product", "y": "sold"})
    path = tmp_path / "sales.csv"
    frame.to_csv(path, index=False)
    check(read_series(path, long=LongColumns("product", "sold")))
    with pytest.raises(ForeignDataError, match=r"expected --value-column .* one of sold, promo"):
        read_series(path, long=LongColumns("product"))
    with pytest.raises(ForeignDataError, match=r"--id-column: .* has no column 'shop'"):
        read_series(path, long=LongColumns("shop", "sold"))
    with pytest.raises(DataError, match="--id-column product"):
        read_series(path)


def test_newer_rows_are_brought_into_the_order_of_the_model(tmp_path):
    path = tmp_path / "sales.csv"
    table().to_csv(path, index=False)
    wanted = ExpectedSeries(("c", "d", "a"), "D")
    for series in (
        read_series(path, expected=wanted),
        series_of_frame(table(), None, None, Problems("table"), wanted),
    ):
        assert series.columns == (*wanted.columns, "b")  # which the model does not know
        np.testing.assert_array_equal(series.values[:, 0], expected()["c"])
        assert np.isnan(series.values[:, 1]).all()
        np.testing.assert_array_equal(series.values[:, 2], expected()["a"])


def test_a_time_that_a_series_has_twice_is_named(tmp_path):
    frame = table()
    path = tmp_path / "sales.csv"
    pd.concat([frame, frame.iloc[[2]]]).to_csv(path, index=False)
    with pytest.raises(DataError, match=rf"line {len(frame) + 2}: expected each time of a series "):
        read_series(path)
    series = read_series(path, problems=Problems(str(path), drop_bad=True))
    check(series)


def test_a_row_without_the_name_of_its_series_or_without_a_time_is_named(tmp_path):
    path = tmp_path / "sales.csv"
    for column, said in (("unique_id", "expected the name of a series"), ("ds", "expected a time")):
        frame = table().astype(object)
        extra = frame.iloc[[2]].copy()
        extra[column] = None
        frame = pd.concat([frame, extra], ignore_index=True)
        frame.to_csv(path, index=False)
        with pytest.raises(DataError, match=rf"line {len(frame) + 1}.*: {said}"):
            read_series(path)
        check(read_series(path, problems=Problems(str(path), drop_bad=True)))
        problems = Problems("table", unit="row")
        series_of_frame(frame, None, None, problems)
        assert [f"row {len(frame) - 1}" in each and said in each for each in problems.errors] == [
            True
        ]
        check(series_of_frame(frame, None, None, Problems("table", drop_bad=True)))


def test_a_cell_that_is_no_number_is_named(tmp_path):
    frame = table().astype({"y": object})
    frame.iloc[3, 2] = "many"
    path = tmp_path / "sales.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(DataError, match=r"line 5, column 'y': expected a number .*got 'many'"):
        read_series(path)


def test_named_columns_are_not_taken_for_the_time(tmp_path):
    """Where no name tells which column has the times, those of other flags are left out."""
    names = {"unique_id": "product", "ds": "sold on", "y": "amount"}
    frame = table().rename(columns=names)[["product", "amount", "sold on"]]
    path = tmp_path / "sales.csv"
    frame.to_csv(path, index=False)
    long = LongColumns("product", "amount")
    check(read_series(path, long=long))
    check(series_of_frame(frame, None, None, Problems("table"), long=long))
    named = table()[["unique_id", "y", "ds"]].rename(columns={"ds": "sold on"})
    named.to_csv(path, index=False)
    check(read_series(path))


def test_target_names_the_column_of_values_or_some_series(tmp_path):
    frame = table().assign(other=1.5)
    path = tmp_path / "sales.csv"
    frame.to_csv(path, index=False)
    for targets, forecast in ((("y",), "abc"), (("b",), "b")):
        config = SeriesConfig(path, target=targets, lookback=2, horizon=1)
        series = load_series(config, Problems(str(path)))
        check(series)
        used, shape, _ = usable_series(series, config, Problems(str(path)))
        assert {used.columns[place] for place in shape.targets} == set(forecast)
        check(series_of_frame(frame, None, None, Problems("table"), long=config.long))
    renamed = frame.rename(columns={"y": "sold"})
    renamed.to_csv(path, index=False)
    config = SeriesConfig(path, target=("sold",))
    check(load_series(config, Problems(str(path))))
    for targets in (("z",), ("y", "promo")):
        frame.to_csv(path, index=False)
        long = LongColumns(targets=targets)
        with pytest.raises(ForeignDataError, match=f"--target: .* no series '{targets[0]}'"):
            read_series(path, long=long)
        with pytest.raises(ForeignDataError, match=f"--target: .* no series '{targets[0]}'"):
            series_of_frame(frame, None, None, Problems("table"), long=long)


def test_columns_of_words_that_nothing_reads_are_noted_and_left(tmp_path):
    """A weather report for each row, several of them at some times: `--duplicates mean` says so."""
    times = pd.date_range("2024-01-01", periods=20, freq="h").repeat(2)
    rows = len(times)
    frame = pd.DataFrame(
        {
            "weather": ["rain", "fog"] * (rows // 2),
            "date_time": times,
            "holiday": ["New Year", *[None] * (rows - 1)],
            "traffic": np.arange(rows),
        }
    )
    path = tmp_path / "traffic.csv"
    frame.to_csv(path, index=False)
    mean = TimeOptions(duplicates="mean")
    note = "columns of words that are not read: weather, holiday"
    for series in (
        read_series(path, "date_time", options=mean, read=("traffic",)),
        series_of_frame(frame, "date_time", None, Problems("table"), options=mean),
    ):
        assert series.columns == ("traffic",)
        np.testing.assert_array_equal(series.values[:, 0], np.arange(20) * 2 + 0.5)
        assert note in series.notes
    with pytest.raises(DataError, match=r"told apart by 'weather'.* or --duplicates mean, if"):
        read_series(path, "date_time")
    once = frame.drop_duplicates("date_time")
    once.to_csv(path, index=False)
    assert note in read_series(path, "date_time").notes
    with pytest.raises(DataError, match=r"line 2, column 'weather': expected a number"):
        read_series(path, "date_time", read=("weather", "traffic"))
    once.drop(columns="traffic").to_csv(path, index=False)
    with pytest.raises(ForeignDataError, match="column 'weather': expected a number"):
        read_series(path, "date_time")


def sales_of_stores():
    """Two stores sell two items, a row for each on each day."""
    days = pd.date_range("2024-01-01", periods=30)
    index = pd.MultiIndex.from_product([days, (1, 2), ("a", "b")], names=["date", "store", "item"])
    return pd.DataFrame({"sales": np.arange(len(index))}, index).reset_index()


@pytest.mark.parametrize(
    ("kept", "apart"),
    [(["store", "item"], r"'store' and 'item'; .*join these to one column"),
     (["store"], "'store'; .*--id-column store"), (["item"], "'item'; .*--id-column item")],
)  # fmt: skip
def test_the_columns_that_tell_rows_of_a_time_apart_are_named(tmp_path, kept, apart):
    frame, path = sales_of_stores().drop_duplicates(["date", *kept]), tmp_path / "s.csv"
    frame = frame[["date", *kept, "sales"]]
    for numbered in (frame, frame.replace({"item": {"a": 1, "b": 2}})):
        numbered.to_csv(path, index=False)
        with pytest.raises(DataError, match=f"told apart by {apart}"):
            read_series(path)


def test_rows_of_a_series_and_time_are_not_left_out(tmp_path):
    frame, path = sales_of_stores(), tmp_path / "s.csv"
    frame.to_csv(path, index=False)
    long = LongColumns("item", "sales")
    with pytest.raises(DataError, match=r"60 of 120 rows; .*--resample") as refused:
        read_series(path, long=long)
    assert "--drop-bad" not in str(refused.value)
    whole = frame.groupby(["date", "item"])["sales"].sum().unstack()
    options = TimeOptions(frequency="D", resample="sum")
    read = read_series(path, long=long, options=options)
    np.testing.assert_array_equal(read.values, whole[list(read.columns)])
    read = read_series(path, long=long, options=TimeOptions(duplicates="mean"))
    np.testing.assert_array_equal(read.values, whole[list(read.columns)] / 2)
