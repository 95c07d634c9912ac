"""Tables as pandas, R, Excel and statistical offices write their times: all are one series."""

import calendar
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gru_training.data.long_form import LongColumns
from gru_training.data.problems import Problems
from gru_training.data.series import people_read
from gru_training.data.series_file import read_series
from gru_training.data.series_frame import series_of_frame
from gru_training.data.time_options import TimeOptions
from gru_training.errors import ConfigError, DataError

MONTHS = ("Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez")


SPANISH = ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
           "octubre", "noviembre", "diciembre")  # fmt: skip


def _excel(time):
    return (time - pd.Timestamp("1899-12-30")) / pd.Timedelta(days=1)


def _week(time, form):
    year, week, _ = time.isocalendar()
    return form.format(year=year, week=week)


def _quarter(form):
    return lambda time: form.format(year=time.year, short=time.year % 100, quarter=time.quarter)


def _strftime(form):
    return lambda time: time.strftime(form)


def _hour_24(form):
    """Write midnight as the end of a day."""

    def write(time):
        day = time - pd.Timedelta(1, "ns")
        return f"{day:{form}}".format(f"{time.hour or 24:02}")

    return write


def _period(form):
    return lambda time: form.format(time, time + pd.Timedelta(days=6))


def _since_1970(unit):
    return lambda time: str(time.value // pd.Timedelta(1, unit).value)


WAYS = {
    "D": [
        *map(_strftime, ("%Y-%m-%d", "%Y%m%d", "%Y-%j", "%Y%j", "%d %b %Y", "%d-%b-%y")),
        *map(_strftime, ("%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d", "%a %d %B %Y", "%Y-%m-%dT%H:%M:%SZ")),
        *map(_strftime, ("%d.%m.%y", "%m/%d/%y", "%y-%m-%d", "%y/%m/%d", "%y.%m.%d", "%y%m%d")),
        *map(_since_1970, ("s", "ms", "us", "ns")),
        lambda time: f"{time.timestamp()}",
        lambda time: f"{_excel(time):g}",
        lambda time: f"{time.day}. {MONTHS[time.month - 1]} {time.year}",
        lambda time: f"{time.day} de {SPANISH[time.month - 1]} de {time.year}",
        lambda time: f"{time.year}年{time.month}月{time.day}日",
        lambda time: f"{time.year}년 {time.month}월 {time.day}일",
    ],
    "h": [
        *map(_strftime, ("%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%Y%m%d%H", "%Y%m%d%H%M%S")),
        lambda time: str(time).removesuffix(" 00:00:00"),  # as R writes midnight
        *map(_hour_24, ("%Y-%m-%d {}:00", "%d.%m.%Y {}:00", "%Y-%m-%dT{}:00:00")),
        lambda time: f"{_excel(time):.10f}",
        _strftime("%m/%d/%Y %I:%M:%S %p"),
        *map(_since_1970, ("s", "ms")),
    ],
    "W-MON": [
        lambda time: _week(time, "{year}-W{week:02}"),
        lambda time: _week(time, "{year}W{week:02}"),
        lambda time: _week(time, "{year} W{week:02}"),
        lambda time: _week(time, "{year}-W{week:02}-1"),
        lambda time: _week(time, "W{week}/{year}"),
        lambda time: _week(time, "KW {week} {year}"),
        *map(_period, ("{:%Y-%m-%d}/{:%Y-%m-%d}", "{:%Y-%m-%d} - {:%Y-%m-%d}")),
        *map(_period, ("{:%d/%m/%Y} - {:%d/%m/%Y}", "{:%m/%d/%Y} to {:%m/%d/%Y}")),
        *map(_period, ("{:%d.%m.%Y} – {:%d.%m.%Y}", "{:%d %b %Y} - {:%d %b %Y}")),
    ],
    "MS": [
        *map(_strftime, ("%Y-%m", "%Y/%m", "%Y.%m", "%Y%m", "%YM%m", "%m/%Y", "%m.%Y", "%m-%Y")),
        *map(_strftime, ("%b-%y", "%y-%b", "%b %Y", "%Y %b", "%B %Y", "%b/%y", "%Y-%m-15")),
        lambda time: f"{MONTHS[time.month - 1]} {time.year}",
        lambda time: f"{SPANISH[time.month - 1]} de {time.year}",
        lambda time: f"{time.year}年{time.month}月",
        *map(_strftime, ("%Y - %m", "%Y / %m")),  # which are no periods
        lambda time: f"{time.year + (time.month - 1) / 12:.3f}",
        lambda time: f"{time:%Y-%m}-{min(30, time.days_in_month)}",
    ],
    "QS": [
        *map(
            _quarter,
            (
                "Q{quarter} {year}", "{year}Q{quarter}", "{year}-Q{quarter}", "{year} Q{quarter}",
                "Q{quarter}-{year}", "Q{quarter}/{short:02}", "{year}:Q{quarter}",
                "{quarter}Q{year}", "{year}q{quarter}", "T{quarter} {year}", "{year}-T{quarter}",
                "{year}K{quarter}", "{year} - Q{quarter}", "{year}.{quarter}", "{year}-{quarter}",
                "{quarter}/{year}",
            ),
        ),
        lambda time: f"{time.year + (time.quarter - 1) / 4:g}",
    ],
    "YS": [
        *map(_strftime, ("%Y", "FY%Y", "FY%y", "%Y-01-01")),
        lambda time: f"{time.year}.0",
        lambda time: f"{time.year}/{(time.year + 1) % 100:02}",
        lambda time: f"{time.year} - {(time.year + 1) % 100:02}",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("frequency", "write"),
    [(frequency, write) for frequency, ways in WAYS.items() for write in ways],
)
@settings(max_examples=4, deadline=None)
@given(begin=st.dates(date(1990, 1, 1), date(2008, 1, 1)), rows=st.integers(40, 60))
def test_a_table_is_the_same_series_however_its_times_are_written(
    tmp_path_factory, frequency, write, begin, rows
):
    times = pd.date_range(begin, periods=rows, freq=frequency)
    path = tmp_path_factory.mktemp("written") / "s.csv"
    pd.DataFrame({"when": [write(time) for time in times], "y": np.arange(rows)}).to_csv(
        path, index=False
    )
    read = read_series(path)
    assert list(read.index.tz_localize(None)) == list(times)
    np.testing.assert_array_equal(read.values[:, 0], np.arange(rows))


@pytest.mark.parametrize("step", [1, -1], ids=["oldest first", "newest first"])
@pytest.mark.parametrize(
    ("frequency", "form"),
    [
        ("MS", "%b-%y"),
        *(("7D", form) for form in ("%m/%d/%y", "%d.%m.%y", "%y-%m-%d", "%d-%b-%y", "%y%m%d")),
        ("YS", "FY%y"),
    ],
)
def test_years_of_two_digits_are_in_the_order_of_the_rows(tmp_path, frequency, form, step):
    """Python's own years of two digits end in 2068, which splits long series of the past."""
    times = pd.date_range("1960-01-01", "2009-12-31", freq=frequency)
    path = tmp_path / "s.csv"
    frame = pd.DataFrame({"when": times.strftime(form), "y": np.arange(len(times))})
    frame[::step].to_csv(path, index=False)
    read = read_series(path, problems=Problems(str(path), sort_rows=True))
    assert list(read.index) == list(times)
    np.testing.assert_array_equal(read.values[:, 0], np.arange(len(times)))


@pytest.mark.parametrize("form", ["%Y-%-m", "%-m/%Y", "%Y-%m"])
def test_few_months_are_no_quarters(tmp_path, form):
    months = pd.date_range("2023-01-01", periods=5, freq="MS")
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": months.strftime(form), "y": range(5)}).to_csv(path, index=False)
    assert list(read_series(path).index) == list(months)


@pytest.mark.parametrize(
    "texts",
    [
        ["00:00", "00:05", "00:10", "00:15"],  # of no day
        ["05-Jan", "06-Jan", "07-Jan", "08-Jan"],  # days of no year
        ["3/4", "3/5", "3/6", "3/7"],
        ["Jan", "Feb", "Mar", "Apr"],
        ["now", "today", "now", "today"],
    ],
)
def test_times_without_a_year_are_none(tmp_path, texts):
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": texts, "y": range(4)}).to_csv(path, index=False)
    with pytest.raises(DataError, match="expected a time with its year") as raised:
        read_series(path)
    assert "--drop-bad" not in str(raised.value)  # which would leave none


@pytest.mark.parametrize(
    ("columns", "frequency"),
    [
        (lambda t: {"year": t.year, "month": t.month}, "MS"),
        (lambda t: {"Year": t.year, "Month": t.strftime("%b")}, "MS"),
        (lambda t: {"No": range(len(t)), "year": t.year, "month": t.month, "day": t.day}, "D"),
        (lambda t: {"year": t.year, "month": t.month, "day": t.day, "hour": t.hour}, "h"),
        (lambda t: {"date": t.strftime("%Y-%m-%d"), "hour": t.hour}, "h"),
        (lambda t: {"Year": t.year, "Quarter": t.quarter}, "QS"),
        (lambda t: {"fiscal_year": t.strftime("FY%Y"), "qtr": "Q" + t.quarter.astype(str)}, "QS"),
        (lambda t: {"year": t.isocalendar().year, "week": t.isocalendar().week}, "W-MON"),
        (lambda t: {"Date": t.strftime("%d/%m/%Y"), "Time": t.strftime("%H.%M.%S")}, "h"),
    ],
)
def test_times_in_several_columns(tmp_path, columns, frequency):
    times = pd.date_range("2020-01-01", periods=500, freq=frequency)
    frame = pd.DataFrame({**columns(times), "y": np.arange(500.0)}).reset_index(drop=True)
    frame.to_csv(tmp_path / "s.csv", index=False)
    for read in (
        read_series(tmp_path / "s.csv"),
        series_of_frame(frame, None, None, Problems("table", unit="row")),
    ):
        assert list(read.index) == list(times)
        assert read.columns[-1] == "y"
        assert any("times are made of the columns" in note for note in read.notes)


ENGLISH = [calendar.month_abbr[month] for month in range(1, 13)]


@pytest.mark.parametrize(
    ("time", "form", "each", "names", "step"),
    [
        ("Year", "%Y", "YS", ENGLISH, "MS"),
        ("Jahr", "%Y", "YS", MONTHS, "MS"),
        ("year", "%Y", "YS", range(1, 13), "MS"),
        ("Year", "%Y", "YS", [f"Q{n}" for n in range(1, 5)], "QS"),
        ("Jahr", "%Y", "YS", [f"{n}. Quartal" for n in range(1, 5)], "QS"),
        ("date", "%Y-%m-%d", "D", range(24), "h"),
        ("Date", "%d/%m/%Y", "D", [f"h{n}" for n in range(1, 25)], "h"),
        ("day", "%Y-%m-%d %H:%M:%S", "D", [f"{n:02}:00" for n in range(24)], "h"),
    ],
)
@pytest.mark.parametrize("total", [False, True])
def test_a_column_for_each_step_of_a_year_or_day(tmp_path, time, form, each, names, step, total):
    """The last year or day is not over."""
    values = np.arange(40.0 * len(names))
    values[-3:] = np.nan
    frame = pd.DataFrame(values.reshape(40, -1), columns=names)
    frame.insert(0, time, pd.date_range("2001-01-01", periods=40, freq=each).strftime(form))
    if total:
        frame["Total"] = np.nansum(frame[list(names)], axis=1)
    frame.to_csv(tmp_path / "s.csv", index=False)
    for read in (
        read_series(tmp_path / "s.csv"),
        series_of_frame(frame, None, None, Problems("table", unit="row")),
    ):
        steps = len(values) - 3
        assert list(read.index) == list(pd.date_range("2001-01-01", periods=steps, freq=step))
        np.testing.assert_array_equal(read.values[:, 0], np.arange(steps))


def test_a_pivoted_table_has_a_column_for_each_step():
    times = pd.date_range("2001-01-01", periods=240, freq="MS")
    long = pd.DataFrame({"year": times.year, "month": times.month, "y": np.arange(240.0)})
    table = long.pivot(index="year", columns="month", values="y")
    read = series_of_frame(table, None, None, Problems("table", unit="row"))
    assert list(read.index) == list(times)
    np.testing.assert_array_equal(read.values[:, 0], np.arange(240))


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "season"])
def test_years_need_no_name_beside_the_months(tmp_path, name):
    """R writes monthly series like this: the years are the names of the rows."""
    months = list(MONTHS)
    table = pd.DataFrame(np.arange(240.0).reshape(20, 12), columns=months)
    table.insert(0, name, range(1960, 1980))
    table.to_csv(tmp_path / "s.csv", index=False)
    for read in (
        read_series(tmp_path / "s.csv"),
        series_of_frame(table, None, None, Problems("table", unit="row")),
    ):
        assert list(read.index) == list(pd.date_range("1960-01-01", periods=240, freq="MS"))
        np.testing.assert_array_equal(read.values[:, 0], np.arange(240))


