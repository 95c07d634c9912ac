"""Windows of series to what a forecaster's network reads, and its answers to forecasts.

B rows, T steps, C columns, K of them forecast, F inputs known of the steps ahead, H steps ahead,
Q levels.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gru_serving.preprocessing.answers import encoded
from gru_serving.preprocessing.checks import asserted, failed
from gru_serving.preprocessing.description import DataFile, Step, Values, tuples

MEDIAN = 0.5
LARGEST_LOGARITHM = 80.0
"""Greatest logarithm of which float32 still has the exponential."""


def powers(values: Any, exponent: float) -> Any:
    """Return ((1 + x)^λ - 1) / λ with an exponent λ; negative values count as zero, NaN stays.

    Box and Cox (1964), "An Analysis of Transformations", of one more than a value. For 0 that is
    log(1 + x), and for 1 the value itself, of which only the way back differs.
    """
    positive = np.maximum(values, 0)
    if exponent == 1:
        return positive
    logarithms = np.log1p(positive)
    return np.expm1(exponent * logarithms) / exponent if exponent else logarithms


def roots(values: Any, exponent: float) -> Any:
    """Return the inverse of `powers`, at least zero."""
    if exponent == 1:
        return np.maximum(values, 0)
    logarithms = values
    if exponent:
        logarithms = np.log1p(exponent * np.maximum(values, 0)) / exponent
    return np.maximum(np.expm1(np.minimum(logarithms, LARGEST_LOGARITHM)), 0)


def graph_powers(values: Any, exponent: float) -> Any:
    """`powers` by operations of TensorFlow."""
    import tensorflow as tf

    positive = tf.maximum(values, 0.0)
    if exponent == 1:
        return positive
    logarithms = tf.math.log1p(positive)
    return tf.math.expm1(exponent * logarithms) / exponent if exponent else logarithms


def graph_roots(values: Any, exponent: float) -> Any:
    """`roots` by operations of TensorFlow."""
    import tensorflow as tf

    if exponent == 1:
        return tf.maximum(values, 0.0)
    logarithms = values
    if exponent:
        logarithms = tf.math.log1p(exponent * tf.maximum(values, 0.0)) / exponent
    return tf.maximum(tf.math.expm1(tf.minimum(logarithms, LARGEST_LOGARITHM)), 0.0)


def filled(windows: np.ndarray) -> np.ndarray:
    """Return windows (B, T, C) with NaN replaced by the value before, or else after."""
    gone = np.isnan(windows)
    if not gone.any():
        return windows
    steps = np.arange(windows.shape[1])[:, np.newaxis]
    last = np.maximum.accumulate(np.where(gone, -1, steps), axis=1)
    first = np.argmin(gone, axis=1, keepdims=True)
    return np.take_along_axis(windows, np.where(last < 0, first, last), axis=1)


def graph_filled(windows: Any) -> Any:
    """`filled` by operations of TensorFlow.

    The value at t is the n-th seen one, n being how many were seen until t, at least one.
    """
    import tensorflow as tf

    columns = tf.transpose(windows, (0, 2, 1))  # (B, C, T)
    gone = tf.math.is_nan(columns)
    steps = tf.shape(columns)[2]
    place = tf.range(steps)
    seen_first = tf.argsort(tf.where(gone, place + steps, place), axis=2)
    count = tf.cumsum(tf.cast(~gone, tf.int32), axis=2)
    source = tf.gather(seen_first, tf.maximum(count - 1, 0), batch_dims=2, axis=2)
    return tf.transpose(tf.gather(columns, source, batch_dims=2, axis=2), (0, 2, 1))


class JsonFile(DataFile):
    """A frozen dataclass of numbers, texts and tuples as a file of its own.

    Attributes:
        nested: Classes of fields that are such dataclasses, or None, by name.
    """

    nested: ClassVar[Mapping[str, type]] = {}

    def text(self) -> str:
        """Return the fields by name."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"  # type: ignore[call-overload]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the inverse of `text`."""
        found = json.loads(text)
        for name, kind in cls.nested.items():
            if found[name] is not None:
                found[name] = kind(**{each: tuples(of) for each, of in found[name].items()})
        return cls(**{name: tuples(value) for name, value in found.items()})


REACH = 4.0
"""Standard deviations beyond which inputs count as if they were there."""
Knots = Sequence[Sequence[float]]


def features(
    inputs: Sequence[Any], knots: Knots, pairs: bool, maximum: Callable[[Any, Any], Any]
) -> Iterator[Any]:
    """Yield the features of F inputs: x, max(x - knot, 0), and products with other inputs.

    Args:
        inputs: The inputs, arrays or tensors of one shape.
        knots: Values of each input where its function bends.
        pairs: Whether there are products of an input and the functions of another.
        maximum: Function of the arrays or tensors.
    """
    bases = [
        [x, *(maximum(x - knot, 0.0) for knot in of)] for x, of in zip(inputs, knots, strict=True)
    ]
    yield from itertools.chain.from_iterable(bases)
    if pairs:
        for first, second in itertools.combinations(range(len(bases)), 2):
            yield from (inputs[first] * feature for feature in bases[second])
            yield from (inputs[second] * feature for feature in bases[first][1:])


