"""Seasons of the calendar, and inputs that follow from the times alone."""

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from gru_training.data.time_axis import DAY, evenly
from gru_training.data.time_options import UNITS
from gru_training.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

KINDS = {
    "hour": ("day_sin", "day_cos"),
    "weekday": ("weekday",),
    "month": ("month",),
    "year": ("year_sin", "year_cos"),
}
"""Columns computed for each kind of calendar input, by its name."""
HOLIDAY = "holiday"
YEARS_AHEAD = 10
"""Years after the last time for which holidays and clock changes are known."""
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Calendar:
    """Calendar inputs computed from times, with what the computation needs."""

    columns: tuple[str, ...] = ()
    """Names of the inputs."""
    country: str | None = None
    """Country or region whose holidays count, such as `DE` or `DE-BY`."""
    holidays: tuple[int, ...] = ()
    """Dates of the holidays as days since 1970, ascending."""
    timezone: str | None = None
    """Time zone in whose local time days and hours are counted; the times are then in UTC."""
    years: tuple[int, ...] = ()
    """First and last year for which holidays or clock changes are known; empty for all years."""

    def values(self, times: "pd.DatetimeIndex") -> np.ndarray:
        """Compute the inputs (N, columns) at N times.

        Raises:
            DataError: A time lies outside of `years`.
        """
        if not self.columns:
            return np.empty((len(times), 0))
        local = times
        if self.timezone is not None:
            local = times.tz_localize("UTC").tz_convert(self.timezone).tz_localize(None)
        if self.years and len(local):
            outside = (local.year < self.years[0]) | (local.year > self.years[1])
            if outside.any():
                raise DataError(
                    f"expected times of the years {self.years[0]} to {self.years[1]}, of which "
                    f"holidays and changes of clocks are known, got {times[outside][0]}"
                )
        since = local.as_unit("ns").asi8
        day = since % DAY / DAY
        cycles = {
            "day": day,
            "week": (local.day_of_week + day) / 7,
            "year": (local.day_of_year - 1 + day) / 365.25,
        }
        made = {
            "weekday": np.asarray(local.day_of_week, np.float64),
            "month": np.asarray(local.month, np.float64),
            HOLIDAY: np.isin(since // DAY, self.holidays).astype(np.float64),
        }
        for name, phase in cycles.items():
            angle = 2 * np.pi * np.asarray(phase, np.float64)
            made |= {f"{name}_sin": np.sin(angle), f"{name}_cos": np.cos(angle)}
        return np.stack([made[name] for name in self.columns], axis=-1)


def make_calendar(
    times: "pd.DatetimeIndex",
    frequency: str,
    kinds: tuple[str, ...],
    country: str | None,
    timezone: str | None,
) -> Calendar:
    """Return the calendar of a series.

    Args:
        times: Times of the series; in UTC if there is a time zone.
        frequency: Spacing of the series.
        kinds: Some of `KINDS`, or `auto` alone: all that vary from step to step within their cycle.
        country: Country whose holidays count, as `DE` or `DE-BY`; None: there are none.
        timezone: Zone in whose local time days and hours are counted.

    Raises:
        ConfigError: Holidays of the country are not known.
    """
    if kinds == ("auto",):
        kinds = _suiting(times, frequency)
    columns = [name for kind in KINDS if kind in kinds for name in KINDS[kind]]
    years = (int(times[0].year) - 1, int(times[-1].year) + YEARS_AHEAD)
    days: tuple[int, ...] = ()
    if country is not None:
        columns.append(HOLIDAY)
        days = _holidays(country, *years)
    spans = years if country is not None or timezone is not None else ()
    return Calendar(tuple(columns), country, days, timezone, spans)


def _holidays(country: str, first: int, last: int) -> tuple[int, ...]:
    import holidays

    code, _, part = country.partition("-")
    try:
        found = holidays.country_holidays(code, subdiv=part or None, years=range(first, last + 1))
    except NotImplementedError as error:
        raise ConfigError(
            f"--holidays: expected a country and perhaps a part of it, as DE or DE-BY, got "
            f"{country!r}: {error}"
        ) from error
    return tuple(sorted((day - _EPOCH).days for day in found))


def _suiting(times: "pd.DatetimeIndex", frequency: str) -> tuple[str, ...]:
    """Return the kinds whose cycle has at least two steps."""
    step = (times[-1] - times[0]).value / max(1, len(times) - 1)
    lengths = {"hour": DAY, "weekday": 7 * DAY, "year": 365 * DAY}
    return tuple(
        kind
        for kind, length in lengths.items()
        if length >= 2 * step and not (frequency == "B" and kind == "hour")
    )


def season_length(frequency: str) -> int:
    """Return the number of steps in the natural season of a spacing: a day, a week, or a year.

    Hours and minutes repeat every day, days every week, and weeks, months and other spacings of a
    week or more every year; spacings below a minute repeat every hour.
    """
    plain = frequency.partition("-")[0]
    name = plain.lstrip("0123456789")
    count = int(plain.removesuffix(name) or 1)
    per_year = {"W": 52, "MS": 12, "ME": 12, "QS": 4, "QE": 4, "YS": 1, "YE": 1}
    if name in per_year:
        return max(1, round(per_year[name] / count))
    if name == "ns":  # numbers of steps
        return 1
    if name == "D" and count >= 7:
        return max(1, round(365.25 / count))
    if name in ("D", "B"):
        return max(1, round((7 if name == "D" else 5) / count))
    if name not in UNITS:  # steps of unequal length, such as the last business days of months
        years = evenly(np.datetime64("2001-01-01"), np.datetime64("2005-01-01"), frequency)
        return max(1, round(len(years) / 4))
    step = count * UNITS[name]
    return max(1, round((DAY if step >= UNITS["min"] else UNITS["h"]) / step))
