"""The calendar of a run as steps of a model, so that callers need not compute it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gru_serving.preprocessing.calendar import DAY, CalendarTable, StepTimes, TimeZone
from gru_training.data.calendar import Calendar
from gru_training.errors import ConfigError
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.forecasting.run import ForecastingRun

_MONTHS = {"M": 1, "Q": 3, "Y": 12}


def time_zone(name: str, first: int, last: int) -> TimeZone:
    """Return the table of clock changes of a zone.

    Args:
        name: Name of the zone, as `Europe/Berlin`.
        first: The first year of which changes are known.
        last: The last one.
    """
    utc = pd.date_range(f"{first}-01-01", f"{last + 1}-01-02", freq="30min", tz="UTC")
    local = utc.tz_convert(name).tz_localize(None)
    shift = (local - utc.tz_localize(None)).total_seconds().to_numpy().astype(np.int64)
    changed = np.flatnonzero(np.diff(shift, prepend=shift[0] + 1))
    begin = utc.as_unit("s").asi8[changed]
    return TimeZone(tuple(begin.tolist()), tuple(shift[changed].tolist()))


def step_times(frequency: str) -> StepTimes:
    """Read the spacing of a series.

    Args:
        frequency: Pandas' name of the spacing: a fixed one of whole seconds, business days (`B`),
            or months, quarters or years by their first or last day.

    Raises:
        ConfigError: The spacing is another.
    """
    found = re.fullmatch(r"(\d*)([A-Za-z]+)(-[A-Z]+)?", frequency)
    count, name = (int(found[1] or 1), found[2]) if found else (0, "")
    seconds = months = 0
    if name in ("W", "D"):
        seconds = (7 if name == "W" else 1) * DAY * count
    elif len(name) == 2 and name[0] in _MONTHS and name[1] in "SE":
        months = _MONTHS[name[0]] * count
    elif name in ("h", "min", "s"):
        seconds = int(pd.Timedelta(count, name).total_seconds())
    elif name != "B" or count != 1:
        raise ConfigError(
            "--calendar and --holidays need steps of whole seconds, business days, months, "
            f"quarters or years, got {frequency}"
        )
    return StepTimes(frequency, seconds, months, name.endswith("E"))


@dataclass(frozen=True)
class CalendarInputs:
    """Calendar inputs that are computed beside a caller's inputs.

    Attributes:
        table: Columns that are made.
        read: Whether a forecast depends on the calendar; else its columns are missing values.
        places: Places of the calendar's columns that are read of the steps ahead.
        order: Place of each input of the steps ahead among those of a caller and these.
    """

    table: CalendarTable
    read: bool
    places: tuple[int, ...] = ()
    order: tuple[int, ...] = ()


def make_inputs(
    calendar: Calendar, frequency: str, read: bool, ahead: Sequence[str] = ()
) -> CalendarInputs:
    """Make the inputs of a calendar with at least one column.

    Args:
        calendar: Calendar of the series.
        frequency: Spacing of the steps.
        read: Whether a forecast depends on the calendar.
        ahead: Names of the inputs read of the steps ahead, in the order of the model.
    """
    zone = None if calendar.timezone is None else time_zone(calendar.timezone, *calendar.years)
    times = step_times(frequency)
    table = CalendarTable(calendar.columns, times, zone, calendar.holidays, calendar.years)
    made = [name for name in ahead if name in calendar.columns]
    given = [name for name in ahead if name not in calendar.columns]
    return CalendarInputs(
        table,
        read,
        tuple(calendar.columns.index(name) for name in made),
        tuple([*given, *made].index(name) for name in ahead),
    )


def calendar_inputs(run: ForecastingRun, preprocessor: SeriesPreprocessor) -> CalendarInputs | None:
    """Make the calendar inputs of a run that has any."""
    calendar = run.series.calendar
    if not calendar.columns:
        return None
    ahead = [run.columns[column] for column in preprocessor.future_columns]
    made = any(name in calendar.columns for name in ahead)
    read = made or not run.config.model.channel_independent
    return make_inputs(calendar, run.frequency, read, ahead)


def calendar_card(calendar: Calendar) -> dict[str, Any]:
    """Describe the calendar for a model card."""
    return {
        "inputs": list(calendar.columns),
        "holidays": calendar.country,
        "timezone": calendar.timezone,
        "years": list(calendar.years),
    }
