"""What to train, decided by the series: transform, look-back, segments, simple forecasters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from training.data.series import Series
from training.errors import ConfigError
from training.forecasting.combination.components import RIDGE, LinearData, fit_components
from training.forecasting.combination.linear import LinearForecaster
from training.forecasting.combination.weights import stacking_weights
from training.forecasting.config import ForecastingConfig, Transform
from training.forecasting.data import ForecastingData, never_negative, prepare
from training.forecasting.windows import Windows

_CLEARLY = 0.98
"""Share of the squared error that a transform must leave at most, to be chosen."""
_MOST_WINDOWS, _MOST_VALUES = 1000, 20_000_000
"""Validation windows, and values in them, that are compared on."""
_LONGEST = 720
_LONGEST_NETWORK = 336
"""Steps that a network reads, for its time; what is farther back the ridge regression reads."""


@dataclass(frozen=True)
class Candidate:
    """A simple forecaster, and its squared error on the validation windows."""

    forecaster: LinearForecaster
    validation_mse: float


@dataclass(frozen=True)
class Plan:
    """What is trained."""

    config: ForecastingConfig
    """The settings with nothing left open."""
    data: ForecastingData
    candidates: tuple[Candidate, ...] = ()
    """Simple forecasters to combine with; none: the network stands alone."""
    transforms: tuple[tuple[str, float], ...] = ()
    """Of those tried the name, and the squared error of the simple forecasters together."""
    network_lookback: int = 0
    """Steps that a network reads; the run reads as many as the longest of all."""
    training_lookback: int = 0
    """Steps that training reads: those of the network, or of the regression under it."""

    @property
    def combines(self) -> bool:
        """Whether there is anything to combine the network with."""
        return bool(self.candidates)

    def validation(self) -> Windows:
        """The validation windows on which forecasters are compared."""
        return compared_windows(self.data)


def make_plan(series: Series, config: ForecastingConfig) -> Plan:
    """Decide what the settings leave open.

    Raises:
        DataError: The series cannot be used; says why.
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
    data = prepare(series, config.data)
    if series.panel and config.model.channel_embedding is None:
        config = replace(config, model=replace(config.model, channel_embedding=False))
    if not config.combination.combine or config.model.streams:
        return _alone(data, config)
    tried = {name: _tried(series, config, name) for name in _transforms(data, config)}
    best = min(tried, key=lambda name: tried[name][1])
    if best == "log1p" and "none" in tried and tried[best][1] > _CLEARLY * tried["none"][1]:
        best = "none"
    candidates, _, weights = tried[best]
    network = config.data.lookback or _network_lookback(data, candidates)
    used = [
        each.forecaster.lookback for each, weight in zip(candidates, weights, strict=True) if weight
    ]
    training = max(network, _ridge(candidates).lookback)
    settings = replace(config.data, transform=best, lookback=max([training, *used]))
    data = prepare(series, settings)
    model = config.model.for_series(network, data.season, len(data.shape.targets))
    return Plan(
        replace(config, data=settings, model=model),
        data,
        tuple(each for each in candidates if each.forecaster.lookback <= data.shape.lookback),
        tuple((name, of[1]) for name, of in tried.items()),
        network,
        training,
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
    return ("none", "log1p") if never_negative(rows, data.shape.targets).any() else ("none",)


def _tried(
    series: Series, config: ForecastingConfig, transform: Transform
) -> tuple[list[Candidate], float, np.ndarray]:
    """Simple forecasters under a transform, their error together, and the weights for that."""
    data = prepare(series, replace(config.data, transform=transform))
    linear = linear_data(data)
    found = fit_components(linear, config.data.lookback, own=not series.panel)
    forecasts = [each(linear.windows(each.lookback)) for each in found]
    errors = measured_errors(forecasts, compared_windows(data), data)
    weights = stacking_weights(errors, independent_windows(data))
    each_error = (errors**2).mean(axis=0)
    candidates = [Candidate(*both) for both in zip(found, each_error.tolist(), strict=True)]
    return candidates, float(((errors @ weights) ** 2).mean()), weights


def _ridge(candidates: Sequence[Candidate]) -> LinearForecaster:
    """The ridge regression for all columns together."""
    return next(each.forecaster for each in candidates if each.forecaster.name == RIDGE)


def _network_lookback(data: ForecastingData, candidates: Sequence[Candidate]) -> int:
    """What the ridge regression for all columns reads, and at least three seasons if it can."""
    ridge = _ridge(candidates)
    room = max(1, (data.borders.train - data.shape.horizon) // 2)
    return min(max(ridge.lookback, 3 * data.season), room, max(_LONGEST_NETWORK, data.season))
