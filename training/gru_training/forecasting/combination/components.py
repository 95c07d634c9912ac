"""Simple forecasters fitted on the training rows, of lengths and penalties that validate best.

All of them are linear in the window, so that the Gram matrix of the training windows is all that
fitting needs; see `gru_training.forecasting.baselines.ridge`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gru_training.forecasting.baselines.ridge import filled, stretches, window_gram
from gru_training.forecasting.combination.linear import (
    LinearForecaster,
    repeat_last,
    repeat_season,
)
from gru_training.forecasting.combination.smoothing import NAME as SMOOTHING
from gru_training.forecasting.combination.smoothing import fit_smoothing
from gru_training.forecasting.sources.sets import longest_lookback

RIDGE = "ridge"
PENALTIES = (0.3, 3.0, 30.0, 100.0, 300.0, 3000.0, 30000.0)
_SEASONS = (1, 2, 3, 4, 7, 14, 30)
_STEPS = (96, 336, 720)
"""Look-backs tried: so many seasons, and so many steps."""
_LONGEST = 720
_SMOOTHED_SEASONS, _FARTHEST = 6, 2000
"""Seasons that smoothing reads. A ridge regression tries as many steps, up to the farthest: where
smoothing makes the delivered model read them, the baseline to beat reads them, too."""
_MOST_OWN_COLUMNS, _LONGEST_OWN = 32, 192
"""Beyond which no column has a ridge regression to itself."""
_LONGEST_SMOOTHED = 160
_OWN_SMOOTHING = 4e7
"""K·L²·H beyond which no column has a smoothing to itself."""


@dataclass(frozen=True)
class LinearData:
    """What simple forecasters are fitted on and chosen by; all standardised."""

    values: np.ndarray
    """(rows, K) float64, NaN where a value is missing."""
    train: int
    """Rows to fit on."""
    origins: np.ndarray
    """(N,) first steps of the validation windows."""
    season: int
    horizon: int

    def windows(self, lookback: int) -> np.ndarray:
        """(N, L, K): what is read of the validation windows, missing values filled."""
        values = np.column_stack([filled(column) for column in self.values.T])
        rows = self.origins[:, np.newaxis] + np.arange(-lookback, 0)
        return values[np.maximum(rows, 0)]

    def futures(self) -> np.ndarray:
        """(N, H, K): what followed, NaN where it is missing."""
        return self.values[self.origins[:, np.newaxis] + np.arange(self.horizon)]


def lookbacks(season: int, horizon: int, train: int, most: int | None = None) -> list[int]:
    """The lengths to try, ascending.

    Args:
        season: Steps.
        horizon: Steps forecast.
        train: Training rows, which must hold more windows than the longest has steps.
        most: The longest that is allowed, which is then among them.
    """
    windows = longest_lookback(train, horizon)
    room = min(windows, _LONGEST)
    tried = {count * season for count in _SEASONS} | set(_STEPS)
    far = _SMOOTHED_SEASONS * season
    farther = {far} if _LONGEST < far <= min(windows, _FARTHEST) else set()
    if most is not None:
        return sorted({steps for steps in tried | farther if steps < most} | {most})
    fitting = {steps for steps in tried if max(2, horizon // 4) <= steps <= room}
    return sorted((fitting or {room}) | farther)


def fit_components(
    data: LinearData, most: int | None = None, own: bool = True
) -> list[LinearForecaster]:
    """The last value, the last season, ridge regressions and exponential smoothing.

    Args:
        data: Where to fit and to choose.
        most: The most steps that may be read; by default as many as the training rows allow.
        own: Also those that have a matrix for each column.
    """
    tried = lookbacks(data.season, data.horizon, data.train, most)
    forecasters = [repeat_last(data.horizon)]
    if most is None or data.season <= most:
        forecasters.append(repeat_season(data.season, data.horizon))
    return [*forecasters, *_ridges(data, tried, own), *_smoothings(data, most, own)]


def refitted(forecaster: LinearForecaster, data: LinearData) -> LinearForecaster:
    """The same kind of forecaster, of the same length, fitted on other rows."""
    lookback, own = forecaster.lookback, forecaster.own
    if forecaster.name not in (RIDGE, SMOOTHING):
        return forecaster
    grams = _centred(_grams(data, lookback, own), lookback)
    if forecaster.name == SMOOTHING:
        return fit_smoothing(grams, forecaster.season, lookback, data.horizon, own)
    return _ridge(_solver(grams, lookback)(forecaster.penalty), forecaster.penalty, own)


def _ridges(data: LinearData, tried: list[int], may_own: bool) -> list[LinearForecaster]:
    """The best one for all columns together, and the best with a matrix for each."""
    found: list[LinearForecaster] = []
    K = data.values.shape[1]
    windows = data.windows(tried[-1])
    last = windows[:, -1:]
    # Laid out once as all of them read it.
    read, ahead = (
        np.ascontiguousarray(np.moveaxis(values - last, 2, 0))
        for values in (windows, data.futures())
    )
    for own in (False, True) if may_own and 1 < K <= _MOST_OWN_COLUMNS else (False,):
        best: tuple[float, LinearForecaster] | None = None
        for lookback in tried:
            if own and lookback > _LONGEST_OWN:
                continue
            of_length = _centred(_grams(data, lookback, own), lookback)
            solved = _solver(of_length, lookback)
            for penalty in PENALTIES:
                ridge = _ridge(solved(penalty), penalty, own)
                error = float(np.nanmean((ridge.beyond_last(read) - ahead) ** 2))
                if best is None or error < best[0]:
                    best = error, ridge
        if best is not None:
            found.append(best[1])
    return found


def _solver(grams: np.ndarray, lookback: int) -> Callable[[float], np.ndarray]:
    """The regressions (K, L, H) by their penalty, of centred Gram matrices."""
    values, vectors = np.linalg.eigh(grams[:, :lookback, :lookback])
    turned = np.swapaxes(vectors, 1, 2) @ grams[:, :lookback, lookback:]
    return lambda penalty: vectors @ (turned / (np.maximum(values, 0) + penalty)[..., np.newaxis])


def _ridge(kernels: np.ndarray, penalty: float, own: bool) -> LinearForecaster:
    whose = ", for each column by itself" if own else ""
    detail = f"look-back {kernels.shape[1]}, penalty {penalty:g}{whose}"
    return LinearForecaster(RIDGE, detail, kernels if own else kernels[0], penalty=penalty)


def _smoothings(data: LinearData, most: int | None, may_own: bool) -> list[LinearForecaster]:
    """With a season and without, for all columns together and, where they are few, for each."""
    K, season, horizon = data.values.shape[1], data.season, data.horizon
    room = min(most or data.train, data.train - horizon - season // 2)
    found = []
    for steps in sorted({season, 1}, reverse=True):
        wanted = max(_SMOOTHED_SEASONS * steps, min(_LONGEST_SMOOTHED, 8 * horizon))
        lookback = min(room, max(wanted if steps == 1 else min(wanted, 8 * steps), 2 * steps))
        if lookback < max(2 * steps, 4):
            continue
        own = may_own and K > 1 and K * lookback**2 * horizon <= _OWN_SMOOTHING
        grams = _centred(_grams(data, lookback, own), lookback)
        found += [
            fit_smoothing(grams, steps, lookback, horizon, each)
            for each in ((False, True) if own else (False,))
        ]
    return found


def _grams(data: LinearData, lookback: int, own: bool) -> np.ndarray:
    """(K or 1, L + H, L + H): of the training windows without missing values.

    A column without any is filled, where it has a matrix to itself or none has such windows.
    """
    width = lookback + data.horizon
    columns = data.values[: data.train].T
    pieces = [[each for each in stretches(column) if len(each) >= width] for column in columns]
    nowhere = not any(pieces)
    found = np.zeros((len(columns) if own else 1, width, width))
    for number, (column, whole) in enumerate(zip(columns, pieces, strict=True)):
        if not whole and (own or nowhere) and np.isfinite(column).any():
            whole = [filled(column)]
        for piece in whole:
            found[number if own else 0] += window_gram(piece, width)
    return found


def _centred(grams: np.ndarray, lookback: int) -> np.ndarray:
    """The same with the last of the L values subtracted from each window."""
    last = grams[:, :, lookback - 1]
    return np.asarray(
        grams
        - last[:, :, np.newaxis]
        - last[:, np.newaxis]
        + last[:, lookback - 1][:, np.newaxis, np.newaxis]
    )
