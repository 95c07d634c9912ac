"""Forms of times that are not dates: quarters, weeks, months, and numbers.

If the texts of a column have one of these forms, they are read accordingly, and a note says how.
The formats of `--time-format` are read here too.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import NamedTuple

import numpy as np

from gru_training.data.time_options import UNITS
from gru_training.errors import ConfigError

STEPS = "steps"
"""Format of times that are numbers of steps, stored as this many nanoseconds."""
UNITS_SINCE_1970 = {"days": "D", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}
"""NumPy's names of the units in which numbers may count since 1970, by format."""
_NANOSECONDS = {**UNITS, "D": 24 * UNITS["h"]}
_EXCEL = "excel"
_EXCEL_EPOCH = np.datetime64("1899-12-30", "ns")
_EXCEL_DAYS = 29_221, 80_000
"""Serial numbers of 1980 and 2119; smaller ones may count days since 1970."""
_FIRST_OF_HALF, _FIRST_OF_QUARTER = (1, 7), (1, 4, 7, 10)
LATEST_STEP = 10**15
"""Number from which on values count a unit since 1970, rather than steps."""
_PROBE_CELLS = 200
"""Number of cells from which the form is determined."""
_TIME_OF_DAY = re.compile(r"T?\d{1,2}:\d\d(:\d\d([.,]\d+)?)?\s*([ap]\.?m\.?)?", re.IGNORECASE)
_WITH_YEAR = re.compile(r"\d{4}|(\d+|[^\W\d_]{3,})\W+(\d+|[^\W\d_]{3,})\W+\d|\d[^\W\d_]{3,}\d")
_OFFSET = re.compile(
    r"(:\d\d(?:\.\d+)?(?:\s*[ap]\.?m\.?)?|T\d{2,6}(?:\.\d+)?)\s*"
    r"(?:Z|(?:UTC|GMT)?\s*[+-]\d\d?(?::?\d\d)?|UTC|GMT)$",
    re.IGNORECASE,
)
_ZONE_NAME = re.compile(r":\d\d(?:\.\d+)?(?:\s*[AaPp]\.?[Mm]\.?)?\s+(?!UTC|GMT)[A-Z]{3,5}$")
_USUAL_LENGTH = len("Fri Mar 01 2024 00:00:00 GMT+0100")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_PERIOD = re.compile(r"(.+?)(?:\s+(?:-|/|to)\s+|\s*–\s*|(?<=\d{4}-\d\d-\d\d)/)(.+)")
_PART = re.compile(r"\w+")
"""Part of a date, of which a day has three, unlike `1990 - 01` and `1990 - Q1`."""
_SHORT_YEAR_FIRST = re.compile(r"^(\d\d)([-./])(\d\d?)\2(\d\d?)(?!\d)")
_MONTHS = (
    "jan ene gen", "feb fev fév", "mar mär mae maa mrz", "apr abr avr", "may mai mag mei",
    "jun juin giu", "jul juil lug", "aug ago aou aoû", "sep set", "oct okt out ott", "nov",
    "dec dez dic déc",
)  # fmt: skip
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
"""Months by the first letters of their names in English, Dutch, French, German, Italian, Portuguese
and Spanish.
"""


class Reading(NamedTuple):
    """The times of texts in one form."""

    times: np.ndarray
    """Nanoseconds, NaT for a text in another form."""
    name: str
    """Noun of the form for messages."""


