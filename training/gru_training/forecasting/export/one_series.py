"""The signature `one_series`: a forecaster of many series asked for one that it never saw.

It exists where no matrix is for one column alone, and the networks know no series by name, or have
a learned vector for those that they do not know.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.forecasting.combination import combined
from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.intervals import MEDIAN, quantiles
from gru_training.forecasting.known import AverageEffect
from gru_training.forecasting.network import build_forecaster
from gru_training.forecasting.preprocessor import SeriesPreprocessor, graph_powers, graph_roots
from gru_training.forecasting.run import ForecastingRun


def one_series_model(
    model: keras.Model,
    config: ForecasterConfig,
    shape: ForecastShape,
    combination: Mapping[str, Any] | None,
) -> keras.Model | None:
    """Build the model from windows of one series (B, L, 1) to (B, H, 1, Q or 1), where it exists.

    Args:
        model: Model from `gru_training.forecasting.combination`.
        config: Settings of its networks.
        shape: Shape of the model.
        combination: Record of the combination in the run; None: a network stands alone.
    """
    if combination is None or not config.channel_independent or len(shape.targets) < 2:
        return None
    names = {layer.name for layer in model.layers}
    kernel, share = None, 0.0
    if "linear" in names:
        linear = model.get_layer("linear")
        if linear.own:
            return None
        kernel, share = np.asarray(linear.get_weights()[0]), float(linear.share)
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
    """Whether the network of one series could be given the weights of that of many."""
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


_AS_IT_IS = SeriesPreprocessor(np.zeros(1), np.ones(1), (0,))


class OneSeries:
    """Forecasts a series on the scale that its own history has.

    Args:
        model: Model from standardised windows (B, L, 1) to (B, H, 1, Q or 1).
        exponent: Exponent of the power that is standardised; None: values are.
        levels: The Q levels.
        offsets: (H, K, Q), standardised, of the K series that the model was trained on.
        inputs: Effect of known inputs on a series of which nothing else is known; None without
            inputs.
    """

    def __init__(
        self,
        model: keras.Model,
        exponent: float | None,
        levels: tuple[float, ...],
        offsets: np.ndarray,
        inputs: AverageEffect | None = None,
    ) -> None:
        self.inputs = inputs
        self.model, self.lookback = model, int(model.input_shape[1])
        self.exponent, self.levels = exponent, levels
        self.offsets = np.median(offsets, axis=1, keepdims=True).astype(np.float32)

    def forecast(self, history: Any, past: Any = None, future: Any = None) -> dict[str, Any]:
        """Forecast series one by one.

        Args:
            history: (B, T) float32 in raw units, NaN = missing; each row has a value. Of less than
                the model reads the first value counts for what is missing before it.
            past: (B, T, F) float32, the known inputs of these steps, where there are such.
            future: (B, H, F), those of the steps ahead.

        Returns:
            `forecast` (B, H) and `quantiles` (B, H, Q), float32, in raw units.
        """
        rows = tf.shape(history)[0]
        before = tf.fill((rows, self.lookback), float("nan"))
        read = tf.concat([before, history], axis=1)[:, -self.lookback :]
        read = tf.ensure_shape(read, (None, self.lookback))
        if self.exponent is not None:
            known = tf.logical_not(tf.math.is_nan(read))
            read = tf.where(known, graph_powers(read, self.exponent), read)
        mean, deviation = _scale(read)
        standardised, ahead = (read - mean) / deviation, None
        if self.inputs is not None:
            behind, ahead = self.inputs.split(past, future, self.lookback)
            standardised -= behind
        answers = self.model(_AS_IT_IS.standardise(standardised[..., tf.newaxis]), training=False)
        served = quantiles(answers, self.offsets, self.levels)[:, :, 0]  # (B, H, Q)
        if ahead is not None:
            served += ahead[..., tf.newaxis]
        raw = served * deviation[..., tf.newaxis] + mean[..., tf.newaxis]
        if self.exponent is not None:
            raw = graph_roots(raw, self.exponent)
        return {"forecast": raw[..., list(self.levels).index(MEDIAN)], "quantiles": raw}


def one_series_of(run: ForecastingRun, model: keras.Model) -> OneSeries | None:
    """Make the forecaster of unknown series, if the model of the run tells none apart."""
    single = one_series_model(model, run.config.model, run.shape, run.combination)
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
        inputs = AverageEffect(known, preprocessor.mean[columns], preprocessor.deviation[columns])
    return OneSeries(single, exponent, run.levels, run.offsets, inputs)


def _scale(read: Any) -> tuple[Any, Any]:
    """Mean and deviation (B, 1) of the values that there are; the latter 1 where all are alike."""
    known = tf.logical_not(tf.math.is_nan(read))
    count = tf.reduce_sum(tf.cast(known, tf.float32), axis=1, keepdims=True)
    mean = tf.reduce_sum(tf.where(known, read, 0.0), axis=1, keepdims=True) / count
    squares = tf.reduce_sum(tf.where(known, tf.square(read - mean), 0.0), axis=1, keepdims=True)
    deviation = tf.sqrt(squares / count)
    return mean, tf.where(deviation > 1e-6 * (1.0 + tf.abs(mean)), deviation, 1.0)