@pytest.mark.parametrize(
    "names",
    [["Year", "5", "6", "7", "8"], ["Year", "Q1", "Q2", "Q3"], ["date", "Q1", "Q2", "Q3", "Q4"]],
)
def test_other_columns_are_series(names):
    table = pd.DataFrame(np.arange(200.0).reshape(-1, 5)[:, : len(names)], columns=names)
    table[names[0]] = pd.date_range("1960-01-01", periods=40, freq="YS").strftime("%Y-%m-%d")
    read = series_of_frame(table, None, None, Problems("table", unit="row"))
    assert read.columns == tuple(names[1:])


def test_a_target_among_the_steps_makes_them_series():
    table = pd.DataFrame(np.arange(200.0).reshape(-1, 5), columns=["Year", "Q1", "Q2", "Q3", "Q4"])
    table["Year"] = range(1960, 2000)
    long = LongColumns(targets=("Q2",))
    read = series_of_frame(table, None, None, Problems("table", unit="row"), long=long)
    assert read.columns == ("Q1", "Q2", "Q3", "Q4")


@pytest.mark.parametrize("first", [0, 1, 7])
def test_numbers_of_steps(tmp_path, first):
    path = tmp_path / "s.csv"
    pd.DataFrame({"t": range(first, first + 60), "y": range(60)}).to_csv(path, index=False)
    for read in (
        read_series(path),
        series_of_frame(
            pd.DataFrame({"y": range(60)}, pd.RangeIndex(first, first + 60)), None, None,
            Problems("table"),
        ),
    ):  # fmt: skip
        assert read.numbered
        shown = people_read(read.index, read.frequency, read.zone, read.local)
        assert shown.tolist() == list(range(first, first + 60))
        assert any("no season is known" in note for note in read.notes)


