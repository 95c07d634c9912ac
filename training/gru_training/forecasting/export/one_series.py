"""The signature `one_series`, which forecasts a series that the model never saw.

It exists where the networks know no series by name, or have a learned vector for those that they do
not know. Of matrices that each series has by itself it takes the mean, but not of columns of one
table, which are unlike.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import keras
import numpy as np

from gru_serving.preprocessing.description import Step
from gru_serving.preprocessing.series import (
    AverageEffect,
    CalibrateQuantiles,
    Intervals,
    ReadAlone,
    RestoreAlone,
    SplitEffect,
)
from gru_training.forecasting.combination import combined
from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.known import average_effect
from gru_training.forecasting.network import build_forecaster
from gru_training.forecasting.run import ForecastingRun


def one_series_model(
    model: keras.Model,
    config: ForecasterConfig,
    shape: ForecastShape,
    combination: Mapping[str, Any] | None,
    panel: bool,
) -> keras.Model | None:
    """Build the model from windows of one series (B, L, 1) to (B, H, 1, Q or 1), if it exists.

    Args:
        model: Model from `gru_training.forecasting.combination`.
        config: Settings of its networks.
        shape: Shape of the model.
        combination: Record of the combination in the run; None: a network stands alone.
        panel: Whether the series stood in long form.
    """
    if combination is None or not config.channel_independent or len(shape.targets) < 2:
        return None
    names = {layer.name for layer in model.layers}
    kernel, share = None, 0.0
    if "linear" in names:
        linear = model.get_layer("linear")
        kernel, share = np.asarray(linear.get_weights()[0]), float(linear.share)
        if linear.own:
            if not panel:
                return None
            kernel = kernel.mean(axis=0)
    single = ForecastShape(shape.lookback, shape.horizon, 1, (0,))
    reads = replace(single, lookback=int(combination["network_lookback"]))
    plain = replace(config, linear_skip=False)
    networks = []
    for each in combination["shares"]:
        if each["network"] in names:
            network = build_forecaster(
                plain, reads, config.levels, each["residual"], each["network"]
            )
            if not _take_weights(network, model.get_layer(each["network"]), config):
                return None
            networks.append((network, float(each["weight"])))
    return combined(single, networks, kernel, share)


def _take_weights(network: keras.Model, of_many: keras.Model, config: ForecasterConfig) -> bool:
    """Copy the weights of the network for many series to that of one.

    Returns whether that was possible.
    """
    if not config.channel_embedding or config.architecture != "segment":
        network.set_weights(of_many.get_weights())
        return True
    many = of_many.get_layer("segment_gru")
    if not many.unknown:
        return False
    for layer in network.layers:
        if layer.weights and layer.name != "segment_gru":
            layer.set_weights(of_many.get_layer(layer.name).get_weights())
    one = network.get_layer("segment_gru")
    one.encoder.set_weights(many.encoder.get_weights())
    one.position.assign(many.unknown_query())
    return True


class OneSeries(NamedTuple):
    """A forecaster of series on the scale of each one's own history."""

    model: keras.Model
    """Model from standardised windows (B, L, 1) to (B, H, 1, Q or 1)."""
    exponent: float | None
    """Exponent of the power that is standardised; None to standardise the values."""
    inputs: AverageEffect | None = None
    """Effect of known inputs on a series about which nothing else is known; None without inputs."""

    @property
    def lookback(self) -> int:
        """L."""
        return int(self.model.input_shape[1])

    def steps(self, intervals: Intervals) -> tuple[list[Step], list[Step]]:
        """Return the steps before the model, from `history`, and after it, to `quantiles`."""
        before: list[Step] = []
        if self.inputs is not None:
            before.append(SplitEffect("past", "future", self.lookback, self.inputs))
        before.append(ReadAlone("history", "window", self.lookback, self.exponent))
        return before, [
            CalibrateQuantiles("answers", "quantiles", intervals, unknown=True),
            RestoreAlone("quantiles", "quantiles", self.exponent),
        ]

    def quantiles(self, history: np.ndarray, intervals: Intervals) -> np.ndarray:
        """Compute quantiles (B, H, Q) of histories (B, T) in raw units, without known inputs."""
        values: dict[str, Any] = {"history": np.asarray(history, np.float32)}
        before, after = self.steps(intervals)
        for step in before:
            step.numpy(values)
        values["answers"] = np.asarray(self.model(values["window"], training=False))
        for step in after:
            step.numpy(values)
        return np.asarray(values["quantiles"])


def one_series_of(run: ForecastingRun, model: keras.Model) -> OneSeries | None:
    """Make the forecaster of unknown series if the run's model does not distinguish series."""
    single = one_series_model(model, run.config.model, run.shape, run.combination, run.series.panel)
    if single is None or run.series.calendar.columns:
        return None
    preprocessor = run.preprocessor()
    transformed = preprocessor.transformed[list(run.shape.targets)]
    if transformed.any() and not transformed.all():
        return None
    exponent = preprocessor.exponent if transformed.all() else None
    inputs, known = None, preprocessor.known
    if known is not None:
        if not known.by_series:
            return None
        columns = list(known.columns)
        inputs = average_effect(known, preprocessor.mean[columns], preprocessor.deviation[columns])
    return OneSeries(single, exponent, inputs)
