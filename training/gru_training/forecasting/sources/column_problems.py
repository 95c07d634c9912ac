"""What keeps a column from being trained on; needs no TensorFlow."""

import numpy as np

from gru_training.data.series import Series
from gru_training.forecasting.sources.column_notes import float32_distance
from gru_training.forecasting.sources.sets import Borders

LARGEST = 1e30
"""Beyond it differences and sums of values come near the largest float32."""
_LEAST_DEVIATION = 1e-30
_FARTHEST = 1e15
"""The square of which, summed over a window, still is a float32."""


def column_problem(series: Series, number: int, borders: Borders, is_target: bool) -> str | None:
    """What keeps a column from being read, or from being forecast where it is to be."""
    column = series.values[:, number]
    train = column[: borders.train]
    train = train[np.isfinite(train)]
    if not len(train):
        return (
            f"expected values in the training rows (1 to {borders.train}), got only missing ones; "
            "leave the column out"
        )
    if train.min() == train.max():
        return (
            f"expected values that vary, got {train[0]:g} in all training rows (1 to "
            f"{borders.train}); leave the column out"
        )
    problem = _float32_problem(column, train)
    if problem or not is_target or series.panel:
        return problem
    for part in ("validation", "test"):
        begin, end = borders.part(part)
        if end > begin and not np.isfinite(column[begin:end]).any():
            return (
                f"expected values in the {part} rows ({begin + 1} to {end}), got only missing ones"
            )
    return None


def _float32_problem(values: np.ndarray, train: np.ndarray) -> str | None:
    """What keeps models, which read numbers as float32, from seeing what varies."""
    largest = float(np.nanmax(np.abs(values)))
    if largest > LARGEST:
        return (
            f"expected values up to {LARGEST:.0e}, got one of {largest:g}; models read "
            "numbers as float32: divide the column by a constant"
        )
    deviation, between = float(train.std()), float32_distance(train)
    if deviation <= between or deviation < _LEAST_DEVIATION:
        return (
            f"expected values whose standard deviation is above {_LEAST_DEVIATION:g} and "
            f"above the distance between neighbouring float32 numbers of their size, {between:g}, "
            f"as which models read them; got {deviation:g}: subtract or multiply by some number"
        )
    away = np.abs(values - train.mean()) / deviation
    if np.nanmax(away) > _FARTHEST:
        row = int(np.nanargmax(away))
        return (
            f"expected values within {_FARTHEST:.0e} standard deviations of the training "
            f"rows, {deviation:g}, got {values[row]:g} in row {row + 1}; if that means a missing "
            "value, leave the cell empty"
        )
    return None
