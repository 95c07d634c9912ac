"""Forecasters that are linear in the window: ridge regressions, smoothing and the theta method.

They map windows from which their last value is subtracted, so that a value added to the whole
window is added to the forecast. Fitting needs only the Gram matrix of the training windows, which
can be computed without windows: its entry (i, j) is a sum of products of the series with itself j -
i steps later, and the next entry on the diagonal differs by the last product and the first.

Exponential smoothing has level, trend and season, all additive (Hyndman et al. 2008, "Forecasting
with Exponential Smoothing: The State Space Approach", section 2.3), begun anew in each window: the
states, and so the forecasts, are then linear in the window. The squared error over all training
windows follows from their Gram matrix, and hundreds of parameters are tried at the cost of a few.
Short series have also `gru_training.forecasting.smoothing`.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gru_training.forecasting.sets import longest_lookback
from gru_training.forecasting.smoothing import (
    Smoothing,
    Theta,
    choose_smoothing,
    choose_theta,
    enough_for_season,
)


@dataclass(frozen=True)
class LinearForecaster:
    """A matrix from the last L values of a column to its next H.

    A value added to the whole window is added to the forecast.
    """

    name: str
    """Kind of forecaster that the matrix stands for."""
    detail: str
    """Choices made for the forecaster, such as `look-back 336, penalty 100`."""
    kernel: np.ndarray
    """(L, H), the same for all columns, or (K, L, H); from windows with their last value subtracted
    to forecasts with the same value subtracted."""
    season: int = 1
    """Steps of a season, for exponential smoothing, ETS and theta."""
    penalty: float = 0.0
    """Penalty of a ridge regression."""

    @property
    def own(self) -> bool:
        """True if each column has a matrix of its own."""
        return self.kernel.ndim == 3

    @property
    def lookback(self) -> int:
        """L, the steps read."""
        return int(self.kernel.shape[-2])

    def __call__(self, windows: np.ndarray) -> np.ndarray:
        """Forecast (N, H, K) from standardised windows (N, T, K) without NaN, T at least L."""
        last = windows[:, -1:]
        by_column = np.moveaxis(windows[:, -self.lookback :] - last, 2, 0)
        return np.asarray(np.moveaxis(self.beyond_last(by_column), 0, 2) + last)

    def beyond_last(self, windows: np.ndarray) -> np.ndarray:
        """Forecast (K, N, H) from windows (K, N, T), both minus the last value of the window."""
        return np.asarray(windows[..., -self.lookback :] @ self.kernel)


def weighted_sum(forecasters: list[LinearForecaster], weights: np.ndarray) -> np.ndarray:
    """Compute the kernel of a weighted sum, as long as the longest.

    Missing weight is given to the last value.

    Returns:
        (L, H), or (K, L, H) if one of them has a matrix for each column.
    """
    lookback = max(each.lookback for each in forecasters)
    total: np.ndarray | float = 0.0
    for each, weight in zip(forecasters, weights, strict=True):
        missing = lookback - each.lookback
        before = [(0, 0)] * (each.kernel.ndim - 2) + [(missing, 0), (0, 0)]
        total = total + weight * np.pad(each.kernel, before)
    return np.asarray(total)


LAST_VALUE, SEASONAL_NAIVE = "last value", "seasonal naive"


def repeat_last(horizon: int) -> LinearForecaster:
    """Make the forecaster that repeats the last value."""
    return LinearForecaster(LAST_VALUE, "", np.zeros((1, horizon)))


def repeat_season(season: int, horizon: int) -> LinearForecaster:
    """Make the forecaster that repeats the last season."""
    kernel = np.zeros((season, horizon))
    steps = np.arange(horizon)
    kernel[steps % season, steps] = 1.0
    return LinearForecaster(SEASONAL_NAIVE, f"season {season}", kernel)


PENALTY = 100.0
"""Penalty of the squared coefficients, beside squared errors of all windows, standardised."""


def fit_ridge(
    rows: np.ndarray, lookback: int, horizon: int, penalty: float = PENALTY
) -> LinearForecaster:
    """Fit the regression with the least squared error on every window of some rows.

    Args:
        rows: (N, K) standardised values of the targets. Windows with NaN in them are left out;
            where a column has no other ones, its NaN are first replaced by the value before.
        lookback: L.
        horizon: H.
        penalty: Penalty of the squared coefficients, above 0.
    """
    width = lookback + horizon
    gram = np.zeros((width, width))
    for column in rows.astype(np.float64).T:
        pieces = [piece for piece in stretches(column) if len(piece) >= width]
        for stretch in pieces or [filled(column)]:
            gram += window_gram(stretch, width)
    (gram,) = _centred(gram[np.newaxis], lookback)
    penalised = gram[:lookback, :lookback] + penalty * np.eye(lookback)
    kernel = np.linalg.solve(penalised, gram[:lookback, lookback:])
    return LinearForecaster(RIDGE, f"look-back {lookback}", kernel, penalty=penalty)


def window_gram(values: np.ndarray, width: int) -> np.ndarray:
    """Compute the sum of w·wᵀ over all windows w of a column, (width, width).

    Args:
        values: (N,) float64, N at least `width`.
        width: Steps of a window.
    """
    windows = len(values) - width + 1
    gram = np.empty((width, width))
    gram[0] = gram[:, 0] = np.correlate(values, values[:windows])
    first, last = values[: width - 1], values[windows:]
    for i in range(width - 1):
        gram[i + 1, 1:] = gram[i, :-1] + last[i] * last - first[i] * first
    return gram


def stretches(column: np.ndarray) -> list[np.ndarray]:
    """Return the longest pieces without NaN."""
    seen = np.isfinite(column)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], seen, [False]]).astype(int)))
    return [column[begin:end] for begin, end in edges.reshape(-1, 2)]


def filled(column: np.ndarray) -> np.ndarray:
    """Replace NaN by the value before, or at the beginning by the first one."""
    seen = np.flatnonzero(np.isfinite(column))
    place = np.searchsorted(seen, np.arange(len(column)), side="right") - 1
    return column[seen[np.maximum(place, 0)]]


SMOOTHING = "exponential smoothing"
_ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
_BETAS = (0.0, 0.01, 0.05, 0.2)
_GAMMAS = (0.0, 0.05, 0.15, 0.35, 0.7)
_DAMPINGS = (0.8, 0.9, 0.97, 1.0)
_STEPS, _CANDIDATES = 24, 40
"""Number of steps ahead by which all parameters are compared, and number of parameters that are
then compared by all steps.
"""
_WEIGHTS_AT_ONCE = 3_000_000
"""Number of weights of several parameters' components that are held in memory at once."""