@dataclass(frozen=True)
class InputEffect:
    """A sum of piecewise linear functions of inputs and, if wanted, of their products.

    All values are standardised. Either all K targets read the same F inputs, or, as in a panel,
    each has inputs of its own.

    Attributes:
        columns: Numbers of the input columns, F or K·F, those of a target side by side.
        knots: Values of each input, ascending, where its function bends.
        coefficients: (P, K), of the P features that `features` makes, for the K targets.
        pairs: Whether there are products of an input and the functions of another.
    """

    columns: tuple[int, ...]
    knots: tuple[tuple[float, ...], ...]
    coefficients: tuple[tuple[float, ...], ...]
    pairs: bool

    @property
    def by_series(self) -> bool:
        """Whether each target has inputs of its own."""
        targets = len(self.coefficients[0])
        return targets > 1 and len(self.columns) == len(self.knots) * targets

    def numpy(self, inputs: np.ndarray) -> np.ndarray:
        """Return effects (..., K) of inputs (..., F or K·F) without NaN, of their dtype."""
        inputs = np.clip(inputs, -REACH, REACH)
        if self.by_series:
            inputs = inputs.reshape(*inputs.shape[:-1], -1, len(self.knots))
        each = [inputs[..., place] for place in range(len(self.knots))]
        made = features(each, self.knots, self.pairs, np.maximum)
        coefficients = self._coefficients.astype(inputs.dtype)
        if not self.by_series:
            return np.asarray(np.stack([*made], axis=-1) @ coefficients)
        total = np.zeros(inputs.shape[:-1], inputs.dtype)
        for feature, of in zip(made, coefficients, strict=True):
            total += feature * of
        return total

    def graph(self, inputs: Any) -> Any:
        """Return the same by operations of TensorFlow."""
        import tensorflow as tf

        inputs = tf.clip_by_value(tf.convert_to_tensor(inputs), -REACH, REACH)
        if self.by_series:
            sizes = [len(self.coefficients[0]), len(self.knots)]
            inputs = tf.reshape(inputs, tf.concat([tf.shape(inputs)[:-1], sizes], axis=0))
        made = features(tf.unstack(inputs, axis=-1), self.knots, self.pairs, tf.maximum)
        if not self.by_series:
            coefficients = tf.constant(self._coefficients, inputs.dtype)
            return tf.tensordot(tf.stack([*made], axis=-1), coefficients, axes=1)
        total: Any = 0.0  # one feature at a time: all of them would take P times the memory
        for feature, of in zip(made, self._coefficients, strict=True):
            total += feature * tf.constant(of, inputs.dtype)
        return total

    @cached_property
    def _coefficients(self) -> np.ndarray:
        return np.array(self.coefficients, np.float64)


