"""The scaling between raw windows of a series and the network's inputs and answers.

The steps are those of `gru_serving.preprocessing.series`, here in TensorFlow operations.

Non-negative values may be transformed by a power under which they vary equally at every level: Box
and Cox (1964), "An Analysis of Transformations", of x + 1: ((1 + x)^λ - 1) / λ with an exponent λ
from 0 to 1. For 0 it is log(1 + x), and for 1 the value itself, for which only the inverse differs:
it is never negative.
"""

import functools
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gru_serving.preprocessing.operations import tensors
from gru_serving.preprocessing.series import SeriesScale, powers, roots
from gru_training.errors import DataError
from gru_training.forecasting.known import KnownEffect, common_scale, without_gaps

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

_LEAST, _MOST = 0.1, 0.9
"""Exponents closer to 0 become the logarithm, those closer to 1 no transform."""


def steady_exponent(values: np.ndarray, season: int) -> float:
    """Find the exponent under which seasons of a series vary equally at every level.

    After Guerrero (1993), "Time-series analysis supported by power transformations", Journal of
    Forecasting 12, it has the least coefficient of variation of deviation / level^(1 - λ) over the
    seasons; here for all columns together.

    Args:
        values: (rows, K), at least zero, NaN where a value is missing.
        season: Steps; a single one counts as two.
    """
    from scipy.optimize import minimize_scalar

    steps = max(2, season)
    count = len(values) // steps
    if count < 2:
        return (_LEAST + _MOST) / 2
    whole = values[len(values) - count * steps :].reshape(count, steps, -1)
    full = np.isfinite(whole).all(axis=1)
    levels, deviations = 1 + whole.mean(axis=1), whole.std(axis=1, ddof=1)

    def unsteadiness(exponent: float) -> float:
        total = 0.0
        for level, deviation, known in zip(levels.T, deviations.T, full.T, strict=True):
            ratios = deviation[known] / level[known] ** (1 - exponent)
            if len(ratios) > 1 and ratios.mean() > 0:
                total += ratios.std(ddof=1) / ratios.mean()
        return total

    found: Any = minimize_scalar(unsteadiness, bounds=(_LEAST, _MOST), method="bounded")
    return round(float(found.x), 2)


_MOST_VALUES = 4_000_000
"""Number of features of known inputs that are computed at once."""


