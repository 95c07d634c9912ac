"""Settings of the rows of the results table by name, chosen on validation windows alone."""

from dataclasses import replace
from pathlib import Path

from gru_training.forecasting.config import (
    CombinationConfig,
    ForecasterConfig,
    ForecastingConfig,
    ForecastingTrainingConfig,
    SeriesConfig,
)

_NETWORK_ONLY = CombinationConfig(combine=False, refit=False)
_DATA = Path("../shared/data")
_SEGMENTS = ForecasterConfig(architecture="segment", units=256, segment=48, dropout=0.3, loss="mae")
_TRAINING = ForecastingTrainingConfig(
    epochs=6, patience=3, batch_size=32, learning_rate=5e-4, schedule="cosine"
)
# If a series drifts between its parts, the closed-form linear map is hard to beat; there the GRU
# learns the residuals, with little freedom.
_RESIDUAL = replace(_SEGMENTS, units=128, dropout=0.5, channel_embedding=False, linear_skip=True)
_SHORT_TRAINING = replace(_TRAINING, epochs=4, batch_size=64, learning_rate=3e-4)
_RESIDUAL_MSE = replace(_RESIDUAL, loss="mse")
_SLOW_TRAINING = replace(_SHORT_TRAINING, learning_rate=1e-4)


def _ett(
    name: str,
    horizon: int,
    model: ForecasterConfig = _SEGMENTS,
    training: ForecastingTrainingConfig = _TRAINING,
    lookback: int = 720,
) -> ForecastingConfig:
    data = SeriesConfig(data=_DATA / "ett" / f"{name}.csv", lookback=lookback, horizon=horizon)
    return ForecastingConfig(data=data, model=model, training=training, combination=_NETWORK_ONLY)


def _weather(horizon: int) -> ForecastingConfig:
    """Use the default combination with few epochs, which suffice for 36,000 training windows."""
    return ForecastingConfig(
        data=SeriesConfig(data=_DATA / "weather" / "weather.csv", horizon=horizon),
        training=ForecastingTrainingConfig(epochs=8, schedule="cosine"),
        combination=CombinationConfig(refit=False),
    )


PRESETS = {
    "co2": ForecastingConfig(
        # The validation part is larger than usual: four years would be too few for the calibration.
        data=SeriesConfig(lookback=156, horizon=26, validation_fraction=0.2),
        model=ForecasterConfig(segment=24, linear_skip=True),
        training=ForecastingTrainingConfig(epochs=40),
        combination=_NETWORK_ONLY,
    ),
    **{f"etth1-{horizon}": _ett("ETTh1", horizon) for horizon in (96, 192)},
    **{
        f"etth1-{horizon}": _ett("ETTh1", horizon, _RESIDUAL_MSE, _SLOW_TRAINING, lookback=336)
        for horizon in (336, 720)
    },
    "etth2-96": _ett("ETTh2", 96, _RESIDUAL, _SHORT_TRAINING),
    "ettm1-96": _ett(
        "ETTm1",
        96,
        replace(_SEGMENTS, linear_skip=True),
        replace(_TRAINING, epochs=4, learning_rate=3e-4, train_stride=4),
        lookback=336,
    ),
    **{f"weather-{horizon}": _weather(horizon) for horizon in (96, 192, 336, 720)},
}
