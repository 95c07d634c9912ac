"""Seasons of the calendar, and columns that encode the time of day and year."""

import numpy as np
import pandas as pd

CALENDAR_COLUMNS = tuple(
    f"{cycle}_{wave}" for cycle in ("day", "week", "year") for wave in ("sin", "cos")
)
"""Of `calendar_columns`, those that there can be."""
_DAY = pd.Timedelta(days=1)


def season_length(frequency: str) -> int:
    """The number of steps in the most natural season of a spacing: a day, a week, or a year.

    Hours and minutes repeat every day, days every week, weeks, months and whatever else a calendar
    knows every year; spacings below a minute every hour.
    """
    plain = frequency.partition("-")[0]
    name = plain.lstrip("0123456789")
    count = int(plain.removesuffix(name) or 1)
    per_year = {"W": 52, "MS": 12, "ME": 12, "QS": 4, "QE": 4, "YS": 1, "YE": 1}
    if name in per_year:
        return max(1, round(per_year[name] / count))
    if name in ("D", "B"):
        return max(1, round((7 if name == "D" else 5) / count))
    try:
        step = pd.Timedelta(count, name)
    except ValueError:  # steps of unequal length, such as the last business days of months
        return max(1, round(len(pd.date_range("2001", "2005", freq=frequency)) / 4))
    period = _DAY if step >= pd.Timedelta(minutes=1) else pd.Timedelta(hours=1)
    return max(1, round(float(period / step)))


def calendar_columns(times: pd.DatetimeIndex, frequency: str) -> dict[str, np.ndarray]:
    """Sine and cosine, (N,) each, of the cycles longer than the spacing, by column name."""
    step = (times[-1] - times[0]) / max(1, len(times) - 1)
    seconds = (times - times.normalize()) / _DAY
    cycles = {
        "day": (_DAY, seconds),
        "week": (7 * _DAY, (times.day_of_week + seconds) / 7),
        "year": (365 * _DAY, (times.day_of_year - 1 + seconds) / 365.25),
    }
    columns = {}
    for name, (length, phase) in cycles.items():
        if length >= 2 * step and not (frequency == "B" and name == "day"):
            angle = 2 * np.pi * np.asarray(phase, np.float64)
            columns[f"{name}_sin"], columns[f"{name}_cos"] = np.sin(angle), np.cos(angle)
    return columns