def test_step_numbers_of_a_panel_are_in_their_order():
    """As texts, 10 stands before 9."""
    frame = pd.DataFrame(
        {
            "unique_id": ["a"] * 12 + ["b"] * 8,
            "ds": [*map(str, range(1, 13)), *map(str, range(5, 13))],
            "y": [*range(1, 13), *range(5, 13)],
        }
    )
    read = series_of_frame(frame, None, None, Problems("table"))
    np.testing.assert_array_equal(read.values[:, 0], range(1, 13))
    np.testing.assert_array_equal(read.values[4:, 1], range(5, 13))


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        ("excel", ["10", "11", "12"]),
        ("days", ["10957", "10958", "10959"]),
        ("s", ["0", "86400", "172800"]),
        ("steps", ["1990", "1991", "1992"]),
        ("%G-W%V", ["2020-W01", "2020-W02", "2020-W03"]),
    ],
)
def test_formats_with_a_name(tmp_path, form, texts):
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": texts, "y": range(3)}).to_csv(path, index=False)
    first = {
        "excel": "1900-01-09", "days": "2000-01-01", "s": "1970-01-01", "%G-W%V": "2019-12-30",
    }  # fmt: skip
    read = read_series(path, time_format=form)
    shown = people_read(read.index, read.frequency, read.zone, read.local)
    assert str(shown[0]).removesuffix(" 00:00:00") == first.get(form, "1990")