@dataclass(frozen=True)
class SeriesScale(JsonFile):
    """The scale on which a network reads columns.

    Attributes:
        mean: (C,) of the training rows, of transformed columns of their powers.
        deviation: (C,) standard deviations likewise, above 0.
        targets: The K column numbers that are forecast.
        transformed: (C,) whether powers of a column are standardised; negative values count as
            zero, and no forecast is negative. Empty where of none.
        exponent: Exponent of the powers; of 0 it is log(1 + value).
        known: Effect of known inputs on the targets, which is subtracted from what a network reads
            and added to what it forecasts.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    targets: tuple[int, ...]
    transformed: tuple[bool, ...] = ()
    exponent: float = 0.0
    known: InputEffect | None = None

    file = "scale.json"
    nested = {"known": InputEffect}  # noqa: RUF012

    @property
    def future_columns(self) -> tuple[int, ...]:
        """The F column numbers whose values of the steps ahead a forecast needs."""
        return () if self.known is None else tuple(dict.fromkeys(self.known.columns))

    def standardised(self, history: np.ndarray) -> np.ndarray:
        """Return what a network reads of windows (B, T, C) with NaN where a value is missing.

        A missing value is replaced by the last one seen before it in its window, or by the next one
        where there is none before. A column without any value becomes zero, its mean.
        """
        whole = filled(history)
        if self.transformed:
            takes = np.array(self.transformed) & ~np.isnan(whole)
            whole = np.where(takes, powers(whole, self.exponent), whole)
        scaled = (whole - self._mean) / self._deviation
        if np.isnan(scaled).any():
            scaled = np.where(np.isnan(scaled), np.float32(0), scaled)
        if self.known is not None:
            effect = self.known.numpy(scaled[..., list(self.known.columns)])
            scaled[..., list(self.targets)] -= effect
        return np.asarray(scaled)

    def graph_standardised(self, history: Any) -> Any:
        """Return the same by operations of TensorFlow."""
        import tensorflow as tf

        history = tf.convert_to_tensor(history, tf.float32)
        missing = tf.reduce_any(tf.math.is_nan(history))
        whole = tf.cond(missing, lambda: graph_filled(history), lambda: history)
        if self.transformed:
            takes = tf.constant(self.transformed) & ~tf.math.is_nan(whole)
            whole = tf.where(takes, graph_powers(whole, self.exponent), whole)
        scaled = (whole - tf.constant(self._mean)) / tf.constant(self._deviation)
        scaled = tf.where(tf.math.is_nan(scaled), 0.0, scaled)
        if self.known is None:
            return scaled
        effect = self.known.graph(tf.gather(scaled, self.known.columns, axis=-1))  # (B, T, K)
        place = np.full(len(self.mean), len(self.targets))
        place[list(self.targets)] = np.arange(len(self.targets))
        nothing = tf.zeros_like(effect[..., :1])
        return scaled - tf.gather(tf.concat([effect, nothing], axis=-1), place, axis=-1)

    def effects(self, history: np.ndarray, future: np.ndarray | None) -> np.ndarray:
        """Return the effects of known inputs on the standardised targets.

        Args:
            history: (B, T, C) raw.
            future: (B, H, F) raw, of `future_columns` in the steps ahead. A missing value is the
                last one known.

        Returns:
            (B, H, K), or without a future (B, T, K) of the history itself.
        """
        assert self.known is not None
        columns = list(self.future_columns)
        read = history[..., columns]
        if future is not None:
            read = np.concatenate([read, future], axis=1)
        scaled = (filled(read) - self._mean[columns]) / self._deviation[columns]
        scaled = np.where(np.isnan(scaled), np.float32(0), scaled)[..., self._shared]
        effects = self.known.numpy(scaled)
        return effects if future is None else effects[:, history.shape[1] :]

    def graph_effects(self, history: Any, future: Any) -> Any:
        """Return the same by operations of TensorFlow."""
        import tensorflow as tf

        assert self.known is not None
        columns = list(self.future_columns)
        read = tf.gather(tf.convert_to_tensor(history, tf.float32), columns, axis=-1)
        if future is not None:
            read = tf.concat([read, tf.convert_to_tensor(future, tf.float32)], axis=1)
        scaled = (graph_filled(read) - self._mean[columns]) / self._deviation[columns]
        scaled = tf.where(tf.math.is_nan(scaled), 0.0, scaled)
        if self.known.columns != self.future_columns:  # what several series share
            scaled = tf.gather(scaled, self._shared, axis=-1)
        effects = self.known.graph(scaled)
        return effects if future is None else effects[:, tf.shape(history)[1] :]

    def restored(self, values: np.ndarray, axes: int, effects: np.ndarray | None) -> np.ndarray:
        """Return standardised values of the targets in raw units, float32.

        Args:
            values: Standardised values; the targets are so many axes from the end.
            axes: Number of the axes.
            effects: What known inputs add, with the targets as last axis; None: nothing.
        """
        columns, shape = list(self.targets), (-1, *(1,) * (axes - 1))
        if effects is not None:
            values = values + effects.reshape(*effects.shape, *shape[1:])
        raw = values * self._deviation[columns].reshape(shape) + self._mean[columns].reshape(shape)
        if not any(self.transformed):
            return np.asarray(raw)
        takes = np.array(self.transformed)[columns].reshape(shape)
        return np.asarray(np.where(takes, roots(raw, self.exponent), raw))

    def graph_restored(self, values: Any, axes: int, effects: Any) -> Any:
        """Return the same by operations of TensorFlow."""
        import tensorflow as tf

        columns, shape = list(self.targets), (-1, *(1,) * (axes - 1))
        values = tf.convert_to_tensor(values, tf.float32)
        if effects is not None:
            for _ in range(axes - 1):
                effects = effects[..., tf.newaxis]
            values += tf.cast(effects, tf.float32)
        raw = values * self._deviation[columns].reshape(shape) + self._mean[columns].reshape(shape)
        if not any(self.transformed):
            return raw
        takes = np.array(self.transformed)[columns].reshape(shape)
        return tf.where(tf.constant(takes), graph_roots(raw, self.exponent), raw)

    @cached_property
    def _mean(self) -> np.ndarray:
        return np.array(self.mean, np.float32)

    @cached_property
    def _deviation(self) -> np.ndarray:
        return np.array(self.deviation, np.float32)

    @cached_property
    def _shared(self) -> list[int]:
        """Place of each input column of the effect among `future_columns`."""
        assert self.known is not None
        return [self.future_columns.index(column) for column in self.known.columns]


@dataclass(frozen=True)
class TakeLast(Step, kind="take_last"):
    """The last steps of a history.

    Attributes:
        source: History (B, T, ...).
        target: Its last steps.
        count: Number of the steps.
    """

    source: str
    target: str
    count: int

    def numpy(self, values: Values) -> None:
        """Take them."""
        values[self.target] = values[self.source][:, -self.count :]

    def graph(self, values: Values) -> None:
        """Take them."""
        values[self.target] = values[self.source][:, -self.count :]


@dataclass(frozen=True)
class Standardise(Step, kind="standardise"):
    """Raw windows to what a network reads; see `SeriesScale.standardised`.

    Attributes:
        source: Windows (B, T, C).
        target: Windows (B, T, C) without NaN.
        scale: Scale of the columns.
    """

    source: str
    target: str
    scale: SeriesScale

    files = {"scale": SeriesScale}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Fill and scale them."""
        values[self.target] = self.scale.standardised(values[self.source])

    def graph(self, values: Values) -> None:
        """Fill and scale them."""
        values[self.target] = self.scale.graph_standardised(values[self.source])


