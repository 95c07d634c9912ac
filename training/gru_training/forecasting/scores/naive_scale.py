"""What scaled errors are divided by: the errors of repeating the last season of the training rows.

Hyndman and Koehler (2006), "Another look at measures of forecast accuracy", International Journal
of Forecasting 22, for MASE; Makridakis et al. (2022), "The M5 competition", International Journal
of Forecasting 38, for RMSSE.
"""

from typing import NamedTuple

import numpy as np

from gru_training.forecasting.data import ForecastingData


class NaiveScale(NamedTuple):
    """Of each column, standardised; NaN where the training rows are no longer than a season."""

    absolute: np.ndarray
    """(K,) mean absolute error, of MASE."""
    squared: np.ndarray
    """(K,) mean squared error, of RMSSE."""


def naive_scale(data: ForecastingData) -> NaiveScale:
    """The errors of the seasonal naive forecast on the training rows.

    Args:
        data: On the scale on which errors are measured.
    """
    rows = data.standardised_targets[: data.borders.train].astype(np.float64)
    errors = np.abs(rows[data.season :] - rows[: -data.season])
    counts = np.isfinite(errors).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return NaiveScale(
            np.asarray(np.nansum(errors, axis=0) / counts),
            np.asarray(np.nansum(errors**2, axis=0) / counts),
        )
