"""What to train, decided by the series: transform, look-back, segments, simple forecasters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gru_training.data.series import Series
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.combination.components import RIDGE, LinearData, fit_components
from gru_training.forecasting.combination.criterion import criterion_of
from gru_training.forecasting.combination.linear import LinearForecaster
from gru_training.forecasting.combination.weights import stacking_weights
from gru_training.forecasting.config import ForecastingConfig, Transform
from gru_training.forecasting.count_losses import COUNT_LOSSES
from gru_training.forecasting.data import ForecastingData, never_negative, prepare
from gru_training.forecasting.scores.conformal import pooled_offsets
from gru_training.forecasting.sources.sets import longest_lookback
from gru_training.forecasting.windows import Windows

if TYPE_CHECKING:
    import keras

    from gru_training.forecasting.preprocessor import SeriesPreprocessor

_CLOSE = 0.95
"""Transforms are compared by their intervals whose losses are no farther apart."""
_CLEARLY = 0.98
"""Share of the interval loss that a transform must leave at most, to be chosen for it."""
_OFTEN = 0.01
"""Share of zeros among values that are never negative, from which on zero is a bound."""
_MOST_WINDOWS, _MOST_VALUES = 1000, 20_000_000
"""Validation windows, and values in them, that are compared on."""
_LONGEST = 720
_LONGEST_NETWORK = 336
"""Steps that a network reads, for its time; what is farther back the ridge regression reads."""


class InitialNetworks(NamedTuple):
    """Scale and networks that a training begins with, and the settings that follow from them."""

    config: ForecastingConfig
    """Settings of the training that suit the networks."""
    model: "keras.Model"
    """Model that holds the networks."""
    scale: "SeriesPreprocessor"
    """Scale of the series that the networks read."""
    lookback: int
    """Steps that each network reads."""
    record: Mapping[str, Any]
    """Value `warm_start` of `metrics.json`."""


@dataclass(frozen=True)
class Candidate:
    """A simple forecaster, and its squared error on the validation windows."""

    forecaster: LinearForecaster
    validation_mse: float


class _Tried(NamedTuple):
    """Simple forecasters under a transform."""

    candidates: list[Candidate]
    weights: np.ndarray
    loss: float
    """On validation windows, with these weights, by what is asked for."""
    interval_loss: float
    """Likewise the mean pinball loss."""
    criterion: str
    """What the loss is, for people."""


@dataclass(frozen=True)
class Plan:
    """What is trained."""

    config: ForecastingConfig
    """The settings with nothing left open."""
    data: ForecastingData
    candidates: tuple[Candidate, ...] = ()
    """Simple forecasters to combine with; none: the network stands alone."""
    transforms: tuple[tuple[str, float], ...] = ()
    """Of those tried the name, and the loss of the simple forecasters together."""
    criterion: str = ""
    """What that loss is, for people."""
    network_lookback: int = 0
    """Steps that a network reads; the run reads as many as the longest of all."""
    training_lookback: int = 0
    """Steps that training reads: those of the network, or of the regression under it."""
    networks: tuple[str, ...] | None = None
    """What those to train are called in the delivered model; None: all that the settings ask
    for."""
    initial: "keras.Model | None" = None
    """Model with whose networks those of the plan begin; None: their weights are drawn."""
    warm_start: Mapping[str, Any] | None = None
    """Value `warm_start` of `metrics.json`, where there is one."""

    @property
    def combines(self) -> bool:
        """Whether there is anything to combine the network with."""
        return bool(self.candidates)

    def validation(self) -> Windows:
        """The validation windows on which forecasters are compared."""
        return compared_windows(self.data)


def make_plan(
    series: Series, config: ForecastingConfig, initial: InitialNetworks | None = None
) -> Plan:
    """Decide what the settings leave open.

    Args:
        series: Series as read.
        config: Settings of the training.
        initial: Scale and networks to begin with; by default they are fitted and drawn.

    Raises:
        DataError: The series cannot be used; says why.
    """
    if initial is not None:
        plan = _decided(series, initial.config, initial.scale, initial.lookback)
        return replace(plan, initial=initial.model, warm_start=initial.record)
    return _decided(series, config)


def _decided(
    series: Series,
    config: ForecastingConfig,
    scale: "SeriesPreprocessor | None" = None,
    lookback: int | None = None,
) -> Plan:
    """Decide what the settings leave open.

    Args:
        series: Series as read.
        config: Settings of the training.
        scale: Scale of the series; by default that of its training rows.
        lookback: Steps that the networks read; by default chosen on validation windows.
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
    counts = config.model.loss in COUNT_LOSSES
    if counts:
        config = _of_counts(config)
    data = prepare(series, config.data, scale)
    if counts:
        _require_counts(data, config)
    if series.panel and config.model.channel_embedding is None:
        config = replace(config, model=replace(config.model, channel_embedding=False))
    if not config.combination.combine or config.model.streams:
        return _alone(data, config)
    tried = {name: _tried(series, config, name, scale) for name in _transforms(data, config)}
    best = _best(tried)
    candidates, weights = tried[best].candidates, tried[best].weights
    network = lookback or config.data.lookback or _network_lookback(data, candidates)
    used = [
        each.forecaster.lookback for each, weight in zip(candidates, weights, strict=True) if weight
    ]
    training = max(network, _ridge(candidates).lookback)
    settings = replace(config.data, transform=best, lookback=max([training, *used]))
    data = prepare(series, settings, scale)
    model = config.model.for_series(network, data.season, len(data.shape.targets))
    return Plan(
        replace(config, data=settings, model=model),
        data,
        tuple(each for each in candidates if each.forecaster.lookback <= data.shape.lookback),
        tuple((name, of.loss) for name, of in tried.items()),
        tried[best].criterion,
        network,
        training,
    )