@dataclass(frozen=True)
class StandardiseTick(Step, kind="standardise_tick"):
    """One raw step of a stream to what a network reads; what is missing stays so.

    Attributes:
        source: Values (B, C).
        target: Values (B, C), NaN where missing.
        scale: Scale of the columns.
    """

    source: str
    target: str
    scale: SeriesScale

    files = {"scale": SeriesScale}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Scale them."""
        value = values[self.source]
        missing = np.isnan(value)
        known = np.where(missing, np.float32(0), value)[:, np.newaxis]
        values[self.target] = np.where(missing, value, self.scale.standardised(known)[:, 0])

    def graph(self, values: Values) -> None:
        """Scale them."""
        import tensorflow as tf

        value = values[self.source]
        missing = tf.math.is_nan(value)
        known = tf.where(missing, tf.zeros_like(value), value)[:, tf.newaxis]
        scaled = self.scale.graph_standardised(known)[:, 0]
        values[self.target] = tf.where(missing, value, scaled)


@dataclass(frozen=True)
class AddEffects(Step, kind="add_effects"):
    """Effects of known inputs on the standardised targets; see `SeriesScale.effects`.

    Attributes:
        history: Windows (B, T, C) raw.
        future: Known inputs (B, H, F) of the steps ahead; None: those of the history itself.
        target: Effects (B, H or T, K).
        scale: Scale of the columns.
    """

    history: str
    future: str | None
    target: str
    scale: SeriesScale

    files = {"scale": SeriesScale}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Compute them."""
        future = None if self.future is None else values[self.future]
        values[self.target] = self.scale.effects(values[self.history], future)

    def graph(self, values: Values) -> None:
        """Compute them."""
        future = None if self.future is None else values[self.future]
        values[self.target] = self.scale.graph_effects(values[self.history], future)


@dataclass(frozen=True)
class Intervals(JsonFile):
    """The calibration of intervals.

    Attributes:
        levels: The Q levels, ascending, with .5.
        offsets: (H, K, Q), on the scale of the network.
    """

    levels: tuple[float, ...]
    offsets: tuple[tuple[tuple[float, ...], ...], ...]

    file = "intervals.json"

    @property
    def middle(self) -> int:
        """Place of the level .5."""
        return self.levels.index(MEDIAN)

    @cached_property
    def array(self) -> Any:
        """Offsets (H, K, Q) float32."""
        return np.array(self.offsets, np.float32)

    @cached_property
    def median(self) -> Any:
        """Offsets (H, 1, Q) float32 of a series of which nothing is known."""
        return np.median(np.array(self.offsets), axis=1, keepdims=True).astype(np.float32)


def calibrated(forecasts: np.ndarray, offsets: np.ndarray, middle: int) -> np.ndarray:
    """Return calibrated quantiles (B, H, K, Q), ascending along Q.

    Bounds that would lie on the wrong side of the forecast, or further in than those of a narrower
    interval, are moved there: that can only widen an interval, so that none loses coverage.

    Args:
        forecasts: (B, H, K, 1) or (B, H, K, Q).
        offsets: (H, K, Q).
        middle: Place of the forecast itself.
    """
    found: np.ndarray = forecasts + offsets
    below, above = found[..., middle::-1], found[..., middle:]
    np.minimum.accumulate(below, axis=-1, out=below)
    np.maximum.accumulate(above, axis=-1, out=above)
    return found


@dataclass(frozen=True)
class CalibrateQuantiles(Step, kind="calibrate_quantiles"):
    """Forecasts to calibrated quantiles; see `calibrated`.

    Attributes:
        source: Forecasts (B, H, K, 1) or (B, H, K, Q), standardised.
        target: Quantiles (B, H, K, Q), ascending along Q; that of level .5 is the forecast.
        intervals: Calibration.
        unknown: Whether the forecasts are of one series that the model never saw.
    """

    source: str
    target: str
    intervals: Intervals
    unknown: bool = False

    files = {"intervals": Intervals}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Shift and order them."""
        forecasts = values[self.source]
        values[self.target] = calibrated(forecasts, self._offsets, self.intervals.middle)

    def graph(self, values: Values) -> None:
        """Shift and order them."""
        import tensorflow as tf

        shifted, middle = values[self.source] + self._offsets, self.intervals.middle
        bounds = tf.unstack(shifted, axis=-1)
        for q in reversed(range(middle)):
            bounds[q] = tf.minimum(bounds[q], bounds[q + 1])
        for q in range(middle + 1, len(bounds)):
            bounds[q] = tf.maximum(bounds[q], bounds[q - 1])
        values[self.target] = tf.stack(bounds, axis=-1)

    @property
    def _offsets(self) -> Any:
        return self.intervals.median if self.unknown else self.intervals.array


@dataclass(frozen=True)
class Restore(Step, kind="restore"):
    """Standardised values of the targets in raw units; see `SeriesScale.restored`.

    Attributes:
        source: Standardised values.
        target: Raw values.
        scale: Scale of the columns.
        axes: Number of axes from that of the targets to the end.
        effects: What known inputs add, of which the targets are the last axis; None: nothing.
    """

    source: str
    target: str
    scale: SeriesScale
    axes: int
    effects: str | None = None

    files = {"scale": SeriesScale}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Scale them."""
        effects = None if self.effects is None else values[self.effects]
        values[self.target] = self.scale.restored(values[self.source], self.axes, effects)

    def graph(self, values: Values) -> None:
        """Scale them."""
        effects = None if self.effects is None else values[self.effects]
        values[self.target] = self.scale.graph_restored(values[self.source], self.axes, effects)