class SmoothingParameters(NamedTuple):
    """Parameters of the smoothing of a window."""

    alpha: float
    """Smoothing parameter of the level."""
    beta: float
    """Smoothing parameter of the trend."""
    phi: float
    """Share of the trend that remains after a step; 1 keeps it."""
    gamma: float
    """Smoothing parameter of the season."""


def parameter_grid(season: int) -> list[SmoothingParameters]:
    """List the parameters to try; without a season (1) there is no gamma."""
    gammas = _GAMMAS if season > 1 else (0.0,)
    return [
        SmoothingParameters(*values)
        for values in itertools.product(_ALPHAS, _BETAS, _DAMPINGS, gammas)
        if values[1] <= values[0]
    ]


def smoothing_kernels(
    parameters: list[SmoothingParameters], season: int, lookback: int, horizon: int
) -> np.ndarray:
    """Compute the matrices (P, L, H) of P parameters.

    Level and trend begin with the means of the first two seasons, the seasonal states with the
    residuals of the first one.

    Args:
        parameters: P of them.
        season: Steps; 1: none.
        lookback: L, at least two seasons, or 2.
        horizon: H.
    """
    return _components(parameters, season, lookback, np.arange(1, horizon + 1)).kernels()


def fit_smoothing(gram: np.ndarray, season: int, lookback: int, horizon: int) -> LinearForecaster:
    """Find the smoothing that is best on the windows with this Gram matrix.

    Args:
        gram: (L + H, L + H), the sum of w·wᵀ over windows w with the last of the L values
            subtracted.
        season: Steps of the season; 1: none.
        lookback: L.
        horizon: H.
    """
    grid, every = parameter_grid(season), np.arange(1, horizon + 1)
    read, both = gram[:lookback, :lookback], gram[:lookback, lookback:]
    if horizon > _STEPS:  # first by some steps ahead, then the best of them by all
        some = np.linspace(1, horizon, _STEPS).astype(int)
        order = _errors(grid, season, read, both, some).argsort(kind="stable")
        grid = [grid[place] for place in sorted(order[:_CANDIDATES])]
    best = grid[_errors(grid, season, read, both, every).argmin()]
    (kernel,) = smoothing_kernels([best], season, lookback, horizon)
    detail = f"season {season}" if season > 1 else "no season"
    detail += f", α {best.alpha:g}, β {best.beta:g}, φ {best.phi:g}"
    detail += f", γ {best.gamma:g}" if season > 1 else ""
    return LinearForecaster(SMOOTHING, detail, kernel, season)