@pytest.mark.parametrize(
    ("form", "advice"),
    [
        ("Q%q %Y", "quarters such as 'Q1 2005' are read without a format"),
        ("%s", "seconds since 1970 are --time-format s"),
        ("%k", ""),
        ("yearly", ""),
    ],
)
def test_a_format_that_is_none(tmp_path, form, advice):
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": ["Q1 2005"] * 3, "y": range(3)}).to_csv(path, index=False)
    with pytest.raises(
        ConfigError, match=r"--time-format must be directives of strptime"
    ) as raised:
        read_series(path, time_format=form)
    assert str(raised.value).endswith(advice)


def test_weeks_of_4_4_and_5_name_the_frequency_that_reads_them(tmp_path):
    weeks = np.cumsum([0, *([4, 5, 4] * 20)])
    times = pd.Timestamp("2015-01-31") + pd.to_timedelta(7 * weeks, unit="D")
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": times.strftime("%Y-%m-%d"), "y": range(len(times))}).to_csv(
        path, index=False
    )
    with pytest.raises(DataError, match="--frequency ME moves all to the nearest step") as raised:
        read_series(path)
    assert "--drop-bad" not in str(raised.value)
    read = read_series(path, options=TimeOptions(frequency="ME"))
    np.testing.assert_array_equal(read.values[:, 0], range(len(times)))


