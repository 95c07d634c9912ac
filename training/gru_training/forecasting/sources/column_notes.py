"""Remarks on columns that a model can read but poorly."""

import numpy as np

from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.forecasting.sources.sets import Borders

_COARSE = 0.01
"""A note is given if neighbouring float32 numbers differ by more than this share of the
deviation."""
_MUCH = 0.5
"""A note is given if more than this share of the training rows is missing."""
_MOST_NOTES = 10
"""Of the same kind, each for a column by itself."""


def note_columns(series: Series, borders: Borders, problems: Problems) -> None:
    """Remarks on columns that float32 numbers resolve but coarsely, or that are mostly missing."""
    coarse, missing = list[tuple[str, str]](), list[tuple[str, str]]()
    inputs = series.input_columns
    for name, column in zip(series.columns, series.values[: borders.train].T, strict=True):
        if name in inputs:
            continue
        train = column[np.isfinite(column)]
        share = float32_distance(train) / float(train.std())
        if share > _COARSE:
            coarse.append(
                (name, f"{float32_distance(train):g} apart, {share:.0%} of its standard deviation")
            )
        if (gone := 1 - len(train) / len(column)) > _MUCH:
            missing.append((name, f"{gone:.0%}"))
    for name, text in _shown(coarse):
        problems.note(
            f"{name}: models read numbers as float32, which at its size are {text}; subtract a "
            "constant from the column for better forecasts"
        )
    for name, text in _shown(missing):
        problems.note(f"{name}: {text} of its training rows are missing")


def _shown(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each column with its remark; of many columns one line for all of them."""
    if len(found) <= _MOST_NOTES:
        return [(f"column {name!r}", text) for name, text in found]
    (name, text), others = found[0], len(found) - 1
    return [(f"column {name!r} and {others:,} others like it", text)]


def float32_distance(values: np.ndarray) -> float:
    """The distance between neighbouring float32 numbers of the size of the largest value."""
    return float(np.spacing(np.float32(np.abs(values).max())))