def _errors(
    parameters: list[SmoothingParameters],
    season: int,
    read: np.ndarray,
    both: np.ndarray,
    steps: np.ndarray,
) -> np.ndarray:
    """Compute errors (P,) like `_Components.errors`, for P parameters and these steps ahead."""
    lookback = len(read)
    at_once = max(1, _WEIGHTS_AT_ONCE // (lookback * (2 + min(season, len(steps)))))
    pieces = (
        _components(parameters[start : start + at_once], season, lookback, steps)
        for start in range(0, len(parameters), at_once)
    )
    return np.concatenate([each.errors(read, both[:, steps - 1]) for each in pieces])


class _Components(NamedTuple):
    """Components of the forecasts of P smoothings, as weights of a window's L values."""

    level: np.ndarray
    """(P, L)"""
    trend: np.ndarray
    """(P, L)"""
    seasonal: np.ndarray
    """(P, L, S): a season's components, or fewer if there are fewer steps ahead."""
    damping: np.ndarray
    """(P, H): how often the trend is added by each of the H steps ahead."""
    place: np.ndarray
    """(H,): number of the seasonal component of each step ahead."""

    def kernels(self) -> np.ndarray:
        """Return the weights (P, L, H) of all steps ahead."""
        growth = self.trend[..., np.newaxis] * self.damping[:, np.newaxis]
        return np.asarray(self.level[..., np.newaxis] + growth + self.seasonal[..., self.place])

    def errors(self, read: np.ndarray, both: np.ndarray) -> np.ndarray:
        """Compute squared errors (P,) over all windows, without the part that all parameters share.

        Beyond a season all steps ahead consist of the same components, so 2 + S columns are
        multiplied by the Gram matrix instead of H.

        Args:
            read: (L, L), the Gram matrix of the values read.
            both: (L, H), of these and the values ahead.
        """
        horizon = both.shape[1]
        at = np.eye(self.seasonal.shape[2])[self.place]  # (H, S)
        steps, growth = at.sum(axis=0), self.damping @ at  # (S,), (P, S)
        turned = read @ np.concatenate(
            [self.level[..., np.newaxis], self.trend[..., np.newaxis], self.seasonal], axis=2
        )
        by_level = np.einsum("plc,pl->pc", turned, self.level)
        by_trend = np.einsum("plc,pl->pc", turned, self.trend)
        by_itself = np.einsum("pls,pls->ps", turned[..., 2:], self.seasonal)
        squares = (
            horizon * by_level[:, 0]
            + (self.damping**2).sum(axis=1) * by_trend[:, 1]
            + by_itself @ steps
            + 2 * self.damping.sum(axis=1) * by_level[:, 1]
            + 2 * by_level[:, 2:] @ steps
            + 2 * (growth * by_trend[:, 2:]).sum(axis=1)
        )
        products = (
            self.level @ both.sum(axis=1)
            + (self.damping * (self.trend @ both)).sum(axis=1)
            + np.einsum("pls,ls->p", self.seasonal, both @ at)
        )
        return np.asarray(squares - 2 * products)


def _components(
    parameters: list[SmoothingParameters], season: int, lookback: int, steps: np.ndarray
) -> _Components:
    """Compute the components of `smoothing_kernels`, for some steps ahead (H,), from 1.

    The recursion is the same in every step. The effect of a value on the final states therefore
    depends only on its distance from the end, and everything follows from the responses to one
    value and to the states before the window.
    """
    responses = _responses(parameters, season, lookback)
    first = np.concatenate(_first_states(season, lookback))  # (2 + season, L)
    first = first[:, : 2 * season]  # the others are zero
    distance = lookback - 1 - np.arange(lookback)

    def component(state: int, steps_before_end: np.ndarray) -> np.ndarray:
        """Repeat the states (P, L, D) D times."""
        to_value, to_level, to_trend, to_season = responses[state]  # (P, L)
        since = distance[:, np.newaxis] - steps_before_end
        end = lookback - 1 - steps_before_end
        weights = np.where(since >= 0, to_value[:, np.maximum(since, 0)], 0.0)
        to_first = np.concatenate(
            [
                to_level[:, np.newaxis, end],
                to_trend[:, np.newaxis, end],
                to_season[:, end - np.arange(season)[:, np.newaxis]],
            ],
            axis=1,
        )
        weights[:, : 2 * season] += first.T @ to_first
        return weights

    phi = np.array([each.phi for each in parameters])[:, np.newaxis]
    damping = np.cumsum(phi ** np.arange(1, steps.max() + 1), axis=1)[:, steps - 1]
    places, place = np.unique((steps - 1) % season, return_inverse=True)
    now = np.zeros(1, int)
    return _Components(
        component(0, now)[..., 0],
        component(1, now)[..., 0],
        component(2, season - 1 - places),  # last updated a season before they count
        damping,
        place,
    )


def _responses(parameters: list[SmoothingParameters], season: int, steps: int) -> np.ndarray:
    """Compute (3, 4, P, steps): level, trend and the step's seasonal state after each step.

    They respond to a value of 1 in the first step, or to a state of 1 before it: the level, the
    trend, the seasonal state of the first step. All other values are zero.
    """
    alpha, beta, phi, gamma = np.array(parameters).T
    value, level, trend, seasonal = np.eye(4)[..., np.newaxis]  # (4, 1)
    states = np.zeros((3, steps, 4, len(parameters)))
    for t in range(steps):
        if t > 0:
            value = seasonal = np.zeros((4, 1))
        if t >= season:
            seasonal = states[2, t - season]
        expected = level + phi * trend
        error = value - expected - seasonal
        level = expected + alpha * error
        trend = phi * trend + beta * error
        states[:, t] = level, trend, seasonal + gamma * error
    return np.moveaxis(states, 1, -1)


def _first_states(season: int, lookback: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Express the first level and trend (1, L) and seasonal states (season, L) by the window.

    They are the states of the step before the window.
    """
    values = np.eye(lookback)
    if season == 1:
        return values[:1], np.zeros((1, lookback)), np.zeros((1, lookback))
    first = values[:season].mean(axis=0, keepdims=True)
    second = values[season : 2 * season].mean(axis=0, keepdims=True)
    trend = (second - first) / season
    middle = (season - 1) / 2
    places = np.arange(season)[:, np.newaxis] - middle
    seasonal = values[:season] - first - trend * places
    return first - trend * (middle + 1), trend, seasonal


RIDGE, ETS, OWN_ETS, THETA = "ridge", "ETS", "ETS, own parameters", "theta"
PENALTIES = (0.3, 3.0, 30.0, 100.0, 300.0, 3000.0, 30000.0)
_SEASONS = (1, 2, 3, 4, 7, 14, 30)
_LOOKBACKS = (96, 336, 720)
"""Look-backs that are tried: numbers of seasons, and numbers of steps."""
_MAX_LOOKBACK = 720
_SMOOTHED_SEASONS, _FARTHEST = 6, 2000
"""Number of seasons that smoothing reads. A ridge regression tries up to as many steps: if
smoothing makes the delivered model read them, the baseline to beat reads them too.
"""
MOST_OWN_COLUMNS, _LONGEST_OWN = 32, 192
"""Columns, and steps of a ridge regression, beyond which no column has a matrix to itself."""
_LEAST_SMOOTHED, _LONGEST_SMOOTHED = 4, 160
_SHORT = 1000
"""Training rows up to which ETS and the theta method count; of more, ridge regressions learn what
they know."""
_STEPS_AHEAD = 8
"""Steps ahead by which the ETS of a single column is chosen."""


@dataclass(frozen=True)
class LinearData:
    """Standardised values on which simple forecasters are fitted and chosen."""

    values: np.ndarray
    """(rows, K) float64, NaN where a value is missing."""
    train: int
    """Rows to fit on."""
    origins: np.ndarray
    """(N,) first steps of the validation windows."""
    season: int
    horizon: int

    def windows(self, lookback: int) -> np.ndarray:
        """Return the inputs (N, L, K) of the validation windows, with missing values filled."""
        values = np.column_stack([filled(column) for column in self.values.T])
        rows = self.origins[:, np.newaxis] + np.arange(-lookback, 0)
        return values[np.maximum(rows, 0)]

    def futures(self) -> np.ndarray:
        """Return what followed, (N, H, K), NaN if it is missing."""
        return self.values[self.origins[:, np.newaxis] + np.arange(self.horizon)]


def lookbacks(season: int, horizon: int, train: int, most: int | None = None) -> list[int]:
    """Return the lengths to try, ascending.

    Args:
        season: Steps.
        horizon: Steps forecast.
        train: Training rows, which must hold more windows than the longest has steps.
        most: The longest that is allowed, which is then among them.
    """
    windows = longest_lookback(train, horizon)
    room = min(windows, _MAX_LOOKBACK)
    tried = {count * season for count in _SEASONS} | set(_LOOKBACKS)
    far = _SMOOTHED_SEASONS * season
    farther = {far} if _MAX_LOOKBACK < far <= min(windows, _FARTHEST) else set()
    if most is not None:
        return sorted({steps for steps in tried | farther if steps < most} | {most})
    fitting = {steps for steps in tried if max(2, horizon // 4) <= steps <= room}
    return sorted((fitting or {room}) | farther)


def fit_components(
    folds: Sequence[LinearData], most: int | None = None, own: bool = True
) -> list[tuple[LinearForecaster, ...]]:
    """Return the last value, the last season, ridge regressions, smoothing and the theta method.

    Args:
        folds: Rows to fit on and windows after them to choose by, the most rows last.
        most: The most steps that may be read; by default as many as the training rows allow.
        own: Whether to fit also a ridge regression with a matrix for each column.

    Returns:
        Each of them as it is fitted in every fold.
    """
    data, columns = folds[-1], folds[-1].values.shape[1]
    tried = lookbacks(data.season, data.horizon, data.train, most)
    found = [(repeat_last(data.horizon),) * len(folds)]
    if most is None or data.season <= most:
        found.append((repeat_season(data.season, data.horizon),) * len(folds))
    found += _ridges(folds, tried, own)
    short = data.train <= _SHORT and columns <= MOST_OWN_COLUMNS
    if not short or columns == 1:
        found += zip(*(_smoothings(fold, most) for fold in folds), strict=False)
    if short and _room(folds[0], most) >= _LEAST_SMOOTHED:
        for name in (ETS, THETA) if columns == 1 else (ETS, OWN_ETS, THETA):
            found.append(tuple(_by_column(name, fold, _room(fold, most)) for fold in folds))
    return found


def refitted(forecaster: LinearForecaster, data: LinearData) -> LinearForecaster:
    """Fit a forecaster of the same kind and length on other rows."""
    lookback, own = forecaster.lookback, forecaster.own
    if forecaster.name in (ETS, OWN_ETS, THETA):
        return _by_column(forecaster.name, data, lookback)
    if forecaster.name not in (RIDGE, SMOOTHING):
        return forecaster
    grams = _centred(_grams(data, lookback, own), lookback)
    if forecaster.name == SMOOTHING:
        return fit_smoothing(grams[0], forecaster.season, lookback, data.horizon)
    return _ridge(_solver(grams, lookback)(forecaster.penalty), forecaster.penalty, own)


def _room(data: LinearData, most: int | None) -> int:
    """Return the steps that ETS and the theta method read."""
    wanted = max(_SMOOTHED_SEASONS * data.season, min(_LONGEST_SMOOTHED, 8 * data.horizon))
    return min(most or data.train, data.train - data.horizon, wanted)


def _by_column(name: str, data: LinearData, lookback: int) -> LinearForecaster:
    """Fit ETS or the theta method, with a matrix for each column.

    Args:
        name: Name of the method.
        data: Series to fit on.
        lookback: Steps read, L; of a column with fewer values as many as it has.
    """
    columns = []
    for column in data.values[: data.train].T:
        seen = np.flatnonzero(np.isfinite(column))
        columns.append(filled(column[seen[0] : seen[-1] + 1]) if len(seen) else np.zeros(2))
    season = data.season if enough_for_season(lookback, data.season) else 1
    chosen = _parameters(name, columns, season, data.horizon)
    kernels = np.zeros((len(columns), lookback, data.horizon))
    for matrix, column, parameters in zip(kernels, columns, chosen, strict=True):
        steps = min(lookback, max(len(column), _LEAST_SMOOTHED))
        matrix[-steps:] = parameters.kernel(steps, data.horizon)
    detail = f"look-back {lookback}"
    if len(columns) > 1:
        return LinearForecaster(name, f"{detail}, for each column by itself", kernels, data.season)
    shown = chosen[0]._asdict()
    detail += "".join(f", {key} {value:.3g}" for key, value in shown.items() if value)
    return LinearForecaster(name, detail, kernels[0], data.season)


def _parameters(
    name: str, columns: Sequence[np.ndarray], season: int, horizon: int
) -> Sequence[Smoothing | Theta]:
    """Choose parameters of ETS or the theta method for each column."""
    if name == THETA:
        return choose_theta(columns, season)
    # Beside others one step ahead tells more: what is chosen by many steps varies more.
    farthest = horizon if len(columns) == 1 else 1
    ahead = np.linspace(1, farthest, min(farthest, _STEPS_AHEAD)).round().astype(int)
    return choose_smoothing(columns, season, ahead.tolist(), shared=name == ETS)


def _ridges(
    folds: Sequence[LinearData], tried: list[int], may_own: bool
) -> list[tuple[LinearForecaster, ...]]:
    """Return the best one for all columns, and the best with a matrix for each, in each fold."""
    found = list[tuple[LinearForecaster, ...]]()
    K = folds[0].values.shape[1]
    pairs = []
    for fold in folds:  # laid out once as all of them read it
        windows = fold.windows(tried[-1])
        both = windows - windows[:, -1:], fold.futures() - windows[:, -1:]
        pairs.append([np.ascontiguousarray(np.moveaxis(each, 2, 0)) for each in both])
    for own in (False, True) if may_own and 1 < K <= MOST_OWN_COLUMNS else (False,):
        best: tuple[float, tuple[LinearForecaster, ...]] | None = None
        for lookback in tried:
            if own and lookback > _LONGEST_OWN:
                continue
            solvers = []
            for fold in folds:
                steps = lookback
                if fold is not folds[-1]:
                    steps = min(lookback, longest_lookback(fold.train, fold.horizon))
                solvers.append(_solver(_centred(_grams(fold, steps, own), steps), steps))
            for penalty in PENALTIES:
                ridges = tuple(_ridge(solved(penalty), penalty, own) for solved in solvers)
                squares = [
                    (ridge.beyond_last(read) - ahead).ravel() ** 2
                    for ridge, (read, ahead) in zip(ridges, pairs, strict=True)
                ]
                error = float(np.nanmean(np.concatenate(squares)))
                if best is None or error < best[0]:
                    best = error, ridges
        if best is not None:
            found.append(best[1])
    return found


def _solver(grams: np.ndarray, lookback: int) -> Callable[[float], np.ndarray]:
    """Solve the regressions (K, L, H) by their penalty, from centred Gram matrices."""
    values, vectors = np.linalg.eigh(grams[:, :lookback, :lookback])
    turned = np.swapaxes(vectors, 1, 2) @ grams[:, :lookback, lookback:]
    return lambda penalty: vectors @ (turned / (np.maximum(values, 0) + penalty)[..., np.newaxis])


def _ridge(kernels: np.ndarray, penalty: float, own: bool) -> LinearForecaster:
    whose = ", for each column by itself" if own else ""
    detail = f"look-back {kernels.shape[1]}, penalty {penalty:g}{whose}"
    return LinearForecaster(RIDGE, detail, kernels if own else kernels[0], penalty=penalty)


def _smoothings(data: LinearData, most: int | None) -> list[LinearForecaster]:
    """Fit a smoothing with a season and one without."""
    season, horizon = data.season, data.horizon
    room = min(most or data.train, data.train - horizon - season // 2)
    found = []
    for steps in sorted({season, 1}, reverse=True):
        wanted = max(_SMOOTHED_SEASONS * steps, min(_LONGEST_SMOOTHED, 8 * horizon))
        lookback = min(room, max(wanted if steps == 1 else min(wanted, 8 * steps), 2 * steps))
        if lookback >= max(2 * steps, 4):
            (gram,) = _centred(_grams(data, lookback, False), lookback)
            found.append(fit_smoothing(gram, steps, lookback, horizon))
    return found


def _grams(data: LinearData, lookback: int, own: bool) -> np.ndarray:
    """Compute Gram matrices (K or 1, L + H, L + H) of the training windows without missing values.

    A column without any such window is filled if it has a matrix of its own or no column has such
    windows.
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
    """Subtract the last of the L values from each window."""
    last = grams[:, :, lookback - 1]
    return np.asarray(
        grams
        - last[:, :, np.newaxis]
        - last[:, np.newaxis]
        + last[:, lookback - 1][:, np.newaxis, np.newaxis]
    )
