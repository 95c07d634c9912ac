"""The Diebold-Mariano test of whether one forecaster's errors are smaller than another's.

Diebold and Mariano (1995), "Comparing Predictive Accuracy", Journal of Business & Economic
Statistics 13: the mean difference of two losses divided by its standard error. Forecasts of H steps
overlap, so differences up to H - 1 windows apart are related; their autocovariances count in the
variance. Harvey, Leybourne and Newbold (1997), "Testing the equality of prediction mean squared
errors", International Journal of Forecasting 13, correct it for few rows and use the quantiles of
Student's t, as R's `forecast::dm.test` does.

With few windows for their overlap, this test finds differences where there are none: at a level of
5 %, in 15 % of the cases with 24 steps and five times as many windows. Below 20 windows per step
the variance is therefore estimated from the lowest frequencies alone, with as many degrees of
freedom: Lazarus, Lewis, Stock and Watson (2018), "HAR Inference: Recommendations for Practice",
Journal of Business & Economic Statistics 36; for this test Coroneo and Iacone (2020), "Comparing
predictive accuracy in small samples using fixed-smoothing asymptotics", Journal of Applied
Econometrics 35.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.fft import dct

FEWEST_WINDOWS, MANY_WINDOWS = 3, 20
"""Fewest windows per step of the overlap for any test, and for the test in its first form."""


class MeanTest(NamedTuple):
    """A test of whether the mean of values in time is zero."""

    mean: float
    error: float
    """Standard error of the mean."""
    degrees: int
    """Degrees of freedom of the t distribution."""

    @property
    def p_value(self) -> float:
        """P-value of the two-sided test."""
        if self.error == 0:
            return float(self.mean == 0)
        return float(2 * stats.t.sf(abs(self.mean) / self.error, self.degrees))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the bounds of the confidence interval of the mean."""
        half = float(stats.t.ppf((1 + level) / 2, self.degrees)) * self.error
        return self.mean - half, self.mean + half


def diebold_mariano(differences: np.ndarray, overlap: int) -> MeanTest | None:
    """Test whether the mean of loss differences is zero.

    Args:
        differences: (N,) in the order of time.
        overlap: H, steps that each forecasts; 1 for one step ahead.

    Returns:
        Result of the test; None with fewer than three windows per step of the overlap.
    """
    count = len(differences)
    if count < FEWEST_WINDOWS * overlap:
        return None
    mean = float(differences.mean())
    if count >= MANY_WINDOWS * overlap:
        variance = _variance(differences - mean, overlap)
        if variance > 0:
            corrected = (count + 1 - 2 * overlap + overlap * (overlap - 1) / count) / count
            return MeanTest(mean, float(np.sqrt(variance / corrected)), count - 1)
    degrees = max(2, count // (2 * overlap))
    return MeanTest(mean, _low_frequency_error(differences - mean, degrees), degrees)


def _variance(centred: np.ndarray, overlap: int) -> float:
    """Estimate the variance of the mean; the sum of autocovariances may be negative."""
    count = len(centred)
    covariances = [centred[lag:] @ centred[: count - lag] / count for lag in range(overlap)]
    return float((covariances[0] + 2 * sum(covariances[1:])) / count)


def _low_frequency_error(centred: np.ndarray, frequencies: int) -> float:
    """Estimate the standard error of the mean from this many of the lowest cosine waves."""
    count = len(centred)
    waves = dct(centred, type=2)[1 : frequencies + 1] / np.sqrt(2 * count)
    return float(np.sqrt(np.mean(waves**2) / count))