@dataclass(frozen=True)
class TakePlaces(Step, kind="take_places"):
    """Some places of the last axis, or one, which takes the axis away.

    Attributes:
        source: Values (..., N).
        target: Values (..., n), or (...).
        places: Numbers of the places, or a number.
    """

    source: str
    target: str
    places: tuple[int, ...] | int

    def numpy(self, values: Values) -> None:
        """Take them."""
        places = self.places if isinstance(self.places, int) else list(self.places)
        values[self.target] = values[self.source][..., places]

    def graph(self, values: Values) -> None:
        """Take them."""
        import tensorflow as tf

        values[self.target] = tf.gather(values[self.source], self.places, axis=-1)


@dataclass(frozen=True)
class EndSeries(Step, kind="end_series"):
    """NaN as the forecasts of series that have no value in the steps read.

    Attributes:
        history: Windows (B, T, C) raw, of the steps read.
        targets: The K column numbers that are forecast.
        sources: Forecasts (B, H, K) and quantiles (B, H, K, Q), which are changed.
    """

    history: str
    targets: tuple[int, ...]
    sources: tuple[str, str] = ("forecast", "quantiles")

    def numpy(self, values: Values) -> None:
        """Put it there."""
        read = values[self.history][..., list(self.targets)]
        ended = np.isnan(read).all(axis=1)[:, np.newaxis]  # (B, 1, K)
        forecast, quantiles = self.sources
        nan = np.float32(np.nan)
        values[forecast] = np.where(ended, nan, values[forecast])
        values[quantiles] = np.where(ended[..., np.newaxis], nan, values[quantiles])

    def graph(self, values: Values) -> None:
        """Put it there."""
        import tensorflow as tf

        read = tf.gather(values[self.history], self.targets, axis=-1)
        ended = tf.reduce_all(tf.math.is_nan(read), axis=1)[:, tf.newaxis]
        forecast, quantiles = self.sources
        nan = float("nan")
        values[forecast] = tf.where(ended, nan, values[forecast])
        values[quantiles] = tf.where(ended[..., tf.newaxis], nan, values[quantiles])


@dataclass(frozen=True)
class NumberSteps(Step, kind="number_steps"):
    """The step of the history, from 0, with which each step of a network ends, (B, N) int32.

    Attributes:
        history: Windows (B, T, C) raw.
        states: States (B, N, ...) of the network.
        target: Numbers of the steps.
        width: Steps of the history for each step of the network.
    """

    history: str
    states: str
    target: str
    width: int

    def numpy(self, values: Values) -> None:
        """Count back from the last one."""
        rows, count = values[self.states].shape[:2]
        length = values[self.history].shape[1]
        ends = length - 1 - self.width * np.arange(count - 1, -1, -1, dtype=np.int32)
        values[self.target] = np.broadcast_to(ends.astype(np.int32), (rows, count))

    def graph(self, values: Values) -> None:
        """Count back from the last one."""
        import tensorflow as tf

        rows, count = tf.unstack(tf.shape(values[self.states])[:2])
        length = tf.shape(values[self.history])[1]
        ends = length - 1 - self.width * tf.range(count - 1, -1, -1)
        values[self.target] = tf.broadcast_to(ends, (rows, count))


