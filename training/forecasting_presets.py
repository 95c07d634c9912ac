"""Settings of the rows of the results table, by name; chosen on validation windows alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from training.errors import ConfigError
from training.forecaster_config import ForecasterConfig
from training.forecasting_config import ForecastingConfig, ForecastingTrainingConfig, SeriesConfig

_SETS = Path("../shared/data/ett")
_SEGMENTS = ForecasterConfig(architecture="segment", units=256, segment=48, dropout=0.1)
_TRAINING = ForecastingTrainingConfig(epochs=8, patience=3, batch_size=64, learning_rate=3e-4)


def _ett(name: str, horizon: int) -> ForecastingConfig:
    return ForecastingConfig(
        data=SeriesConfig(data=_SETS / f"{name}.csv", lookback=720, horizon=horizon),
        model=_SEGMENTS,
        training=_TRAINING,
    )


PRESETS = {
    "co2": ForecastingConfig(
        # A larger validation part than usual: four years would be too few to calibrate on.
        data=SeriesConfig(lookback=156, horizon=26, validation_fraction=0.2),
        model=ForecasterConfig(linear_skip=True),
        training=ForecastingTrainingConfig(epochs=40),
    ),
} | {
    f"{name.lower()}-{horizon}": _ett(name, horizon)
    for name, horizons in (("ETTh1", (96, 192, 336, 720)), ("ETTh2", (96,)), ("ETTm1", (96,)))
    for horizon in horizons
}


def preset(name: str) -> ForecastingConfig:
    """The settings of this name, which they also hold.

    Raises:
        ConfigError: there is none.
    """
    if name not in PRESETS:
        raise ConfigError(f"--preset must be one of {', '.join(PRESETS)}, got {name!r}")
    return replace(PRESETS[name], preset=name)


def preset_in(arguments: Sequence[str]) -> ForecastingConfig:
    """The settings that a command line begins with: its last ``--preset``, else the defaults."""
    config = ForecastingConfig()
    for position, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--preset" and (equals or position + 1 < len(arguments)):
            config = preset(value if equals else arguments[position + 1])
    return config