@pytest.mark.parametrize(
    ("times", "frequency", "away"),
    [
        (pd.date_range("2000-01-31", periods=50, freq="ME"), "ME", "23:59:59"),
        (pd.date_range("2000-03-31", periods=50, freq="QE"), "QE", "23:59:59"),
        (pd.date_range("2010-01-01", periods=50, freq="SMS"), "SMS", "0s"),
        (pd.date_range("2024-01-01", periods=500, freq="15min"), "15min", "14s"),
        (pd.date_range("2024-01-01", periods=500, freq="10s"), "10s", "1s"),
    ],
)
def test_times_off_a_spacing_name_that_spacing(tmp_path, times, frequency, away):
    """Ends of months are not moved to the next month, nor quarters of an hour to 14 minutes."""
    away = pd.Timedelta(away)
    late = away * (np.arange(len(times)) % 3 - 1) if frequency[0].isdigit() else away
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": (times + late).strftime("%Y-%m-%d %H:%M:%S"), "y": 1}).to_csv(path)
    with pytest.raises(DataError, match=f"--frequency {frequency} moves") as raised:
        read_series(path, time_column="when")
    assert "--resample" not in str(raised.value)
    options = TimeOptions(frequency=frequency)
    assert list(read_series(path, time_column="when", options=options).index) == list(times)


def test_times_off_by_up_to_a_step_are_to_be_resampled_to_it(tmp_path):
    times = pd.date_range("2024-01-01", periods=500, freq="min")
    late = np.random.default_rng(0).integers(0, 59, len(times))
    when = (times + pd.to_timedelta(late, unit="s")).strftime("%Y-%m-%d %H:%M:%S")
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": when, "y": range(500)}).to_csv(path, index=False)
    with pytest.raises(DataError, match="--frequency min --resample mean makes means of such"):
        read_series(path)
    read = read_series(path, options=TimeOptions(frequency="min", resample="mean"))
    assert list(read.index) == list(times)
    np.testing.assert_array_equal(read.values[:, 0], range(500))


