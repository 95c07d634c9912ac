"""The plan of a training, which follows from the series: transform, look-back, simple forecasters.

Where validation windows are few, simple forecasters are also compared in folds before these
(rolling origins, Tashman 2000, "Out-of-sample tests of forecasting accuracy"), and networks have no
weight where these are fewer than a handful.

The weights of a combination follow from the forecasts of its components for windows that they did
not learn: stacking after Breiman (1996), "Stacked regressions", with non-negative weights that sum
to one. The fewer independent windows there are to distinguish the components, the closer the
weights are to those that follow from the size of each one's errors alone (Bates and Granger 1969,
"The combination of forecasts"). They minimise the loss that was requested.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from gru_training.data.series import Series
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.config import Deliver, ForecastingConfig, Transform
from gru_training.forecasting.data import ForecastingData, never_negative, prepare
from gru_training.forecasting.intervals import pooled_offsets
from gru_training.forecasting.linear import (
    ETS,
    LAST_VALUE,
    MOST_OWN_COLUMNS,
    OWN_ETS,
    RIDGE,
    SEASONAL_NAIVE,
    SMOOTHING,
    THETA,
    LinearData,
    LinearForecaster,
    fit_components,
)
from gru_training.forecasting.losses import COUNT_LOSSES, Criterion, SquaredError, criterion_of
from gru_training.forecasting.series_check import window_origins
from gru_training.forecasting.sets import longest_lookback
from gru_training.forecasting.windows import Windows

if TYPE_CHECKING:
    import keras

    from gru_training.forecasting.preprocessor import SeriesPreprocessor
_MIN_WEIGHT = 0.02
"""Least weight of a component; components below are dropped, as they would cost more than they
gain.
"""
_SUM = 1e3
"""Weight of the condition that the weights sum to one, relative to errors of size one."""
_MOST_ROUNDS, _STEADY = 30, 1e-3
"""Largest change of a weight at which the iteration of least squares ends."""


def stacking_weights(
    errors: np.ndarray, independent: float, criterion: Criterion | None = None
) -> np.ndarray:
    """Compute weights (M,) of M components, non-negative and with sum 1.

    On the given windows, the weighted mean has at most the loss of the best component.

    Args:
        errors: (n, M): forecast minus truth of each component.
        independent: Approximate number of windows that do not overlap.
        criterion: The loss; by default the squared error.
    """
    criterion = criterion or SquaredError()
    losses = [criterion.loss(each) for each in errors.T]
    best = min(losses)
    strength = 1 / max(1.0, independent)
    for _ in range(20 if best > 0 else 0):
        weights = _least(errors, strength, criterion)
        weights = np.where(weights < _MIN_WEIGHT, 0, weights)
        weights /= weights.sum()
        if criterion.loss(errors @ weights) <= best * (1 + 1e-9):
            return weights
        strength /= 2
    only = np.zeros(errors.shape[1])
    only[int(np.argmin(losses))] = 1.0
    return only


def _least(errors: np.ndarray, strength: float, criterion: Criterion) -> np.ndarray:
    """Find the weights with the least loss by iteratively reweighted least squares."""
    count = errors.shape[1]
    weights = np.full(count, 1 / count)
    for _ in range(_MOST_ROUNDS):
        counted = errors * criterion.importance(errors @ weights)[:, np.newaxis]
        products = errors.T @ counted / len(errors)
        before, weights = weights, _simplex(products / np.diag(products).min(), strength)
        if np.abs(weights - before).max() < _STEADY:
            break
    return weights


def _simplex(products: np.ndarray, strength: float) -> np.ndarray:
    """Find the weights with the least w·P·w, with the diagonal of P raised by a share."""
    count = len(products)
    penalised = products + (strength + 1e-9) * np.diag(np.diag(products))
    rows = np.vstack([np.linalg.cholesky(penalised).T, np.full((1, count), _SUM)])
    weights, _ = nnls(rows, np.append(np.zeros(count), _SUM))
    return np.asarray(weights / weights.sum())


_CLOSE_LOSS_RATIO = 0.95
"""Least ratio of two losses at which transforms are compared by their intervals."""
_MAX_RELATIVE_LOSS = 0.98
"""Greatest ratio of the interval losses with and without a transform at which it is chosen."""
_MAX_ZERO_SHARE = 0.01
"""Share of zeros among non-negative values from which zero counts as a bound."""
_ENOUGH_WINDOWS, _MOST_FOLDS, _FEWEST_ROWS = 8, 8, 12
"""Independent windows of a column to weigh simple forecasters by, as far as there are rows for
them; folds that they are taken of; and rows to fit on."""
_HANDFUL = 5
"""Independent windows below which networks are given no weight."""
_MOST_WINDOWS, _MOST_VALUES = 1000, 20_000_000
"""Greatest number of validation windows, and of values in them, for comparisons."""
_MAX_LOOKBACK = 720
_LONGEST_NETWORK = 336
"""Most steps that a network reads, to limit its time; the ridge regression reads earlier ones."""


@dataclass(frozen=True)
class InitialWeights:
    """Scale and weights with which a training begins; by default fitted and drawn."""

    config: ForecastingConfig
    """Settings of the training that suit the networks."""
    scale: "SeriesPreprocessor | None" = None
    """Scale of the series for the networks."""
    model: "keras.Model | None" = None
    """Model that holds the networks."""
    lookback: int | None = None
    """Steps that each network reads."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """Values for `metrics.json`."""


class _Tried(NamedTuple):
    """Simple forecasters under a transform."""

    candidates: list[LinearForecaster]
    weights: np.ndarray
    loss: float
    """Loss on the windows of all folds, with these weights, by the configured criterion."""
    interval_loss: float
    """Mean pinball loss on validation windows, with these weights."""
    criterion: str
    """Name of the loss for display."""
    folds: int
    """Number of folds that the weights follow from."""
    earlier: tuple[np.ndarray, np.ndarray] | None
    """Values and joint forecasts, (N, H, K) both, of the folds before the validation windows."""


@dataclass(frozen=True)
class Plan:
    """All decisions that a training needs."""

    config: ForecastingConfig
    """The complete settings."""
    data: ForecastingData
    initial: InitialWeights
    candidates: tuple[LinearForecaster, ...] = ()
    """Simple forecasters to combine with; empty if the network is used alone."""
    weights: tuple[float, ...] = ()
    """Weights of the simple forecasters without networks."""
    folds: int = 1
    """Number of folds that these weights follow from; 1: the validation windows alone."""
    earlier: tuple[np.ndarray, np.ndarray] | None = None
    """Values and forecasts, (N, H, K) both, in folds before the validation windows, if what is
    delivered is the simple forecasters with these weights.
    """
    transforms: tuple[tuple[str, float], ...] = ()
    """Transforms that were tried, with the joint loss of the simple forecasters under each."""
    criterion: str = ""
    """Name of that loss for display."""
    network_lookback: int = 0
    """Steps that a network reads; the run reads as many as the longest part."""
    training_lookback: int = 0
    """Steps that the training reads: those of the network, or of the regression under it."""
    networks: tuple[str, ...] | None = None
    """Names, in the delivered model, of the networks to train; None for all that the settings ask
    for.
    """

    @property
    def combines(self) -> bool:
        """True if there are forecasters to combine the network with."""
        return bool(self.candidates)

    def validation(self) -> Windows:
        """Return the validation windows on which forecasters are compared."""
        return compared_windows(self.data)


def make_plan(series: Series, initial: InitialWeights) -> Plan:
    """Decide what the settings leave open.

    Args:
        series: Series as read.
        initial: Settings of the training, and what it begins with.

    Raises:
        TrainingError: The series or the settings cannot be used; says why.
    """
    config = _settled(initial.config)
    data = prepare(series, config.data, initial.scale)
    if config.model.loss in COUNT_LOSSES:
        _require_counts(data, config)
    if series.panel and config.model.channel_embedding is None:
        config = replace(config, model=replace(config.model, channel_embedding=False))
    deliver = config.combination.deliver
    if not config.combination.combine or config.model.streams:
        if deliver not in ("combination", "network"):
            raise ConfigError(
                f"--deliver {deliver} needs a comparison with simple forecasters, which a network "
                "that answers tick by tick has not; leave out --architecture"
            )
        return _alone(data, config, initial)
    tried = {
        name: _tried(series, config, name, initial.scale) for name in _transforms(data, config)
    }
    best = _best(tried)
    candidates, weights = tried[best].candidates, tried[best].weights
    network = initial.lookback or config.data.lookback or _network_lookback(data, candidates)
    used = [each.lookback for each, weight in zip(candidates, weights, strict=True) if weight]
    if deliver == "network":
        used = []
    training = max(network, _ridge(candidates).lookback)
    settings = replace(config.data, transform=best, lookback=max([training, *used]))
    data = prepare(series, settings, initial.scale, planned=True)
    model = config.model.for_series(network, data.season, len(data.shape.targets))
    kept = [each.lookback <= data.shape.lookback for each in candidates]
    return Plan(
        replace(config, data=settings, model=model),
        data,
        initial,
        tuple(itertools.compress(candidates, kept)),
        tuple(weights[kept].tolist()),
        tried[best].folds,
        None if networks_count(data, config) else tried[best].earlier,
        tuple((name, of.loss) for name, of in tried.items()),
        tried[best].criterion,
        network,
        training,
    )


def _settled(config: ForecastingConfig) -> ForecastingConfig:
    """Complete the settings with those that follow from others.

    Raises:
        ConfigError: The settings contradict each other.
    """
    if config.data.past:
        config = replace(config, model=replace(config.model, channel_independent=False))
    ahead = {
        "--future": config.data.future,
        "--calendar": config.data.calendar,
        "--holidays": config.data.holidays,
    }
    flag = next((flag for flag, value in ahead.items() if value), None)
    if flag is not None and config.model.streams:
        raise ConfigError(
            f"{flag} must be left out of a network that answers tick by tick (--architecture "
            "one_shot without --linear-skip, with --normalisation none or difference)"
        )
    return _of_counts(config) if config.model.loss in COUNT_LOSSES else config


def _of_counts(config: ForecastingConfig) -> ForecastingConfig:
    """Adapt the settings to a loss of counts, which allows no transform."""
    loss, transform = config.model.loss, config.data.transform
    if transform not in ("auto", "nonnegative"):
        raise ConfigError(f"--loss {loss} needs --transform nonnegative, got {transform}")
    return replace(config, data=replace(config.data, transform="nonnegative"))


def _require_counts(data: ForecastingData, config: ForecastingConfig) -> None:
    transformed = data.preprocessor.transformed[list(data.shape.targets)]
    if not transformed.all():
        name = data.target_columns[int(transformed.argmin())]
        raise DataError(
            f"--loss {config.model.loss}: {data.series.source}, column {name!r}: expected counts, "
            "got values below zero"
        )


def compared_windows(data: ForecastingData) -> Windows:
    """Choose evenly spread validation windows, few enough for a comparison within seconds."""
    windows = data.windows("validation")
    of_window = len(data.shape.targets) * (_MAX_LOOKBACK + data.shape.horizon)
    most = max(30, min(_MOST_WINDOWS, _MOST_VALUES // of_window))
    places = np.linspace(0, len(windows) - 1, min(most, len(windows))).round().astype(int)
    return replace(windows, origins=windows.origins[places])


def linear_data(data: ForecastingData) -> LinearData:
    """Collect what simple forecasters read of a series."""
    return LinearData(
        data.standardised_targets.astype(np.float64),
        data.borders.part("train")[1],
        compared_windows(data).origins,
        data.season,
        data.shape.horizon,
    )


def independent_windows(data: ForecastingData) -> float:
    """Estimate the number of validation windows that do not overlap."""
    begin, end = data.borders.part("validation")
    return (end - begin) / data.shape.horizon


def few_windows(data: ForecastingData) -> bool:
    """Tell whether the validation windows are too few to show that networks help.

    Windows of other columns at the same time count as in
    `gru_training.forecasting.series_check.Support.independent`.
    """
    return independent_windows(data) * math.sqrt(len(data.shape.targets)) < _HANDFUL


def networks_count(data: ForecastingData, config: ForecastingConfig) -> bool:
    """Tell whether networks may have a weight."""
    deliver = config.combination.deliver
    return deliver == "network" or (deliver == "combination" and not few_windows(data))


def rolling_folds(data: ForecastingData) -> list[LinearData]:
    """Rows to fit simple forecasters on, and windows after them to weigh these by.

    The last fold is that of the training and validation part. Where its windows are few, as
    `few_windows` counts them, folds before it end within the training part, each with all windows
    until the next. Tables of very many columns have none.
    """
    last, (begin, end) = linear_data(data), data.borders.part("validation")
    horizon, season, columns = data.shape.horizon, data.season, len(data.shape.targets)
    missing = math.ceil(_ENOUGH_WINDOWS / math.sqrt(columns) * horizon) - (end - begin)
    first = max(begin - missing, begin // 2, 3 * season + horizon, _FEWEST_ROWS)
    count = min((begin - first) // horizon, _MOST_FOLDS)
    if columns > MOST_OWN_COLUMNS or missing <= 0 or count < 1:
        return [last]
    folds, targets = [], data.standardised_targets
    ends = np.linspace(first, begin, count + 1).round().astype(int)
    for rows, until in itertools.pairwise(ends.tolist()):
        origins = window_origins(targets, rows, min(until + horizon - 1, end), 1, horizon)
        if len(origins) and np.isfinite(targets[:rows]).any():
            folds.append(replace(last, train=rows, origins=origins))
    return [*folds, last]


def measured_errors(
    forecasts: Sequence[np.ndarray], windows: Windows, data: ForecastingData
) -> np.ndarray:
    """Compute forecast minus truth (n, M) of M forecasters, (N, H, K), wherever it is known."""
    measured, effects = data.preprocessor.measured, windows.effects_ahead()
    truth = windows.futures()
    seen = np.isfinite(truth)
    true = measured(truth, effects)[seen]
    return np.stack([measured(each, effects)[seen] - true for each in forecasts], axis=1)


def _alone(data: ForecastingData, config: ForecastingConfig, initial: InitialWeights) -> Plan:
    shape = data.shape
    transform: Transform = "none" if config.data.transform == "auto" else config.data.transform
    model = config.model.for_series(shape.lookback, data.season, len(shape.targets))
    settings = replace(config.data, transform=transform, lookback=shape.lookback)
    return Plan(
        replace(config, data=settings, model=model),
        data,
        initial,
        network_lookback=shape.lookback,
        training_lookback=shape.lookback,
    )


def _transforms(data: ForecastingData, config: ForecastingConfig) -> tuple[Transform, ...]:
    asked = config.data.transform
    if asked != "auto":
        return (asked,)
    rows = data.series.values[: data.borders.validation]
    possible = never_negative(rows, data.shape.targets)
    if not possible.any():
        return ("none",)
    values = rows[:, possible]
    bounded = (values == 0).mean() > _MAX_ZERO_SHARE or np.nanmax(values % 1) == 0  # as counts are
    return ("nonnegative" if bounded else "none", "log1p", "boxcox")


def _tried(
    series: Series,
    config: ForecastingConfig,
    transform: Transform,
    scale: "SeriesPreprocessor | None",
) -> _Tried:
    """Fit simple forecasters under a transform, and measure them together."""
    data = prepare(series, replace(config.data, transform=transform), scale)
    windows, folds = compared_windows(data), rolling_folds(data)
    fitted = fit_components(folds, config.data.lookback, own=not series.panel)
    allowed = _deliverable([each[-1].name for each in fitted], config.combination.deliver)
    errors, criteria, weights, answers = [], [], [], []
    for number, fold in enumerate(folds):
        ahead = replace(windows, origins=fold.origins)
        read = fold.windows(max(each[number].lookback for each in fitted))
        forecasts = [each[number](read) for each in fitted]
        answers.append(forecasts)
        errors.append(measured_errors(forecasts, ahead, data))
        criteria.append(criterion_of(config.model.loss, data, ahead))
        until = data.borders.part("validation")[1] if fold is folds[-1] else folds[number + 1].train
        independent = (until - fold.train) / data.shape.horizon
        of_fold = stacking_weights(errors[-1][:, allowed], independent, criteria[-1])
        weights.append(np.zeros(len(fitted)))
        weights[-1][allowed] = independent * of_fold
    together = np.sum(weights, axis=0)
    together /= together.sum()
    losses = [of.loss(each @ together) for of, each in zip(criteria, errors, strict=True)]
    joint = [np.tensordot(together, of_fold, 1) for of_fold in answers]
    earlier = None
    if len(folds) > 1:
        futures = [fold.futures() for fold in folds[:-1]]
        earlier = np.concatenate(futures), np.concatenate(joint[:-1])
    return _Tried(
        [each[-1] for each in fitted],
        together,
        float(np.average(losses, weights=[len(each) for each in errors])),
        _interval_loss(joint[-1], windows, data, config.model.levels),
        criteria[-1].name,
        len(folds),
        earlier,
    )


_DELIVERED: dict[Deliver, tuple[str, ...]] = {
    "ridge": (RIDGE,),
    "smoothing": (SMOOTHING,),
    "ets": (ETS, OWN_ETS),
    "theta": (THETA,),
    "seasonal-naive": (SEASONAL_NAIVE,),
    "last-value": (LAST_VALUE,),
}
"""Names of the simple forecasters of each kind."""


def _deliverable(names: Sequence[str], deliver: Deliver) -> list[int]:
    """Return the places of the simple forecasters that may have a weight.

    Args:
        names: Names of all that are compared.
        deliver: What the settings ask for; a combination may have any, and so may what the networks
            are compared with.

    Raises:
        ConfigError: There are none of this kind.
    """
    wanted = _DELIVERED.get(deliver, names)
    found = [place for place, name in enumerate(names) if name in wanted]
    if not found:
        there = [kind for kind, of_kind in _DELIVERED.items() if {*of_kind} & {*names}]
        raise ConfigError(
            f"--deliver must be one of combination, network, {', '.join(there)}, which are "
            f"compared on this series, got {deliver}"
        )
    return found


def _best(tried: Mapping[Transform, _Tried]) -> Transform:
    """Choose the transform with the best intervals among those whose loss is close to the least.

    If none is clearly better, the first is chosen. Under a transform for which errors vary with the
    level, intervals are too wide at some levels and too narrow at others.
    """
    plainest = next(iter(tried))
    least = min(each.loss for each in tried.values())
    close = [name for name, each in tried.items() if each.loss * _CLOSE_LOSS_RATIO <= least]
    best = min(close, key=lambda name: tried[name].interval_loss)
    if (
        plainest in close
        and tried[best].interval_loss > _MAX_RELATIVE_LOSS * tried[plainest].interval_loss
    ):
        return plainest
    return best


def _interval_loss(
    forecast: np.ndarray, windows: Windows, data: ForecastingData, levels: Sequence[float]
) -> float:
    """Compute the mean pinball loss of quantiles calibrated on the other half of the windows.

    Args:
        forecast: (N, H, K) on the scale of the network.
        windows: N of them.
        data: Series of which they are.
        levels: Levels of the quantiles, ascending.
    """
    truth, effects = windows.futures(), windows.effects_ahead()
    true, half = data.preprocessor.measured(truth, effects), len(truth) // 2
    if not half:
        return 0.0
    total = count = 0.0
    for known, other in (slice(half), slice(half, None)), (slice(half, None), slice(half)):
        if not np.isfinite(truth[known]).any():
            continue
        point = forecast[..., np.newaxis]
        offsets = pooled_offsets(truth[known], point[known], 1e9, levels)
        for q, level in enumerate(levels):
            bound = data.preprocessor.measured(
                forecast[other] + offsets[..., q], None if effects is None else effects[other]
            )
            residual = true[other] - bound
            total += float(np.nansum(np.maximum(level * residual, (level - 1) * residual)))
        count += float(np.isfinite(true[other]).sum()) * len(levels)
    return total / max(count, 1.0)


def _ridge(candidates: Sequence[LinearForecaster]) -> LinearForecaster:
    """Return the ridge regression for all columns together."""
    return next(each for each in candidates if each.name == RIDGE)


def _network_lookback(data: ForecastingData, candidates: Sequence[LinearForecaster]) -> int:
    """Choose the network's look-back: the common ridge regression's, and at least three seasons."""
    ridge = _ridge(candidates)
    room = longest_lookback(data.borders.train, data.shape.horizon)
    return min(max(ridge.lookback, 3 * data.season), room, max(_LONGEST_NETWORK, data.season))
