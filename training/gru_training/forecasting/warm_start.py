"""Forecasters that begin with the scale and the networks of an earlier run."""

import math
from typing import TYPE_CHECKING, Any

from gru_training.data.series import Series
from gru_training.errors import ConfigError, DataError
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.series_check import series_problems, usable_series
from gru_training.forecasting.sets import borders_of
from gru_training.warm_start import open_start, with_settings_of

if TYPE_CHECKING:
    import pandas as pd

    from gru_training.forecasting.plan import InitialWeights

_NETWORK = (
    "architecture", "units", "layers", "segment", "channel_independent", "channel_embedding",
    "normalisation", "linear_skip", "loss",
)  # fmt: skip
_SOURCE_FILES = ("model.keras", "scaler.json", "series.json")
_WAY_OUT = "leave --warm-start out to train from new weights"


def starting_run(config: ForecastingConfig) -> ForecastingRun:
    """Open the run of `--warm-start`.

    Raises:
        TrainingError: There is no complete run of this task.
    """
    assert config.training.warm_start is not None
    return open_start(ForecastingRun, "forecasting", config.training.warm_start)


def with_start_settings(config: ForecastingConfig, run: ForecastingRun) -> ForecastingConfig:
    """Take over the settings of network and scale that follow from the run.

    Args:
        config: Settings of the training.
        run: The run of `--warm-start`.

    Raises:
        ConfigError: Another value was asked for.
    """
    old, series = run.config, run.series
    network = {name: getattr(old.model, name) for name in _NETWORK}
    if old.model.loss == "quantile":
        network["intervals"] = old.model.intervals
    scale: dict[str, Any] = {
        "horizon": series.horizon,
        "season": series.season,
        "transform": old.data.transform,
    }
    if run.combination is None:
        scale["lookback"] = series.lookback
    elif config.data.lookback not in (None, series.lookback, _network_lookback(run)):
        raise ConfigError(
            f"--warm-start: the networks of {run.path} read {_network_lookback(run)} steps, got "
            f"--lookback {config.data.lookback}; leave it out, or {_WAY_OUT}"
        )
    return with_settings_of(
        config,
        run,
        {
            "data": scale,
            "model": network,
            "combination": {
                "combine": old.combination.combine,
                "networks": old.combination.networks,
            },
        },
    )


def require_continued(series: Series, config: ForecastingConfig, run: ForecastingRun) -> None:
    """Check that a series suits the run of `--warm-start`, and that no learned row is held out.

    Args:
        series: Series as read.
        config: Settings of the training, from `with_start_settings`.
        run: The run of `--warm-start`.

    Raises:
        DataError: The series has other columns or steps, or its validation part begins before the
            time until which the run has learned.
    """
    series, shape, _ = usable_series(series, config.data, series_problems(config.data, series))
    targets = tuple(series.columns[column] for column in shape.targets)
    for what, own, known in (
        ("the columns", series.columns, run.columns),
        ("the columns to forecast", targets, run.target_columns),
        ("a step of", (series.frequency,), (run.frequency,)),
    ):
        if own != known:
            raise DataError(
                f"--warm-start: {series.source}: expected {what} {', '.join(known)} as in "
                f"{run.path}, got {', '.join(own)}; give the data of that run with the same "
                f"--target, --future, --past and --calendar, or {_WAY_OUT}"
            )
    rows, end = len(series), learned_until(run)
    begin = borders_of(series, config.data).train
    learned = int(series.index.searchsorted(end, side="right"))
    if learned <= begin:
        return
    validation, test = config.data.fractions
    room = math.floor(1000 * (rows - learned) / rows) / 1000
    shares = [math.floor(1000 * room * each / (validation + test)) / 1000 for each in
              (validation, test)]  # fmt: skip
    way = f"give more rows after it, or {_WAY_OUT}"
    if min(shares) * rows > shape.horizon:
        way = (
            f"hold out only rows after it, with --validation-fraction {shares[0]} "
            f"--test-fraction {shares[1]}, {way}"
        )
    raise DataError(
        f"--warm-start: {run.path} has learned from rows until {end}, and {series.source} holds "
        f"out rows from {series.index[begin]} on; {way}"
    )


def initial_weights(series: Series, config: ForecastingConfig) -> "InitialWeights":
    """Load the scale and the networks of `--warm-start` if it is set.

    The networks are the measured ones, which were trained on the training part alone.

    Args:
        series: Series as read.
        config: Settings of the training.

    Raises:
        TrainingError: The run cannot be used, or not with this series and these settings.
    """
    from gru_training.forecasting.data import never_negative
    from gru_training.forecasting.plan import InitialWeights

    if config.training.warm_start is None:
        return InitialWeights(config)

    run = starting_run(config)
    config = with_start_settings(config, run)
    require_continued(series, config, run)
    scale, model = run.preprocessor(), run.load_model()
    begin = borders_of(series, config.data).validation
    negative = scale.transformed & ~never_negative(series.values[:begin], scale.targets)
    if negative.any():
        raise DataError(
            f"--warm-start: {series.source}, column {series.columns[int(negative.argmax())]!r}: "
            f"expected no values below zero, as --transform {config.data.transform} of {run.path} "
            f"cannot read them; {_WAY_OUT}"
        )
    combination = run.combination
    if combination is not None:
        held = {layer.name for layer in model.layers}
        if not any(share["network"] in held for share in combination["shares"]):
            raise ConfigError(
                f"--warm-start: {run.path} holds no network, as none of them improved its "
                f"combination; {_WAY_OUT}"
            )
    record = {"warm_start": _record(run)}
    return InitialWeights(config, scale, model, _network_lookback(run), record)


def learned_until(run: ForecastingRun) -> "pd.Timestamp":
    """Return the time of the last row from which a run, or the runs it began with, has learned."""
    import pandas as pd

    series = run.series
    own = pd.date_range(series.first_time, periods=series.borders[0], freq=series.frequency)[-1]
    earlier = run.metrics.get("warm_start")
    return own if earlier is None else max(own, pd.Timestamp(earlier["learned_until"]))


def _record(run: ForecastingRun) -> dict[str, Any]:
    """Describe the run for `metrics.json`; see `gru_training.warm_start`."""
    return {
        "run": str(run.path),
        "digest": run.digest(_SOURCE_FILES),
        "learned_until": str(learned_until(run)),
    }


def _network_lookback(run: ForecastingRun) -> int:
    combination = run.combination
    return run.shape.lookback if combination is None else int(combination["network_lookback"])