@dataclass(frozen=True)
class AverageEffect(JsonFile):
    """The mean of the effects of all series of a panel, on one of which nothing else is known.

    Attributes:
        effect: Mean of the effects, of F inputs on one target.
        mean: (F,) of the inputs; of relative ones in units of the mean of each series.
        deviation: (F,) likewise.
        relative: (F,) whether an input counts relative to its mean in each series.
    """

    effect: InputEffect
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    relative: tuple[bool, ...]

    file = "average_effect.json"
    nested = {"effect": InputEffect}  # noqa: RUF012

    @cached_property
    def _mean(self) -> np.ndarray:
        return np.array(self.mean, np.float32)

    @cached_property
    def _deviation(self) -> np.ndarray:
        return np.array(self.deviation, np.float32)

    def numpy(
        self, past: np.ndarray, future: np.ndarray, steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the effects (B, steps) on the last steps of the past, and (B, H) on those ahead.

        Args:
            past: (B, T, F) raw, NaN where a value is missing: the last one known counts.
            future: (B, H, F) likewise.
            steps: Number of steps read; those before the past count as its first.
        """
        read = _last_of(past, steps)
        known = ~np.isnan(read)
        sums = np.where(known, read, np.float32(0)).sum(axis=1, keepdims=True)
        counts = known.sum(axis=1, keepdims=True).astype(np.float32)
        means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
        scale = np.where(np.array(self.relative) & (means != 0), means, np.float32(1))
        whole = filled(np.concatenate([read, future], axis=1)) / scale
        standardised = (whole - self._mean) / self._deviation
        standardised = np.where(np.isnan(standardised), np.float32(0), standardised)
        effects = self.effect.numpy(standardised)[..., 0]
        return effects[:, :steps], effects[:, steps:]

    def graph(self, past: Any, future: Any, steps: int) -> tuple[Any, Any]:
        """Return the same by operations of TensorFlow."""
        import tensorflow as tf

        read = _graph_last_of(past, steps)
        known = tf.logical_not(tf.math.is_nan(read))
        sums = tf.reduce_sum(tf.where(known, read, 0.0), axis=1, keepdims=True)
        means = tf.math.divide_no_nan(sums, tf.reduce_sum(tf.cast(known, tf.float32), 1, True))
        scale = tf.where(tf.constant(self.relative) & (means != 0), means, 1.0)
        whole = graph_filled(tf.concat([read, future], axis=1)) / scale
        standardised = (whole - self._mean) / self._deviation
        standardised = tf.where(tf.math.is_nan(standardised), 0.0, standardised)
        effects = self.effect.graph(standardised)[..., 0]
        return effects[:, :steps], effects[:, steps:]


def _last_of(history: np.ndarray, steps: int) -> np.ndarray:
    """The last steps of (B, T, ...), missing ones before the first."""
    shape = len(history), max(0, steps - history.shape[1]), *history.shape[2:]
    before = np.full(shape, np.nan, np.float32)
    return np.concatenate([before, history], axis=1)[:, -steps:]


def _graph_last_of(history: Any, steps: int) -> Any:
    import tensorflow as tf

    before = tf.fill((tf.shape(history)[0], steps, *history.shape[2:]), float("nan"))
    return tf.concat([before, history], axis=1)[:, -steps:]


@dataclass(frozen=True)
class ReadAlone(Step, kind="read_alone"):
    """A series that the model never saw, on the scale that its own history has.

    `level` and `spread` (B, 1, 1) are added. What `SplitEffect` has added as `behind` is
    subtracted.

    Attributes:
        source: Histories (B, T) raw, NaN where missing; each row has a value. Of less than is read
            the first value counts for what is missing before it.
        target: Window (B, L, 1) that the network reads.
        lookback: L.
        exponent: Exponent of the power that is standardised; None: values are.
    """

    source: str
    target: str
    lookback: int
    exponent: float | None

    def numpy(self, values: Values) -> None:
        """Scale and fill it."""
        read = _last_of(values[self.source], self.lookback)
        known = ~np.isnan(read)
        if self.exponent is not None:
            read = np.where(known, powers(read, self.exponent), read)
        count = known.sum(axis=1, keepdims=True).astype(np.float32)
        zero = np.float32(0)
        mean = np.where(known, read, zero).sum(axis=1, keepdims=True) / count
        squares = np.where(known, np.square(read - mean), zero).sum(axis=1, keepdims=True)
        deviation = np.sqrt(squares / count)
        varies = deviation > np.float32(1e-6) * (1 + np.abs(mean))
        deviation = np.where(varies, deviation, np.float32(1))
        standardised = (read - mean) / deviation
        if "behind" in values:
            standardised -= values["behind"]
        window = filled(standardised[..., np.newaxis])
        values[self.target] = np.where(np.isnan(window), zero, window)
        values["level"], values["spread"] = mean[..., np.newaxis], deviation[..., np.newaxis]

    def graph(self, values: Values) -> None:
        """Scale and fill it."""
        import tensorflow as tf

        read = _graph_last_of(values[self.source], self.lookback)
        read = tf.ensure_shape(read, (None, self.lookback))
        known = tf.logical_not(tf.math.is_nan(read))
        if self.exponent is not None:
            read = tf.where(known, graph_powers(read, self.exponent), read)
        count = tf.reduce_sum(tf.cast(known, tf.float32), axis=1, keepdims=True)
        mean = tf.reduce_sum(tf.where(known, read, 0.0), axis=1, keepdims=True) / count
        squares = tf.where(known, tf.square(read - mean), 0.0)
        deviation = tf.sqrt(tf.reduce_sum(squares, axis=1, keepdims=True) / count)
        deviation = tf.where(deviation > 1e-6 * (1.0 + tf.abs(mean)), deviation, 1.0)
        standardised = (read - mean) / deviation
        if "behind" in values:
            standardised -= values["behind"]
        window = graph_filled(standardised[..., tf.newaxis])
        values[self.target] = tf.where(tf.math.is_nan(window), 0.0, window)
        values["level"], values["spread"] = mean[..., tf.newaxis], deviation[..., tf.newaxis]


@dataclass(frozen=True)
class SplitEffect(Step, kind="split_effect"):
    """The effects of known inputs on a series of which nothing else is known.

    `behind` (B, steps) is on the steps read, and `ahead` (B, H) on those ahead.

    Attributes:
        past: Known inputs (B, T, F) of the history.
        future: Known inputs (B, H, F) of the steps ahead.
        steps: Number of steps read.
        average: Effect.
    """

    past: str
    future: str
    steps: int
    average: AverageEffect

    files = {"average": AverageEffect}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Compute them."""
        given = values[self.past], values[self.future], self.steps
        values["behind"], values["ahead"] = self.average.numpy(*given)

    def graph(self, values: Values) -> None:
        """Compute them."""
        given = values[self.past], values[self.future], self.steps
        values["behind"], values["ahead"] = self.average.graph(*given)


@dataclass(frozen=True)
class RestoreAlone(Step, kind="restore_alone"):
    """Quantiles (B, H, 1, Q) of a series that the model never saw in its own units, (B, H, Q).

    Attributes:
        source: Quantiles on the scale of `ReadAlone`, whose `level` and `spread` are read, and
            `ahead` if there is one.
        target: Quantiles in raw units.
        exponent: Exponent of the power that was standardised; None: values were.
    """

    source: str
    target: str
    exponent: float | None

    def numpy(self, values: Values) -> None:
        """Scale them."""
        raw = self._scaled(values, values[self.source])
        values[self.target] = raw if self.exponent is None else roots(raw, self.exponent)

    def graph(self, values: Values) -> None:
        """Scale them."""
        raw = self._scaled(values, values[self.source])
        values[self.target] = raw if self.exponent is None else graph_roots(raw, self.exponent)

    @staticmethod
    def _scaled(values: Values, quantiles: Any) -> Any:
        served = quantiles[:, :, 0]
        if "ahead" in values:
            served = served + values["ahead"][..., np.newaxis]
        return served * values["spread"] + values["level"]


@dataclass(frozen=True)
class SeriesColumns(JsonFile):
    """The names of a forecaster's columns.

    Attributes:
        names: The C names in the order of the model's `history`.
        targets: The K column numbers that are forecast.
        read: Numbers of the columns without which there is no forecast.
        known: Numbers of the F columns that are read of the steps ahead.
    """

    names: tuple[str, ...]
    targets: tuple[int, ...]
    read: tuple[int, ...]
    known: tuple[int, ...] = ()

    file = "columns.json"


@dataclass(frozen=True)
class FindColumns(Step, kind="find_columns"):
    """The answer to a caller that has columns of some names: what to send.

    Adds `columns` (B, C), the model's in the order of `history`; `place` (B, C) int32, where each
    of them stands among the names, -1 where it does not; `needed` (B, C) int32, 1 where there is no
    forecast without it; `forecast_columns` (B, K); where known inputs are read `future_columns`
    (B, F), in the order of `future`.

    Attributes:
        source: Names (B, N) that the caller has.
        columns: Columns of the model.
    """

    source: str
    columns: SeriesColumns

    files = {"columns": SeriesColumns}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Find them."""
        names, of = values[self.source], self.columns
        shape = len(names), len(of.names)
        values["columns"] = np.broadcast_to(self._encoded, shape)
        values["place"] = _places(names, of.names)[0]
        values["needed"] = np.broadcast_to(self._needed, shape)
        for name, of_these in (("forecast_columns", of.targets), ("future_columns", of.known)):
            picked = self._encoded[list(of_these)]
            values[name] = np.broadcast_to(picked, (len(names), len(picked)))

    def graph(self, values: Values) -> None:
        """Find them."""
        import tensorflow as tf

        names, of = values[self.source], self.columns
        own = tf.constant(of.names, tf.string)
        found, place = _graph_found(names, own)
        rows, shape = tf.shape(names)[0], tf.shape(found)
        values["columns"] = tf.broadcast_to(own, shape)
        values["place"] = tf.where(found, place, -1)
        values["needed"] = tf.broadcast_to(tf.constant(self._needed), shape)
        for name, of_these in (("forecast_columns", of.targets), ("future_columns", of.known)):
            picked = tf.constant([of.names[number] for number in of_these], tf.string)
            values[name] = tf.tile(picked[tf.newaxis], (rows, 1))

    @cached_property
    def _needed(self) -> np.ndarray:
        return np.isin(np.arange(len(self.columns.names)), self.columns.read).astype(np.int32)

    @cached_property
    def _encoded(self) -> np.ndarray:
        return encoded(self.columns.names)


@dataclass(frozen=True)
class OrderColumns(Step, kind="order_columns"):
    """Columns of any names as the model reads them.

    Others than the model's are left out; of those that it does not read any may be missing.

    Attributes:
        source: Values (B, T, N), which become (B, T, C), or (B, H, F) of known inputs.
        by: Names (B, N) of their columns.
        columns: Columns of the model.
        future: Whether they are known inputs of the steps ahead.
    """

    source: str
    by: str
    columns: SeriesColumns
    future: bool = False

    files = {"columns": SeriesColumns}  # noqa: RUF012

    def numpy(self, values: Values) -> None:
        """Pick them."""
        history, columns = values[self.source], values[self.by]
        width, named = history.shape[2], columns.shape[1]
        if width != named:
            raise failed(f"{self._said[0]}{width}{self._said[1]}{named}")
        if len(columns) != len(history):
            raise failed(f"columns: expected a row for each of the {len(history)} of "
                         f"{self.source}, got {len(columns)}")  # fmt: skip
        names, read = self._names
        place, twice = _places(columns, names)
        if twice is not None:
            raise failed(f"{self._said[2]}{names[twice]} again")
        found = place >= 0
        missing = np.argwhere(~found & np.isin(np.arange(len(names)), read))
        if len(missing):
            row, column = missing[0]
            got = b", ".join(columns[row].tolist()).decode("utf-8", "replace")
            expected = ", ".join(names[number] for number in read)
            raise failed(
                f"columns: row {row} has no column {names[column]}; expected {expected}, got {got}"
            )
        picked = np.take_along_axis(history, np.maximum(place, 0)[:, np.newaxis], axis=2)
        values[self.source] = np.where(found[:, np.newaxis], picked, np.float32(np.nan))

    def graph(self, values: Values) -> None:
        """Pick them."""
        import tensorflow as tf

        names, read = self._names
        own = tf.constant(names, tf.string)
        width, named = tf.shape(values[self.source])[2], tf.shape(values[self.by])[1]
        said = self._said
        asserted(values, self.by, tf.equal(width, named), said[0], width, said[1], named)
        rows, of_names = tf.shape(values[self.source])[0], tf.shape(values[self.by])[0]
        asserted(values, self.by, tf.equal(rows, of_names), "columns: expected a row for each of "
                 "the ", rows, f" of {self.source}, got ", of_names)  # fmt: skip
        columns = values[self.by]
        found, place = _graph_found(columns, own)
        same = tf.equal(own[tf.newaxis, :, tf.newaxis], columns[:, tf.newaxis])
        twice = tf.where(tf.reduce_sum(tf.cast(same, tf.int32), axis=-1) > 1)
        place_of = _first(twice)[1]
        none = tf.equal(tf.shape(twice)[0], 0)
        asserted(values, self.source, none, self._said[2], tf.gather(own, place_of), " again")
        needed = tf.constant(np.isin(np.arange(len(names)), read))
        missing = tf.where(needed & tf.logical_not(found))
        row, column = _first(missing)
        given = tf.concat([columns, tf.fill((1, tf.shape(columns)[1]), "")], 0)[row]
        expected = ", ".join(names[number] for number in read)
        none = tf.equal(tf.shape(missing)[0], 0)
        asserted(values, self.source, none, "columns: row ", row, " has no column ",
                 tf.gather(own, column), f"; expected {expected}, got ",
                 tf.strings.reduce_join(given, separator=", "))  # fmt: skip
        picked = tf.gather(values[self.source], place, axis=2, batch_dims=1)
        values[self.source] = tf.where(found[:, tf.newaxis], picked, float("nan"))

    @property
    def _names(self) -> tuple[Sequence[str], Sequence[int]]:
        """Names of the columns, and numbers of those without which there is no forecast."""
        of = self.columns
        if self.future:
            return [of.names[number] for number in of.known], range(len(of.known))
        return of.names, sorted(of.read)

    @property
    def _said(self) -> tuple[str, str, str]:
        return (
            "columns: expected a name for each of the ",
            f" columns of {'future' if self.future else 'history'}, got ",
            "columns: expected each name once, got ",
        )


def _places(names: np.ndarray, own: Sequence[str]) -> tuple[np.ndarray, int | None]:
    """Find the model's columns among names (B, N), (B, C) int32, -1 where there is none.

    The second value is the number of one that is there twice.
    """
    numbers = {name.encode(): number for number, name in enumerate(own)}
    place = np.full((len(names), len(own)), -1, np.int32)
    twice: int | None = None
    for at, row in zip(place, names.tolist(), strict=True):
        repeated = []
        for position, name in enumerate(row):
            number = numbers.get(name)
            if number is None:
                continue
            if at[number] >= 0:
                repeated.append(number)
            else:
                at[number] = position
        if repeated and twice is None:
            twice = min(repeated)
    return place, twice


def _graph_found(names: Any, own: Any) -> tuple[Any, Any]:
    import tensorflow as tf

    same = tf.equal(own[tf.newaxis, :, tf.newaxis], names[:, tf.newaxis])  # (B, C, N)
    place = tf.argmax(tf.cast(same, tf.int32), axis=-1, output_type=tf.int32)
    return tf.reduce_any(same, axis=-1), place


def _first(places: Any) -> Any:
    """The first of places (n, 2), or (0, 0)."""
    import tensorflow as tf

    return tf.unstack(tf.concat([places, tf.zeros((1, 2), tf.int64)], 0)[0])