class _Form(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    day: Callable[..., date | None]
    """Function from the groups of a match to a day."""


def _year(text: str) -> int:
    """Complete a year of two digits as strptime does."""
    year = int(text)
    return year if len(text) > 2 else year + (1900 if year > 68 else 2000)


def month_of(name: str) -> int | None:
    """Return the number of a month by its name in one of the languages; None for other words."""
    name = name.lower()
    return _MONTH_OF.get(name[:4], _MONTH_OF.get(name[:3]))


def _quarter_day(quarter: str, year: str) -> date:
    return date(_year(year), _FIRST_OF_QUARTER[int(quarter) - 1], 1)


def _half_day(half: str, year: str) -> date:
    return date(_year(year), _FIRST_OF_HALF[int(half) - 1], 1)


def _week_day(year: str, week: str, weekday: str | None = None) -> date:
    return date.fromisocalendar(int(year), int(week), int(weekday or 1))


def _month_day(year: str, month: str, day: str = "1") -> date:
    return date(_year(year), int(month), int(day))


def _named_day(name: str, year: str, day: str | None = None) -> date | None:
    month = month_of(name)
    return None if month is None else date(_year(year), month, int(day or 1))


def _fiscal_day(first: str, last: str) -> date | None:
    return date(int(first), 1, 1) if (int(first) + 1) % 100 == int(last) % 100 else None


def _ordinal_day(year: str, day: str) -> date:
    return datetime.strptime(f"{year} {day}", "%Y %j").date()


_BARE = "quarters without a letter"
"""Name of the forms `2005.1` and `1/2005`, which months have, too."""
_YEAR, _GAP, _WEEK, _LETTERS = r"(\d{4})", r"[\s:/._'-]*", r"(?:W|KW|CW|wk|week)\.?", r"([^\W\d_]+)"
_OF = r"(?:\s+de\s+|[\s/.'-]+)"
"""Gap between the parts of a date, of which Spanish and Portuguese say `1 de mayo de 2005`."""
_FORMS = tuple(
    _Form(name, re.compile(pattern, re.IGNORECASE), day)
    for name, pattern, day in (
        ("quarters", rf"(?:[QTK]|Qtr)\.?\s*([1-4]){_GAP}(\d{{4}}|\d\d)", _quarter_day),
        ("quarters", rf"([1-4])\s*Q{_GAP}(\d{{4}}|\d\d)", _quarter_day),
        ("quarters", rf"{_YEAR}{_GAP}(?:[QTK]|Qtr)\.?\s*([1-4])", lambda y, q: _quarter_day(q, y)),
        (_BARE, rf"{_YEAR}[\s:/.-]([1-4])", lambda y, q: _quarter_day(q, y)),
        (_BARE, rf"([1-4])[\s:/.-]{_YEAR}", _quarter_day),
        ("half-years", rf"[HS]([12]){_GAP}(\d{{4}}|\d\d)", _half_day),
        ("half-years", rf"([12])H{_GAP}(\d{{4}}|\d\d)", _half_day),
        ("half-years", rf"{_YEAR}{_GAP}[HS]([12])", lambda y, h: _half_day(h, y)),
        ("ISO weeks", rf"{_YEAR}{_GAP}{_WEEK}\s*(\d\d?)(?:-([1-7]))?", _week_day),
        ("ISO weeks", rf"{_WEEK}\s*(\d\d?){_GAP}{_YEAR}", lambda w, y: _week_day(y, w)),
        ("months", rf"{_YEAR}{_GAP}M(\d\d?)", _month_day),
        ("months", rf"(\d\d?)[\s/.-]{_YEAR}", lambda m, y: _month_day(y, m)),
        ("fiscal years", rf"(?:FY\s*)?{_YEAR}\s*[/-]\s*(\d\d|\d{{4}})", _fiscal_day),
        ("fiscal years", r"FY\s*'?(\d{4}|\d\d)", lambda y: date(_year(y), 1, 1)),
        ("days of the year", rf"{_YEAR}-(\d{{3}})", _ordinal_day),
        ("months", rf"{_LETTERS}{_OF}(\d{{4}}|\d\d)", _named_day),
        ("months", rf"(\d{{4}}|\d\d)[\s/.'-]+{_LETTERS}\.?", lambda y, name: _named_day(name, y)),
        ("days", rf"(\d\d?){_OF}{_LETTERS}{_OF}{_YEAR}", lambda d, n, y: _named_day(n, y, d)),
        ("days", rf"{_YEAR}[年년]\s*(\d\d?)[月월]\s*(\d\d?)[日일]", _month_day),
        ("months", rf"{_YEAR}[年년]\s*(\d\d?)[月월]", _month_day),
    )
)
_BY_LENGTH: dict[int, tuple[tuple[str, str], ...]] = {
    6: (("months", "%Y%m"), ("days", "%y%m%d"), ("ISO weeks", "%G%V")),
    7: (("days of the year", "%Y%j"),),
    8: (("days", "%Y%m%d"),),
    10: (("hours", "%Y%m%d%H"),),
    12: (("minutes", "%Y%m%d%H%M"),),
    14: (("seconds", "%Y%m%d%H%M%S"),),
}
"""Forms of numbers whose digits are parts of a date, by their length."""


def read_form(texts: Sequence[str]) -> Reading | None:
    """Read texts if at least most of them are in one of the forms.

    Args:
        texts: Cells of a column of times, in the order of the rows.
    """
    cells = [text.strip() for text in texts]
    if not any(cells):
        return None
    probe = [cell for cell in cells if cell][:_PROBE_CELLS]
    if 2 * sum(map(bool, map(_NUMBER.fullmatch, probe))) > len(probe):
        found = _numbers([cell if _NUMBER.fullmatch(cell) else "" for cell in cells])
        if found is not None:
            return found
    for form in _FORMS:
        if 2 * sum(map(bool, map(form.pattern.fullmatch, probe))) <= len(probe):
            continue
        matches = [form.pattern.fullmatch(cell) for cell in cells]
        days = [None if match is None else _day(form, match) for match in matches]
        if 2 * sum(day is not None for day in days) > len(cells):
            times = np.array(days, "M8[D]").astype("M8[ns]")
            if form.name == "months" and not _may_be_months(times):
                continue
            if form.name == _BARE and not _whole_years(times):
                continue
            return Reading(times, form.name)
    return None


def _day(form: _Form, match: re.Match[str]) -> date | None:
    try:
        return form.day(*match.groups())
    except ValueError:  # no such week, month or day
        return None


def _may_be_months(times: np.ndarray) -> bool:
    """Tell whether times are the months of years; `03-Jan`, `04-Jan` are rather days."""
    months = times[~np.isnat(times)].astype("M8[M]").astype(np.int64)
    return len(months) == 1 or len(set(months % 12)) > 1


def _whole_years(times: np.ndarray) -> bool:
    """Tell whether all are times, of each quarter and of several years, as months rarely are."""
    months = times.astype("M8[M]").astype(np.int64)
    return not np.isnat(times).any() and len({*(months % 12)}) == 4 < len({*months})


def _numbers(cells: Sequence[str]) -> Reading | None:
    """Read a column of numbers, by their size."""
    numbers = np.array([float(cell or "nan") for cell in cells])
    seen = numbers[~np.isnan(numbers)]
    whole = [cell.partition(".")[0] for cell in cells]
    lengths = {len(part) for part in whole if part}
    if (seen % 1).any():
        return _decimals(numbers, seen, lengths)
    if lengths == {4}:
        years = [cell or "NaT" for cell in whole]
        return Reading(np.array(years, "M8[Y]").astype("M8[s]"), "days")
    if len(lengths) == 1:
        for name, form in _BY_LENGTH.get(min(lengths), ()):
            times = _by_directives(whole, form)
            if (~np.isnat(times)).sum() == len(seen):
                return Reading(times, name)
    if len(lengths) == 1 and _EXCEL_DAYS[0] <= seen.min() and seen.max() <= _EXCEL_DAYS[1]:
        return Reading(_of_excel(numbers), "serial numbers of Excel")
    for unit, digits in (("s", {9, 10}), ("ms", {12, 13}), ("us", {15, 16}), ("ns", {18, 19})):
        if lengths <= digits:
            return Reading(_since_1970(whole, unit), f"{unit} since 1970")
    if seen.max() < LATEST_STEP and lengths.isdisjoint({6, 7, 8}):
        return Reading(_since_1970(whole, "ns"), STEPS)
    return None


def _decimals(numbers: np.ndarray, seen: np.ndarray, lengths: set[int]) -> Reading | None:
    """Read numbers with a fraction."""
    if _EXCEL_DAYS[0] <= seen.min() and seen.max() <= _EXCEL_DAYS[1]:
        return Reading(_of_excel(numbers), "serial numbers of Excel")
    if lengths <= {9, 10}:
        return Reading(_with_fraction(numbers), "s since 1970")
    if lengths != {4}:
        return None
    quarters, months = seen * 4, seen * 12
    if not (quarters % 1).any() and ((seen * 2) % 1).any():
        return Reading(_years_and(numbers, 4), "quarters as parts of years")
    if (np.abs(months - months.round()) < 0.007).all() and (
        np.abs(months - months.round()) > 0
    ).any():
        return Reading(_years_and(numbers, 12), "months as parts of years")
    return None


def _years_and(numbers: np.ndarray, parts: int) -> np.ndarray:
    """Convert years with a fraction, where a year has a number of periods, to times."""
    missing = np.isnan(numbers)
    months = np.where(missing, 0, numbers * parts).round().astype(np.int64) * (12 // parts)
    times = (months - 12 * 1970).astype("M8[M]").astype("M8[ns]")
    return np.where(missing, np.datetime64("NaT", "ns"), times)


def _of_excel(numbers: np.ndarray) -> np.ndarray:
    """Convert serial numbers of Excel to times, to the second."""
    missing = np.isnan(numbers)
    seconds = np.where(missing, 0, numbers * 86_400).round().astype(np.int64)
    return np.where(
        missing, np.datetime64("NaT", "ns"), _EXCEL_EPOCH + seconds.astype("m8[s]").astype("m8[ns]")
    )


def _with_fraction(numbers: np.ndarray) -> np.ndarray:
    """Convert seconds since 1970 to times, to the microsecond."""
    missing = np.isnan(numbers)
    micro = np.where(missing, 0, numbers * 1e6).round().astype(np.int64)
    return np.where(missing, np.datetime64("NaT", "ns"), micro.astype("M8[us]").astype("M8[ns]"))


def _since_1970(cells: Sequence[str], unit: str) -> np.ndarray:
    """Convert whole numbers of a unit since 1970 to times; numbers out of range become NaT."""
    nanoseconds = _NANOSECONDS[unit]
    least, most = -(2**63) // nanoseconds + 1, 2**63 // nanoseconds
    found = [int(cell) if cell and least <= int(cell) < most else None for cell in cells]
    lacking = np.array([value is None for value in found])
    values = np.array([value or 0 for value in found], np.int64) * nanoseconds
    return np.where(lacking, np.datetime64("NaT", "ns"), values.astype("M8[ns]"))


def _by_directives(cells: Sequence[str], form: str) -> np.ndarray:
    """Read times with Python's strptime, NaT if it fails; years are of this age."""
    if "%V" in form and not any(day in form for day in ("%u", "%w", "%a", "%A")):
        form, cells = f"{form} %u", [f"{cell} 1" for cell in cells]
    found = list[np.datetime64]()
    for cell in cells:
        try:
            time = datetime.strptime(cell, form)
        except ValueError:
            time = None
        fits = time is not None and 1800 <= time.year <= 2199
        found.append(np.datetime64(time, "ns") if fits else np.datetime64("NaT", "ns"))
    return np.array(found, "M8[ns]")


def first_days(texts: Sequence[str]) -> list[str] | None:
    """Return the first of the two days of each text, such as `07/01/2019 - 13/01/2019`.

    None if not all texts are periods; empty ones may be among them.
    """
    if _PERIOD.fullmatch(next(filter(None, texts), "")) is None:
        return None
    found = [_PERIOD.fullmatch(text) for text in texts]
    periods = [each for each in found if each is not None]
    if len(periods) < sum(map(bool, texts)) or not all(
        len(_PART.findall(each[1])) >= 3 and _PART.sub("", each[1]) == _PART.sub("", each[2])
        for each in periods
    ):
        return None
    return ["" if each is None else each[1] for each in found]


def read_as(texts: Sequence[str], form: str) -> np.ndarray | None:
    """Read texts in a format that has a name; None for a format of directives.

    Args:
        texts: Cells of a column of times.
        form: `steps`, `excel`, or a unit of `UNITS_SINCE_1970`; or directives with weeks of ISO.
    """
    cells = [text.strip() for text in texts]
    if "%" in form:
        return _by_directives(cells, form) if "%V" in form else None
    numbers = [cell if _NUMBER.fullmatch(cell.removeprefix("-")) else "" for cell in cells]
    if form == _EXCEL:
        return _of_excel(np.array([float(cell or "nan") for cell in numbers]))
    if form == "s" and any("." in cell for cell in numbers):
        return _with_fraction(np.array([float(cell or "nan") for cell in numbers]))
    if form == STEPS or form in UNITS_SINCE_1970:
        whole = [cell if not float(cell or 0) % 1 else "" for cell in numbers]
        unit = UNITS_SINCE_1970.get(form, "ns")
        return _since_1970([cell.partition(".")[0] for cell in whole], unit)
    return None


def require_format(form: str) -> None:
    """Raise ConfigError for an invalid format of times."""
    known = (STEPS, _EXCEL, *UNITS_SINCE_1970)
    if form in (*known, "ISO8601", "mixed"):  # the last two are pandas' own
        return
    wrong = re.search(r"%[qs]", form)
    if wrong is None and "%" in form:
        try:
            datetime.strptime("", form)
        except ValueError as error:
            if "does not match" in str(error):
                return
            if "%V" in form and "ISO" in str(error):
                return
            wrong = re.search(r"%.", form)
    advice = {
        "%q": "; quarters such as 'Q1 2005' are read without a format",
        "%s": "; seconds since 1970 are --time-format s",
    }
    got = advice.get(wrong[0], "") if wrong is not None else ""
    raise ConfigError(
        f"--time-format must be directives of strptime, as %d.%m.%Y or %G-W%V, or one of "
        f"{', '.join(known)}, got {form!r}{got}"
    )


def with_whole_year(text: str) -> str:
    """Return a time such as `24-03-31` with the year's four digits; others as they are."""
    return _SHORT_YEAR_FIRST.sub(
        lambda found: f"{_year(found[1])}-{found[3]:0>2}-{found[4]:0>2}", text.strip(), count=1
    )


def has_offset(text: str) -> bool:
    """Tell whether a time ends with its offset from UTC."""
    return _OFFSET.search(_single_spaced(text)) is not None


def has_zone_name(text: str) -> bool:
    """Tell whether a time ends with the name of a zone other than UTC, such as `CET`."""
    return _ZONE_NAME.search(text.rstrip()) is not None


def without_offset(text: str) -> str:
    """Return a time without its offset from UTC or the name of its zone, as clocks show it."""
    return re.sub(r" [A-Z]{3,5}$", "", _OFFSET.sub(r"\1", _single_spaced(text)))


def _single_spaced(text: str) -> str:
    """Return a long text without needless spaces: patterns take the square of their number."""
    return text.strip() if len(text) <= _USUAL_LENGTH else " ".join(text.split())


def has_year(text: str) -> bool:
    """Tell whether a text names a year; otherwise it would be read as a time of today."""
    return _WITH_YEAR.search(_TIME_OF_DAY.sub("", text.strip())) is not None