class SeriesPreprocessor:
    """Fills and standardises windows; restores forecasts.

    Args:
        mean: (C,) of the training rows, of transformed columns of their powers.
        deviation: (C,) standard deviations (ddof 0) likewise, above 0.
        targets: The K column numbers that are forecast.
        transformed: (C,) bool: columns of which a power (`powers`) is standardised; negative values
            count as zero, and no forecast is negative. None by default.
        exponent: Exponent of the power; that of 0 is log(1 + value).
        raw: Mean and deviation (C,) of the values themselves, on which errors are measured.
        known: Effect of known inputs on the targets, which the network does not see: it is
            subtracted from what it reads, and added to what it forecasts.
    """

    def __init__(
        self,
        mean: np.ndarray,
        deviation: np.ndarray,
        targets: tuple[int, ...],
        transformed: np.ndarray | None = None,
        exponent: float = 0.0,
        raw: tuple[np.ndarray, np.ndarray] | None = None,
        known: KnownEffect | None = None,
    ):
        self.mean = np.asarray(mean, np.float64)
        self.deviation = np.asarray(deviation, np.float64)
        self.targets = tuple(targets)
        none = np.zeros(len(self.mean), bool)
        self.transformed = none if transformed is None else np.asarray(transformed, bool)
        self.exponent = float(exponent)
        raw_mean, raw_deviation = (mean, deviation) if raw is None else raw
        self._raw = np.asarray(raw_mean, np.float64), np.asarray(raw_deviation, np.float64)
        self.known = known
        if not (np.isfinite(self.mean).all() and (self.deviation > 0).all()):
            raise ValueError("mean must be finite and deviation above 0")

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        targets: tuple[int, ...],
        transformed: np.ndarray | None = None,
        exponent: float = 0.0,
        inputs: Sequence[Sequence[int]] = (),
    ) -> "SeriesPreprocessor":
        """Compute mean and deviation of rows (N, C) over the values that are not NaN.

        Args:
            rows: Rows of the training part.
            targets: The K column numbers that are forecast.
            transformed: Columns of which powers are standardised.
            exponent: Exponent of the powers.
            inputs: Columns of each input of a panel, of all series; they are put on one
                scale (`gru_training.forecasting.known.common_scale`).
        """
        raw = _scale(rows, inputs)
        if transformed is None or not transformed.any():
            return cls(*raw, targets)
        read = np.where(transformed, powers(rows, exponent), rows)
        return cls(*_scale(read, inputs), targets, transformed, exponent, raw)

    @property
    def plain(self) -> "SeriesPreprocessor":
        """The scale on which errors are measured: without powers and known inputs."""
        return SeriesPreprocessor(self._raw[0], self._raw[1], self.targets)

    def multiplies(self, column: int) -> bool:
        """Tell whether a column is on a logarithmic scale, on which effects multiply."""
        return bool(self.transformed[column]) and not self.exponent

    @property
    def target_scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation (K,) of the targets on the scale on which errors are measured."""
        columns = list(self.targets)
        return self._raw[0][columns], self._raw[1][columns]

    def with_known(self, known: KnownEffect | None) -> "SeriesPreprocessor":
        """Return this scale with an effect of known inputs."""
        return SeriesPreprocessor(
            self.mean,
            self.deviation,
            self.targets,
            self.transformed,
            self.exponent,
            self._raw,
            known,
        )

    @property
    def future_columns(self) -> tuple[int, ...]:
        """The F column numbers whose future values a forecast needs."""
        return self.scale.future_columns

    @classmethod
    def load(cls, path: Path) -> "SeriesPreprocessor":
        """Read what `save` wrote.

        Raises:
            DataError: The file is missing or damaged.
        """
        try:
            values = json.loads(path.read_text("utf-8"))
            scale = values["mean"], values["deviation"], tuple(values["targets"])
            known = KnownEffect.from_json(values["known"]) if "known" in values else None
            transformed = values.get("transformed")
            if transformed is None:
                return cls(*scale, known=known)
            raw = values["raw_mean"], values["raw_deviation"]
            return cls(*scale, transformed, values["exponent"], raw, known)
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise DataError(f"cannot read {path}: {error}") from error

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        values: dict[str, Any] = {
            "mean": self.mean.tolist(),
            "deviation": self.deviation.tolist(),
            "targets": list(self.targets),
        }
        if self.transformed.any():
            values["transformed"] = self.transformed.tolist()
            values["exponent"] = self.exponent
            values["raw_mean"], values["raw_deviation"] = (each.tolist() for each in self._raw)
        if self.known is not None:
            values["known"] = self.known.to_json()
        path.write_text(json.dumps(values, indent=2) + "\n", "utf-8")

    def standardise(self, history: Any) -> "tf.Tensor":
        """Standardise raw windows (B, T, C), in which NaN marks missing values.

        A missing value is replaced by the last valid one before it in its window, or by the next
        one if there is none before. A column without any value becomes zero, its mean.

        Returns:
            (B, T, C) float32 without NaN. Rows are independent.
        """
        import tensorflow as tf

        return self.scale.standardised(tf.convert_to_tensor(history, tf.float32), tensors())

    def effects(self, history: Any, future: Any = None) -> "tf.Tensor | None":
        """Compute the effects of known inputs on the standardised targets; None without any.

        Args:
            history: (B, T, C) raw.
            future: (B, H, F) raw, of `future_columns` in the steps ahead. A missing value is the
                last one known.

        Returns:
            (B, H, K) float32, or without a future (B, T, K) for the history itself.
        """
        import tensorflow as tf

        if self.known is None:
            return None
        if future is not None:
            future = tf.convert_to_tensor(future, tf.float32)
        return self.scale.effects(tf.convert_to_tensor(history, tf.float32), future, tensors())

    def series_effects(self, rows: np.ndarray) -> np.ndarray | None:
        """Compute `effects` (rows, K) float32 of a raw series (rows, C) in bounded memory."""
        if self.known is None:
            return None
        columns = list(self.known.columns)
        deviation = self.deviation[columns].astype(np.float32)
        scaled = (rows[:, columns].astype(np.float32) - self.mean[columns].astype(np.float32)) / (
            deviation
        )
        scaled = without_gaps(scaled)
        step = max(1, _MOST_VALUES // (len(self.known.coefficients) * len(columns)))
        pieces = [self.known(scaled[row : row + step]) for row in range(0, len(scaled), step)]
        return np.concatenate(pieces)

    def standardise_targets(self, values: np.ndarray) -> np.ndarray:
        """Standardise raw values (..., K) of the targets; NaN stays."""
        columns = list(self.targets)
        transformed = self.transformed[columns]
        if transformed.any():
            values = np.where(transformed, powers(values, self.exponent), values)
        return np.asarray((values - self.mean[columns]) / self.deviation[columns])

    def measured(self, values: np.ndarray, effects: np.ndarray | None = None) -> np.ndarray:
        """Convert values (..., K) from the network's scale to that of `plain`; NaN stays.

        Args:
            values: Standardised values.
            effects: Effect of known inputs on the values, where there is one.
        """
        if effects is not None:
            values = values + effects
        columns = list(self.targets)
        transformed = self.transformed[columns]
        if not transformed.any():
            return values
        read = values * self.deviation[columns] + self.mean[columns]
        mean, deviation = (each[columns] for each in self._raw)
        read = np.where(transformed, roots(read, self.exponent), read)
        return np.asarray((read - mean) / deviation)

    def restore(self, forecast: Any, effects: Any = None) -> "tf.Tensor":
        """Convert standardised forecasts (B, H, K, ...) of the targets to raw units, float32.

        Args:
            forecast: Forecasts on the scale of the network.
            effects: (B, H, K), what known inputs add, of `effects`; None: nothing.
        """
        import tensorflow as tf

        forecast = tf.convert_to_tensor(forecast, tf.float32)
        if effects is not None:
            effects = tf.convert_to_tensor(effects, tf.float32)
        return self.scale.restored(forecast, len(forecast.shape) - 2, effects, tensors())

    @cached_property
    def scale(self) -> SeriesScale:
        """The scale for steps."""
        return SeriesScale(
            tuple(self.mean.tolist()),
            tuple(self.deviation.tolist()),
            self.targets,
            tuple(self.transformed.tolist()) if self.transformed.any() else (),
            self.exponent,
            None if self.known is None else self.known.effect,
        )


def _scale(rows: np.ndarray, inputs: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of each column; columns of one input share theirs."""
    mean, deviation = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    together = [number for columns in inputs for number in columns]
    alone = np.setdiff1d(np.arange(rows.shape[1]), together)
    mean[alone] = np.nanmean(rows[:, alone], axis=0)
    deviation[alone] = np.nanstd(rows[:, alone], axis=0)
    for columns in map(list, inputs):
        mean[columns], deviation[columns] = common_scale(rows[:, columns])
    return mean, np.where(deviation > 0, deviation, 1.0)


Predictor = Callable[[np.ndarray], np.ndarray]
"""Function from raw histories (B, L, C) to standardised answers (B, H, K, Q or 1)."""


def make_predictor(
    model: "keras.Model",
    preprocessor: SeriesPreprocessor,
    sequence: "Callable[[tf.Tensor], tf.Tensor] | None" = None,
) -> Predictor:
    """Put preprocessing and model into one graph, traced at its first use, for batches of any size.

    Args:
        model: Model from standardised windows (B, L, C) to (B, H, K, Q or 1).
        preprocessor: The scale of the model.
        sequence: Function that answers standardised histories of any length in place of the model,
            of one that streams; None: the model answers.
    """
    import tensorflow as tf

    lookback, channels = model.input_shape[1:]
    spec = tf.TensorSpec((None, None if sequence else lookback, channels), tf.float32)

    @tf.function(input_signature=[spec], autograph=False)
    def predict(histories: tf.Tensor) -> tf.Tensor:
        read = preprocessor.standardise(histories)
        return sequence(read) if sequence else model(read, training=False)

    traced = functools.cache(predict.get_concrete_function)
    return lambda histories: np.asarray(traced()(tf.constant(histories, tf.float32)).numpy())
