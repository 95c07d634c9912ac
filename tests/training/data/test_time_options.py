"""Times as people have them: local, repeated, uneven, too fine."""

import numpy as np
import pandas as pd
import pytest

from gru_training.data.problems import Problems
from gru_training.data.series_file import read_series
from gru_training.data.series_frame import series_of_frame
from gru_training.data.time_options import TimeOptions
from gru_training.errors import ConfigError, DataError


def series(tmp_path, times, values=None, **options):
    values = np.arange(len(times), dtype=float) if values is None else values
    path = tmp_path / "s.csv"
    pd.DataFrame({"time": times, "load": values}).to_csv(path, index=False)
    return read_series(path, options=TimeOptions(**options))


def test_local_times_over_both_changes_of_clocks(tmp_path):
    """A year of hours as a clock in Berlin shows them: one hour is missing, one there twice."""
    utc = pd.date_range("2024-01-01", "2024-12-31 23:00", freq="h", tz="UTC")
    local = utc.tz_convert("Europe/Berlin").strftime("%Y-%m-%d %H:%M")
    with pytest.raises(DataError, match="expected each time once"):
        series(tmp_path, local)
    read = series(tmp_path, local, timezone="Europe/Berlin")
    np.testing.assert_array_equal(read.times, utc.tz_localize(None))
    np.testing.assert_array_equal(read.values[:, 0], np.arange(len(utc)))
    assert not [note for note in read.notes if "missing" in note]


def test_an_hour_that_is_there_but_once_is_told(tmp_path):
    times = pd.date_range("2024-10-26", "2024-10-28", freq="h").strftime("%Y-%m-%d %H:%M")
    with pytest.raises(DataError, match=r"line 28, .*clocks in Europe/Berlin show twice"):
        series(tmp_path, times, timezone="Europe/Berlin")
    times = pd.date_range("2024-03-30", "2024-04-02", freq="h").strftime("%Y-%m-%d %H:%M")
    with pytest.raises(DataError, match=r"line 28, .*a time that clocks in Europe/Berlin show"):
        series(tmp_path, times, timezone="Europe/Berlin")


def test_days_are_the_same_in_every_zone(tmp_path):
    times = pd.date_range("2024-03-20", periods=20).strftime("%Y-%m-%d")
    read = series(tmp_path, times, timezone="America/New_York")
    np.testing.assert_array_equal(read.times, pd.DatetimeIndex(times))


def test_jitter_is_moved_to_the_steps(tmp_path):
    rng = np.random.default_rng(0)
    steps = pd.date_range("2024-01-01 00:30", periods=60, freq="h")
    times = steps + pd.to_timedelta(rng.integers(-120, 120, 60), unit="s")
    read = series(tmp_path, times, frequency="h")
    assert read.frequency == "h"
    np.testing.assert_allclose(
        (read.times - steps).total_seconds(), 0, atol=60
    )  # the phase is their mean
    assert "moved to the nearest step of h" in read.notes[0]
    whole = series(tmp_path, times - pd.Timedelta(minutes=30), frequency="h")
    np.testing.assert_array_equal(whole.times, steps - pd.Timedelta(minutes=30))


@pytest.mark.parametrize(("kept", "value"), [("mean", 2.0), ("first", 1.0), ("last", 3.0)])
def test_repeated_times(tmp_path, kept, value):
    times = ["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-03", "2024-01-04"]
    with pytest.raises(DataError, match="expected each time once"):
        series(tmp_path, times)
    read = series(tmp_path, times, [0.0, 1.0, 3.0, 4.0, 5.0], duplicates=kept)
    assert read.values[:, 0].tolist() == [0, value, 4, 5]
    assert f"1 rows with the time of another (--duplicates {kept})" in read.notes


@pytest.mark.parametrize("how", ["mean", "sum", "max"])
def test_finer_rows_are_put_together(tmp_path, how):
    times = pd.date_range("2024-01-01", periods=96, freq="15min")
    values = np.random.default_rng(1).normal(size=96)
    read = series(tmp_path, times, values, frequency="h", resample=how)
    expected = getattr(values.reshape(24, 4), how)(axis=1)
    np.testing.assert_allclose(read.values[:, 0], expected)
    assert read.frequency == "h"


def test_an_hour_without_a_row_is_missing_in_a_sum_too(tmp_path):
    times = pd.date_range("2024-01-01", periods=40, freq="15min")
    kept = np.r_[:8, 12:40]
    read = series(tmp_path, times[kept], np.ones(36), frequency="h", resample="sum")
    assert np.isnan(read.values[2, 0])
    assert np.nansum(read.values) == 36


def test_ends_of_months_and_business_days(tmp_path):
    ends = pd.date_range("2023-01-31", periods=24, freq="ME")
    assert series(tmp_path, ends).frequency == "ME"
    days = pd.bdate_range("2024-01-01", periods=40)
    read = series(tmp_path, days.delete(7))
    assert (read.frequency, len(read)) == ("B", 40)


def test_a_table_is_read_alike():
    times = pd.date_range("2024-01-01", periods=48, freq="30min")
    frame = pd.DataFrame({"time": times, "load": np.arange(48.0)})
    options = TimeOptions(frequency="h", resample="mean")
    read = series_of_frame(frame, None, None, Problems("table"), options=options)
    np.testing.assert_allclose(read.values[:, 0], np.arange(24) * 2 + 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timezone": "Mars"}, "--timezone must be one such as Europe/Berlin, got 'Mars'"),
        ({"frequency": "fast"}, "--frequency must be a spacing as pandas names it"),
        ({"resample": "mean"}, "--resample needs --frequency"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        TimeOptions(**options)
