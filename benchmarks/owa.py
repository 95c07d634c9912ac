"""The measures of the M4 competition: sMAPE, MASE, and their mean relative to Naive 2 (OWA).

Makridakis, Spiliotis and Assimakopoulos (2020), "The M4 Competition", International Journal of
Forecasting 36, section 2.3 and appendix A.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_CERTAINTY = 1.645
"""Of the test for a season, of 90 %."""


class M4Scores(NamedTuple):
    """Means over the series."""

    smape: float
    """In percent."""
    mase: float
    owa: float


def m4_scores(
    train: Sequence[np.ndarray],
    truth: np.ndarray,
    forecasts: np.ndarray,
    season: int,
) -> M4Scores:
    """The scores of forecasts of what follows some series.

    Args:
        train: N series, of whatever length.
        truth: (N, H).
        forecasts: (N, H).
        season: As the competition has it.
    """
    naive = np.stack([naive2(series, truth.shape[1], season) for series in train])
    own = smape(truth, forecasts).mean(), mase(train, truth, forecasts, season).mean()
    of_naive = smape(truth, naive).mean(), mase(train, truth, naive, season).mean()
    relative = [mine / theirs for mine, theirs in zip(own, of_naive, strict=True)]
    return M4Scores(float(own[0]), float(own[1]), float(np.mean(relative)))


def smape(truth: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
    """(N,) symmetric mean absolute percentage errors, 0 to 200."""
    sizes = np.abs(truth) + np.abs(forecasts)
    with np.errstate(invalid="ignore"):
        shares = np.where(sizes > 0, 200 * np.abs(truth - forecasts) / sizes, 0.0)
    return np.asarray(shares.mean(axis=1))


def mase(
    train: Sequence[np.ndarray], truth: np.ndarray, forecasts: np.ndarray, season: int
) -> np.ndarray:
    """(N,) mean absolute errors over those of repeating the last season within the series."""
    scale = np.array([np.abs(each[season:] - each[:-season]).mean() for each in train])
    return np.asarray(np.abs(truth - forecasts).mean(axis=1) / scale)


def naive2(series: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """(H,) the last value, of a series with a significant season adjusted for it.

    The season is that of the classical multiplicative decomposition.
    """
    steps = np.arange(len(series), len(series) + horizon)
    if season < 2 or not has_season(series, season):
        return np.repeat(series[-1], horizon)
    indices = seasonal_indices(series, season)
    adjusted = series[-1] / indices[(len(series) - 1) % season]
    return np.asarray(adjusted * indices[steps % season])


def has_season(series: np.ndarray, season: int) -> bool:
    """Whether the autocorrelation at the season is significant, of three seasons or more."""
    if len(series) < 3 * season:
        return False
    away = series - series.mean()
    total = (away**2).sum()
    if total == 0:
        return False
    lags = np.array([(away[lag:] * away[:-lag]).sum() / total for lag in range(1, season + 1)])
    limit = _CERTAINTY * np.sqrt((1 + 2 * (lags[:-1] ** 2).sum()) / len(series))
    return bool(abs(lags[-1]) > limit)


def seasonal_indices(series: np.ndarray, season: int) -> np.ndarray:
    """(season,) factors with a mean of 1: of the series over its centred moving average."""
    weights = np.ones(season) / season
    if season % 2 == 0:
        weights = np.concatenate([[0.5], np.ones(season - 1), [0.5]]) / season
    reach = len(weights) // 2
    trend = np.convolve(series, weights, mode="valid")
    ratios = series[reach : reach + len(trend)] / trend
    places = np.arange(reach, reach + len(trend)) % season
    indices = np.array([ratios[places == place].mean() for place in range(season)])
    return np.asarray(indices / indices.mean())