@pytest.mark.parametrize(
    "write",
    [
        pd.Timestamp.isoformat,
        lambda time: time.isoformat(sep=" ")[:-3],  # as PostgreSQL does
        lambda time: f"{time:%a %b %d %Y %H:%M:%S GMT%z}",  # as JavaScript does
        lambda time: f"{time:%m/%d/%Y %I:%M %p %z}",
        lambda time: f"{time:%Y%m%dT%H%M%S%z}",
        lambda time: f"{time.tz_convert('UTC'):%Y%m%dT%H%MZ}",
        lambda time: f"{time.tz_convert('UTC'):%Y-%m-%d %H:%M:%S} GMT",
    ],
)
def test_offsets_and_a_time_zone(write):
    """Offsets say what is UTC already; the zone only says what people read."""
    times = pd.date_range("2023-10-20", periods=400, freq="h", tz="Europe/Berlin")
    texts = [write(time) for time in times]
    frame = pd.DataFrame({"when": texts, "y": np.arange(400.0)})
    for zone in ("Europe/Berlin", None):
        options = TimeOptions(timezone=zone)
        read = series_of_frame(frame, None, None, Problems("table"), options=options)
        np.testing.assert_array_equal(read.times, times.tz_convert("UTC").tz_localize(None))
        shown = people_read(read.index, read.frequency, read.zone, read.local)
        assert str(shown[-1]) == str(times[-1] if zone else times[-1].tz_convert("UTC"))


@pytest.mark.parametrize("frequency", ["h", "D"])
@pytest.mark.parametrize(
    ("zone", "form"),
    [
        ("Europe/Berlin", "%Y-%m-%dT%H:%M:%S%z"),
        ("Asia/Kolkata", "%d.%m.%Y %H:%M %z"),
        ("EST", "%m/%d/%Y %H:%M %Z"),
    ],
)
def test_a_format_with_a_zone(tmp_path, frequency, zone, form):
    times = pd.date_range("2023-10-01", periods=60, freq=frequency, tz=zone)
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": times.strftime(form), "y": range(60)}).to_csv(path, index=False)
    read = read_series(path, time_format=form)
    expected = times.tz_convert("UTC") if frequency == "h" else times
    assert list(read.index) == list(expected.tz_localize(None))
    assert read.zone == ("UTC" if frequency == "h" else None)


def test_days_with_short_offsets_are_those_of_clocks(tmp_path):
    times = pd.date_range("2023-10-01", periods=60, freq="D", tz="Europe/Berlin")
    path = tmp_path / "s.csv"
    pd.DataFrame({"when": times.map(str).str[:-3], "y": range(60)}).to_csv(path, index=False)
    assert list(read_series(path).index) == list(times.tz_localize(None))


@pytest.mark.parametrize("frequency", ["D", "h", "MS", "ME", "W-MON"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC", "+05:30"])
def test_an_index_with_a_zone_is_given_back(frequency, zone):
    times = pd.date_range("2023-02-01", periods=300, freq=frequency, tz=zone)
    frame = pd.DataFrame({"y": np.arange(300.0)}, index=times)
    read = series_of_frame(frame, None, None, Problems("table"))
    shown = people_read(read.index, read.frequency, read.zone, read.local)
    assert list(shown) == list(times)


@pytest.mark.parametrize("frequency", ["M", "Q", "W", "Y", "h"])
def test_periods_are_their_beginnings(frequency):
    periods = pd.period_range("2013-01-01", periods=50, freq=frequency)
    frame = pd.DataFrame({"y": np.arange(50.0)}, index=periods)
    for table in (frame, frame.reset_index(names="ds")):
        read = series_of_frame(table, None, None, Problems("table"))
        assert list(read.index) == list(periods.to_timestamp())