def _of_counts(config: ForecastingConfig) -> ForecastingConfig:
    """The settings for a loss of counts, which knows zero and no other transform."""
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
    """Evenly spread validation windows, so many that comparing on them takes seconds."""
    windows = data.windows("validation")
    of_window = len(data.shape.targets) * (_LONGEST + data.shape.horizon)
    most = max(30, min(_MOST_WINDOWS, _MOST_VALUES // of_window))
    places = np.linspace(0, len(windows) - 1, min(most, len(windows))).round().astype(int)
    return replace(windows, origins=windows.origins[places])


def linear_data(data: ForecastingData) -> LinearData:
    """What simple forecasters see of a series."""
    return LinearData(
        data.standardised_targets.astype(np.float64),
        data.borders.part("train")[1],
        compared_windows(data).origins,
        data.season,
        data.shape.horizon,
    )


def independent_windows(data: ForecastingData) -> float:
    """About how many validation windows do not overlap."""
    begin, end = data.borders.part("validation")
    return (end - begin) / data.shape.horizon


def measured_errors(
    forecasts: Sequence[np.ndarray], windows: Windows, data: ForecastingData
) -> np.ndarray:
    """(n, M) forecast minus truth of M forecasters, (N, H, K) each, where there is a truth."""
    measured, effects = data.preprocessor.measured, windows.effects_ahead()
    truth = windows.futures()
    seen = np.isfinite(truth)
    true = measured(truth, effects)[seen]
    return np.stack([measured(each, effects)[seen] - true for each in forecasts], axis=1)


def _alone(data: ForecastingData, config: ForecastingConfig) -> Plan:
    shape = data.shape
    transform: Transform = "none" if config.data.transform == "auto" else config.data.transform
    model = config.model.for_series(shape.lookback, data.season, len(shape.targets))
    settings = replace(config.data, transform=transform, lookback=shape.lookback)
    return Plan(replace(config, data=settings, model=model), data, network_lookback=shape.lookback)


def _transforms(data: ForecastingData, config: ForecastingConfig) -> tuple[Transform, ...]:
    asked = config.data.transform
    if asked != "auto":
        return (asked,)
    rows = data.series.values[: data.borders.validation]
    possible = never_negative(rows, data.shape.targets)
    if not possible.any():
        return ("none",)
    often_zero = (rows[:, possible] == 0).mean() > _OFTEN
    return ("nonnegative" if often_zero else "none", "log1p", "boxcox")


def _tried(
    series: Series,
    config: ForecastingConfig,
    transform: Transform,
    scale: "SeriesPreprocessor | None",
) -> _Tried:
    """Simple forecasters under a transform, and what they achieve together."""
    data = prepare(series, replace(config.data, transform=transform), scale)
    linear, windows = linear_data(data), compared_windows(data)
    found = fit_components(linear, config.data.lookback, own=not series.panel)
    read = linear.windows(max(each.lookback for each in found))
    forecasts = [each(read) for each in found]
    errors = measured_errors(forecasts, windows, data)
    criterion = criterion_of(config.model.loss, data, windows)
    weights = stacking_weights(errors, independent_windows(data), criterion)
    each_error = (errors**2).mean(axis=0)
    return _Tried(
        [Candidate(*both) for both in zip(found, each_error.tolist(), strict=True)],
        weights,
        criterion.loss(errors @ weights),
        _interval_loss(
            sum(each * weight for each, weight in zip(forecasts, weights.tolist(), strict=True)),
            windows,
            data,
            config.model.levels,
        ),
        criterion.name,
    )


def _best(tried: Mapping[Transform, _Tried]) -> Transform:
    """The transform with the best intervals, of those whose loss is close to the least.

    The first of them where none is clearly better. A transform under which errors vary with the
    level has intervals that are too wide at one level and too narrow at another.
    """
    plainest = next(iter(tried))
    least = min(each.loss for each in tried.values())
    close = [name for name, each in tried.items() if each.loss * _CLOSE <= least]
    best = min(close, key=lambda name: tried[name].interval_loss)
    if plainest in close and tried[best].interval_loss > _CLEARLY * tried[plainest].interval_loss:
        return plainest
    return best


def _interval_loss(
    forecast: np.ndarray, windows: Windows, data: ForecastingData, levels: Sequence[float]
) -> float:
    """The mean pinball loss of quantiles that are calibrated on the other half of the windows.

    Args:
        forecast: (N, H, K) on the scale of the network.
        windows: N of them.
        data: Of which they are.
        levels: Of the quantiles.
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


def _ridge(candidates: Sequence[Candidate]) -> LinearForecaster:
    """The ridge regression for all columns together."""
    return next(each.forecaster for each in candidates if each.forecaster.name == RIDGE)


def _network_lookback(data: ForecastingData, candidates: Sequence[Candidate]) -> int:
    """What the ridge regression for all columns reads, and at least three seasons if it can."""
    ridge = _ridge(candidates)
    room = longest_lookback(data.borders.train, data.shape.horizon)
    return min(max(ridge.lookback, 3 * data.season), room, max(_LONGEST_NETWORK, data.season))
