"""Times as people have them: local, repeated, uneven, too fine."""

import re
import tracemalloc

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
    assert f"1 row with the time of another (--duplicates {kept})" in read.notes


def test_a_step_has_one_row_also_with_a_frequency(tmp_path):
    days = ("01-01 00", "01-02 00", "01-02 00", "01-03 00", "01-03 02")
    times = [f"2024-{day}:00" for day in days]
    message = (
        "line 4, column 'time': expected one row for each step of D, but line 3 is of 2024-01-02 "
        r"00:00:00 too \(see --duplicates and --resample\), got '2024-01-02 00:00' \(and 1 more "
        r"such row, line 6\)"
    )
    with pytest.raises(DataError, match=message):
        series(tmp_path, times, [0.0, 1.0, 2.0, 3.0, 4.0], frequency="D")
    read = series(tmp_path, times, [0.0, 1.0, 2.0, 3.0, 4.0], frequency="D", duplicates="last")
    assert read.values[:, 0].tolist() == [0, 2, 4]


def test_series_that_are_read_at_other_moments_share_their_steps(tmp_path):
    """A row of a table in long form has one series; no value is lost to a row of the same step."""
    path = tmp_path / "panel.csv"
    hours = pd.date_range("2024-01-01", periods=6, freq="h")
    rows = [
        f"{of},{hour + pd.Timedelta(minutes=late)},{value + late}"
        for value, hour in enumerate(hours)
        for of, late in (("a", 1), ("b", 5))
    ]
    path.write_text("\n".join(["unique_id,ds,y", *rows]))
    read = read_series(path, options=TimeOptions(frequency="h"))
    np.testing.assert_array_equal(read.values, np.arange(6.0)[:, None] + [1, 5])


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M EST", "%m/%d/%Y %I:%M:%S %p EST"])
def test_an_abbreviated_zone_needs_the_name_of_the_place(tmp_path, form):
    """EST is Eastern Standard Time, and the standard time of some other places."""
    times = pd.date_range("2024-02-01", periods=90, freq="h")
    with pytest.raises(DataError, match=r"zone is not abbreviated \(see --timezone") as refused:
        series(tmp_path, times.strftime(form))
    place = re.search(r"as (\S+)\)", str(refused.value))[1]
    for zone in (place, "America/New_York"):
        read = series(tmp_path, times.strftime(form), timezone=zone)
        assert list(read.index) == list(times.tz_localize(zone).tz_convert(None))


@pytest.mark.parametrize("numbers", [[*range(1, 53)] * 3, ["2024-05-01", "2024-05-02"] * 20])
def test_times_that_begin_again_are_not_to_be_sorted(tmp_path, numbers):
    with pytest.raises(DataError, match=r"begin again \d+ times; give numbers") as refused:
        series(tmp_path, numbers)
    assert "sort" not in str(refused.value)
    assert "each time once" not in str(refused.value)


def test_the_frequency_that_an_error_advises_reads_the_file(tmp_path):
    """Years of 52 weeks drift: in time, two months of 4 and 5 weeks are nearest to the same one."""
    weeks = np.cumsum([4, 4, 5] * 4 * 9)
    times = (pd.Timestamp("2015-01-24") + pd.to_timedelta(7 * weeks, unit="D")).strftime("%Y-%m-%d")
    with pytest.raises(DataError) as refused:
        series(tmp_path, times)
    found = re.search(r"--frequency (\S+) --resample (\S+) makes", str(refused.value))
    assert found is not None
    assert len(series(tmp_path, times, frequency=found[1], resample=found[2])) > 100


def test_the_search_for_a_frequency_to_advise_counts_no_seconds_of_years(tmp_path):
    weeks = pd.date_range("2015-01-01", periods=100, freq="7D").append(
        pd.date_range("2020-01-01", periods=20, freq="7D")
    )
    tracemalloc.start()
    with pytest.raises(DataError, match="expected times every W-THU"):
        series(tmp_path, weeks.strftime("%Y-%m-%d"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50e6


@pytest.mark.parametrize("how", ["mean", "sum", "max"])
def test_finer_rows_are_put_together(tmp_path, how):
    times = pd.date_range("2024-01-01", periods=96, freq="15min")
    values = np.random.default_rng(1).normal(size=96)
    read = series(tmp_path, times, values, frequency="h", resample=how)
    expected = getattr(values.reshape(24, 4), how)(axis=1)
    np.testing.assert_allclose(read.values[:, 0], expected)
    assert read.frequency == "h"


@pytest.mark.parametrize("frequency", ["MS", "W-SUN", "7D"])
def test_sums_of_steps_that_the_rows_do_not_cover_are_left_out(tmp_path, frequency):
    days = pd.date_range("2021-01-14", "2024-03-11").delete([40, 300])
    read = series(tmp_path, days, np.ones(len(days)), frequency=frequency, resample="sum")
    whole = pd.Series(1.0, days).resample(frequency).sum()
    whole = whole[1 - (frequency == "7D") : -1]
    assert list(read.index) == list(whole.index)
    np.testing.assert_array_equal(read.values[:, 0], whole)
    assert any("2024-03" in note and "left out" in note for note in read.notes)


def test_sums_of_office_hours_cover_their_days(tmp_path):
    hours = pd.date_range("2024-01-01", "2024-03-29 23:00", freq="h")
    hours = hours[(hours.day_of_week < 5) & (hours.hour >= 8) & (hours.hour < 18)]
    for frequency, steps in {"D": 89, "W-SUN": 13}.items():
        read = series(tmp_path, hours, np.ones(len(hours)), frequency=frequency, resample="sum")
        assert len(read) == steps
        assert not [note for note in read.notes if "left out" in note]


def test_a_series_that_ends_within_a_step_has_no_sum_of_it(tmp_path):
    days = pd.date_range("2023-01-01", "2023-12-31")
    frame = pd.DataFrame({"time": days, "sales": 1.0, "promo": 1.0})
    frame.loc[days > "2023-10-11", "sales"] = np.nan  # promotions are known of the steps ahead
    frame.to_csv(tmp_path / "s.csv", index=False)
    options = TimeOptions(frequency="MS", resample="sum")
    read = read_series(tmp_path / "s.csv", options=options)
    np.testing.assert_array_equal(read.values[:, 1], pd.Series(1, days).resample("MS").sum())
    np.testing.assert_array_equal(np.isfinite(read.values[:, 0]), np.arange(12) < 9)


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
