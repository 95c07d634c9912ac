"""The steps from raw windows of series to a network, and from a network to forecasts.

B rows, T steps, C columns, K of them forecast, F inputs known of the steps ahead, H steps ahead,
Q levels.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gru_serving.preprocessing.description import JsonFile, SharedStep, Step, Values
from gru_serving.preprocessing.operations import Arrays

MEDIAN = 0.5
LARGEST_LOGARITHM = 80.0
"""Greatest logarithm whose exponential float32 can represent."""


def powers(values: Any, exponent: float, ops: Any = Arrays) -> Any:
    """Compute ((1 + x)^λ - 1) / λ with an exponent λ; negative values count as zero, NaN stays.

    This is the power transform of Box and Cox (1964), "An Analysis of Transformations", of x + 1.
    For λ = 0 it is log(1 + x), and for λ = 1 the value itself, for which only the inverse differs.
    """
    positive = ops.maximum(values, 0.0)
    if exponent == 1:
        return positive
    logarithms = ops.log1p(positive)
    return ops.expm1(exponent * logarithms) / exponent if exponent else logarithms


def roots(values: Any, exponent: float, ops: Any = Arrays) -> Any:
    """Compute the inverse of `powers`, at least zero."""
    if exponent == 1:
        return ops.maximum(values, 0.0)
    logarithms = values
    if exponent:
        logarithms = ops.log1p(exponent * ops.maximum(values, 0.0)) / exponent
    return ops.maximum(ops.expm1(ops.minimum(logarithms, LARGEST_LOGARITHM)), 0.0)


REACH = 4.0
"""Standard deviations at which inputs are clipped."""


@dataclass(frozen=True)
class InputEffect:
    """A sum of piecewise linear functions of inputs and, optionally, of their products.

    All values are standardised. Either all K targets share the same F inputs, or, as in a panel,
    each has inputs of its own.

    Attributes:
        columns: Numbers of the input columns, F or K·F, those of a target side by side.
        knots: Values of each input, ascending, where its function bends.
        coefficients: (P, K), of the P features, for the K targets.
        pairs: Whether there are products of an input and the functions of another.
    """

    columns: tuple[int, ...]
    knots: tuple[tuple[float, ...], ...]
    coefficients: tuple[tuple[float, ...], ...]
    pairs: bool

    @property
    def by_series(self) -> bool:
        """True if each target has inputs of its own."""
        targets = len(self.coefficients[0])
        return targets > 1 and len(self.columns) == len(self.knots) * targets

    def of(self, inputs: Any, ops: Any = Arrays) -> Any:
        """Compute the effects (..., K) of inputs (..., F or K·F) without NaN, in their dtype."""
        if self.by_series:
            targets = len(self.coefficients[0])
            inputs = ops.reshape(inputs, [*ops.shape(inputs)[:-1], targets, len(self.knots)])
        made = features(inputs, self.knots, self.pairs, ops)
        coefficients = self._array.astype(np.float64 if inputs.dtype == np.float64 else np.float32)
        if not self.by_series:
            return ops.tensordot(ops.stack([*made], axis=-1), coefficients, axes=1)
        total: Any = 0.0  # one feature at a time: all of them would take P times the memory
        for feature, of in zip(made, coefficients, strict=True):
            total += feature * of
        return total

    @cached_property
    def _array(self) -> np.ndarray:
        return np.array(self.coefficients)


def features(
    inputs: Any, knots: Sequence[Sequence[float]], pairs: bool, ops: Any = Arrays
) -> Iterator[Any]:
    """Yield the features of inputs (..., F): x, max(x - knot, 0), and products with other inputs.

    Args:
        inputs: Standardised inputs.
        knots: Values of each input where its function bends.
        pairs: Whether there are products of an input and the functions of another.
        ops: Operations of the runtime.
    """
    inputs = ops.clip(inputs, -REACH, REACH)
    each = [inputs[..., place] for place in range(len(knots))]
    bases = [
        [x, *(ops.maximum(x - knot, 0.0) for knot in of)] for x, of in zip(each, knots, strict=True)
    ]
    yield from itertools.chain.from_iterable(bases)
    if pairs:
        for first, second in itertools.combinations(range(len(bases)), 2):
            yield from (each[first] * feature for feature in bases[second])
            yield from (each[second] * feature for feature in bases[first][1:])


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

    @property
    def future_columns(self) -> tuple[int, ...]:
        """The F column numbers whose future values a forecast needs."""
        return () if self.known is None else tuple(dict.fromkeys(self.known.columns))

    def standardised(self, history: Any, ops: Any) -> Any:
        """Standardise windows (B, T, C), in which NaN marks missing values.

        A missing value is replaced by the last valid one before it in its window, or by the next
        one if there is none before. A column without any value becomes zero, its mean.
        """
        gaps = not ops.whole(history)
        whole = ops.filled(history) if gaps else history
        if self.transformed:
            takes = np.array(self.transformed) & ~ops.isnan(whole)
            whole = ops.where(takes, powers(whole, self.exponent, ops), whole)
        scaled = (whole - self._mean) / self._deviation
        if gaps:
            scaled = ops.where(ops.isnan(scaled), _ZERO, scaled)
        if self.known is None:
            return scaled
        effect = self.known.of(ops.take(scaled, self.known.columns), ops)  # (B, T, K)
        place = np.full(len(self.mean), len(self.targets))
        place[list(self.targets)] = np.arange(len(self.targets))
        nothing = 0 * effect[..., :1]
        return scaled - ops.take(ops.concat([effect, nothing], axis=-1), place)

    def effects(self, history: Any, future: Any, ops: Any) -> Any:
        """Compute the effects of known inputs on the standardised targets.

        Args:
            history: (B, T, C) raw.
            future: (B, H, F) raw, of `future_columns` in the steps ahead. A missing value is the
                last one known.
            ops: Operations of the runtime.

        Returns:
            (B, H, K), or without a future (B, T, K) for the history itself.
        """
        assert self.known is not None
        columns = list(self.future_columns)
        read = ops.take(history, columns)
        if future is not None:
            read = ops.concat([read, future], axis=1)
        scaled = (ops.filled(read) - self._mean[columns]) / self._deviation[columns]
        scaled = ops.where(ops.isnan(scaled), _ZERO, scaled)
        shared = [columns.index(column) for column in self.known.columns]
        effects = self.known.of(ops.take(scaled, shared), ops)
        return effects if future is None else effects[:, ops.shape(history)[1] :]

    def restored(self, values: Any, axes: int, effects: Any, ops: Any) -> Any:
        """Convert standardised values of the targets to raw units, float32.

        Args:
            values: Standardised values; the targets are so many axes from the end.
            axes: Number of the axes.
            effects: What known inputs add, with the targets as last axis; None: nothing.
            ops: Operations of the runtime.
        """
        if effects is not None:
            values = values + effects[(..., *(None,) * (axes - 1))]
        if axes not in self._of_targets:
            columns, shape = list(self.targets), (-1, *(1,) * (axes - 1))
            of = self._mean, self._deviation, np.array(self.transformed or [False] * len(self.mean))
            self._of_targets[axes] = [each[columns].reshape(shape) for each in of]
        mean, deviation, takes = self._of_targets[axes]
        raw = values * deviation + mean
        return ops.where(takes, roots(raw, self.exponent, ops), raw) if self.transformed else raw

    @cached_property
    def _of_targets(self) -> dict[int, list[np.ndarray]]:
        """Mean, deviation and choice of the targets on the axis of targets and those after it."""
        return {}

    @cached_property
    def _mean(self) -> np.ndarray:
        return np.array(self.mean, np.float32)

    @cached_property
    def _deviation(self) -> np.ndarray:
        return np.array(self.deviation, np.float32)


_ZERO, _NAN = np.float32(0), np.float32(np.nan)


@dataclass(frozen=True)
class TakeLast(SharedStep, kind="take_last"):
    """Takes the last steps of a history.

    Attributes:
        source: History (B, T, ...).
        target: Last steps of the history.
        count: Number of the steps.
    """

    source: str
    target: str
    count: int

    def do(self, values: Values, ops: Any) -> None:  # noqa: ARG002
        """Take the places."""
        values[self.target] = values[self.source][:, -self.count :]


@dataclass(frozen=True)
class Standardise(SharedStep, kind="standardise"):
    """Standardises raw windows; see `SeriesScale.standardised`.

    Attributes:
        source: Windows (B, T, C).
        target: Windows (B, T, C) without NaN.
        scale: Scale of the columns.
    """

    source: str
    target: str
    scale: SeriesScale

    def do(self, values: Values, ops: Any) -> None:
        """Fill and scale the windows."""
        values[self.target] = self.scale.standardised(values[self.source], ops)


@dataclass(frozen=True)
class StandardiseTick(SharedStep, kind="standardise_tick"):
    """Standardises one raw step of a stream; missing values stay missing.

    Attributes:
        source: Values (B, C).
        target: Values (B, C), NaN where missing.
        scale: Scale of the columns.
    """

    source: str
    target: str
    scale: SeriesScale

    def do(self, values: Values, ops: Any) -> None:
        """Scale the quantiles."""
        value = values[self.source]
        missing = ops.isnan(value)
        known = ops.where(missing, _ZERO, value)[:, None]
        scaled = self.scale.standardised(known, ops)[:, 0]
        values[self.target] = ops.where(missing, value, scaled)


@dataclass(frozen=True)
class AddEffects(SharedStep, kind="add_effects"):
    """Adds the effects of known inputs on the standardised targets; see `SeriesScale.effects`.

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

    def do(self, values: Values, ops: Any) -> None:
        """Compute the effects."""
        future = None if self.future is None else values[self.future]
        values[self.target] = self.scale.effects(values[self.history], future, ops)


@dataclass(frozen=True)
class Restore(SharedStep, kind="restore"):
    """Converts standardised values of the targets to raw units; see `SeriesScale.restored`.

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

    def do(self, values: Values, ops: Any) -> None:
        """Scale the quantiles."""
        effects = None if self.effects is None else values[self.effects]
        values[self.target] = self.scale.restored(values[self.source], self.axes, effects, ops)


@dataclass(frozen=True)
class TakePlaces(SharedStep, kind="take_places"):
    """Takes some places of the last axis, or a single one, which removes the axis.

    Attributes:
        source: Values (..., N).
        target: Values (..., n), or (...).
        places: Numbers of the places, or a number.
    """

    source: str
    target: str
    places: tuple[int, ...] | int

    def do(self, values: Values, ops: Any) -> None:
        """Take the places."""
        values[self.target] = ops.take(values[self.source], self.places)


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
        """The place of the level .5."""
        return self.levels.index(MEDIAN)

    @cached_property
    def array(self) -> Any:
        """The offsets (H, K, Q) as float32."""
        return np.array(self.offsets, np.float32)

    @cached_property
    def median(self) -> Any:
        """The offsets (H, 1, Q) as float32 for an unknown series."""
        return np.median(np.array(self.offsets), axis=1, keepdims=True).astype(np.float32)


def calibrated(forecasts: np.ndarray, offsets: np.ndarray, middle: int) -> np.ndarray:
    """Compute calibrated quantiles (B, H, K, Q), ascending along Q.

    Bounds on the wrong side of the forecast, or inside of a narrower interval, are moved outwards.
    This only widens intervals, so none loses coverage.

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
    """Converts forecasts to calibrated quantiles; see `calibrated`.

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

    def numpy(self, values: Values) -> None:
        """Shift and sort the quantiles."""
        forecasts = values[self.source]
        values[self.target] = calibrated(forecasts, self._offsets, self.intervals.middle)

    def graph(self, values: Values) -> None:
        """Shift and sort the quantiles."""
        import tensorflow as tf

        bounds = tf.unstack(values[self.source] + self._offsets, axis=-1)
        middle = self.intervals.middle
        for q in reversed(range(middle)):
            bounds[q] = tf.minimum(bounds[q], bounds[q + 1])
        for q in range(middle + 1, len(bounds)):
            bounds[q] = tf.maximum(bounds[q], bounds[q - 1])
        values[self.target] = tf.stack(bounds, axis=-1)

    @property
    def _offsets(self) -> Any:
        return self.intervals.median if self.unknown else self.intervals.array


@dataclass(frozen=True)
class EndSeries(SharedStep, kind="end_series"):
    """Sets `forecast` (B, H, K) and `quantiles` (B, H, K, Q) of ended series to NaN.

    Attributes:
        history: Windows (B, T, C) raw, of the steps read, in which an ended series has no value.
        targets: The K column numbers that are forecast.
    """

    history: str
    targets: tuple[int, ...]

    def do(self, values: Values, ops: Any) -> None:
        """Set the values."""
        read = ops.take(values[self.history], self.targets)
        ended = ops.all(ops.isnan(read), axis=1)[:, None]  # (B, 1, K)
        for name, where in (("forecast", ended), ("quantiles", ended[..., None])):
            values[name] = ops.where(where, _NAN, values[name])


@dataclass(frozen=True)
class NumberSteps(SharedStep, kind="number_steps"):
    """The step of the history, from 0, at which each step of a network ends, (B, N) int32.

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

    def do(self, values: Values, ops: Any) -> None:
        """Count backwards from the last step."""
        rows, count, *_ = ops.shape(values[self.states])
        last = ops.cast(ops.shape(values[self.history])[1] - 1, "int64")
        ends = ops.cast(last - self.width * ops.range(count - 1, -1, -1), "int32")
        values[self.target] = ops.broadcast(ends, [rows, count])


@dataclass(frozen=True)
class AverageEffect(JsonFile):
    """The mean effect over all series of a panel, for a series about which nothing else is known.

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


def _last_of(history: Any, steps: int, ops: Any) -> Any:
    """Take the last steps of (B, T, ...), padded with missing ones before the first."""
    before = ops.full([ops.shape(history)[0], steps, *history.shape[2:]], float("nan"))
    return ops.concat([before, history], axis=1)[:, -steps:]


@dataclass(frozen=True)
class SplitEffect(SharedStep, kind="split_effect"):
    """The effects of known inputs on a series about which nothing else is known.

    `behind` (B, steps) are the effects on the steps read, and `ahead` (B, H) those on the steps
    ahead.

    Attributes:
        past: Known inputs (B, T, F) of the history, NaN where missing: the last one known counts.
        future: Known inputs (B, H, F) of the steps ahead, likewise.
        steps: Number of steps read; those before the past count as its first.
        average: Effect.
    """

    past: str
    future: str
    steps: int
    average: AverageEffect

    def do(self, values: Values, ops: Any) -> None:
        """Compute the effects."""
        of = self.average
        read = _last_of(values[self.past], self.steps, ops)
        missing = ops.isnan(read)
        sums = ops.sum(ops.where(missing, _ZERO, read), axis=1, keepdims=True)
        counts = ops.sum(ops.cast(~missing, "float32"), axis=1, keepdims=True)
        means = sums / ops.maximum(counts, 1.0)
        scale = ops.where(np.array(of.relative) & (means != 0), means, np.float32(1))
        whole = ops.filled(ops.concat([read, values[self.future]], axis=1)) / scale
        scaled = (whole - np.array(of.mean, np.float32)) / np.array(of.deviation, np.float32)
        effects = of.effect.of(ops.where(ops.isnan(scaled), _ZERO, scaled), ops)[..., 0]
        values["behind"], values["ahead"] = effects[:, : self.steps], effects[:, self.steps :]


@dataclass(frozen=True)
class ReadAlone(SharedStep, kind="read_alone"):
    """Reads a series that the model never saw, on the scale of its own history.

    `level` and `spread` (B, 1, 1) are added. The `behind` of `SplitEffect`, if present, is
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

    def do(self, values: Values, ops: Any) -> None:
        """Scale and fill the series."""
        read = _last_of(values[self.source], self.lookback, ops)
        read = ops.reshape(read, [-1, self.lookback])
        missing = ops.isnan(read)
        if self.exponent is not None:
            read = ops.where(missing, read, powers(read, self.exponent, ops))
        count = ops.sum(ops.cast(~missing, "float32"), axis=1, keepdims=True)
        mean = ops.sum(ops.where(missing, _ZERO, read), axis=1, keepdims=True) / count
        gap = ops.where(missing, _ZERO, read - mean)
        deviation = ops.sqrt(ops.sum(gap * gap, axis=1, keepdims=True) / count)
        size = ops.where(mean < 0, 1 - mean, 1 + mean)
        deviation = ops.where(deviation > 1e-6 * size, deviation, np.float32(1))
        scaled = (read - mean) / deviation
        if "behind" in values:
            scaled = scaled - values["behind"]
        window = ops.filled(scaled[..., None])
        values[self.target] = ops.where(ops.isnan(window), _ZERO, window)
        values["level"], values["spread"] = mean[..., None], deviation[..., None]


@dataclass(frozen=True)
class RestoreAlone(SharedStep, kind="restore_alone"):
    """Converts quantiles (B, H, 1, Q) of an unknown series to its own units, (B, H, Q).

    Attributes:
        source: Quantiles on the scale of `ReadAlone`, whose `level` and `spread` are read, and
            `ahead` if there is one.
        target: Quantiles in raw units.
        exponent: Exponent of the power that was standardised; None: values were.
    """

    source: str
    target: str
    exponent: float | None

    def do(self, values: Values, ops: Any) -> None:
        """Scale the quantiles."""
        served = values[self.source][:, :, 0]
        if "ahead" in values:
            served = served + values["ahead"][..., None]
        raw = served * values["spread"] + values["level"]
        values[self.target] = raw if self.exponent is None else roots(raw, self.exponent, ops)


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
class FindColumns(SharedStep, kind="find_columns"):
    """The answer to a caller with named columns: what to send.

    Adds `columns` (B, C), the model's columns in the order of `history`; `place` (B, C) int32, the
    position of each among the caller's names, -1 if it is missing; `needed` (B, C) int32, 1 for a
    column without which there is no forecast; `forecast_columns` (B, K); `future_columns` (B, F),
    the known inputs in the order of `future`.

    Attributes:
        source: Names (B, N) that the caller has.
        columns: Columns of the model.
    """

    source: str
    columns: SeriesColumns

    def do(self, values: Values, ops: Any) -> None:
        """Find the columns."""
        names, of = values[self.source], self.columns
        values["place"], _ = ops.places(names, of.names)
        every = range(len(of.names))
        needed = np.isin(every, of.read).astype(np.int32)
        rows = ops.shape(names)[0]
        values["needed"] = ops.broadcast(needed, [rows, len(needed)])
        told = {"columns": every, "forecast_columns": of.targets, "future_columns": of.known}
        for name, numbers in told.items():
            picked = ops.texts([of.names[number] for number in numbers])
            values[name] = ops.broadcast(picked, [rows, len(numbers)])


@dataclass(frozen=True)
class OrderColumns(SharedStep, kind="order_columns"):
    """Orders named columns as the model reads them.

    Columns that the model does not have are left out; those that it has but does not read may be
    missing.

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

    def do(self, values: Values, ops: Any) -> None:
        """Pick the columns."""
        of, named = self.columns, "columns: expected a "
        names = [of.names[number] for number in of.known] if self.future else of.names
        read = range(len(names)) if self.future else sorted(of.read)
        rows, _, width = ops.shape(values[self.source])
        of_names, count = ops.shape(values[self.by])
        ops.require(
            values,
            self.by,
            width == count,
            lambda: [f"{named}name for each of the ", width, f" columns of {self.source}, got ",
                     count],
        )  # fmt: skip
        ops.require(
            values,
            self.by,
            rows == of_names,
            lambda: [f"{named}row for each of the ", rows, f" of {self.source}, got ", of_names],
        )
        columns = values[self.by]
        place, twice = ops.places(columns, names)

        def name_of(mask: Any) -> Any:
            return ops.take(ops.texts(names), ops.first(mask)[1])

        ops.require(
            values,
            self.source,
            ops.all(~twice),
            lambda: ["columns: expected each name once, got ", name_of(twice), " again"],
        )
        missing = (place < 0) & np.isin(np.arange(len(names)), read)
        expected = ", ".join(names[number] for number in read)

        def lacks() -> list[Any]:
            row = ops.first(missing)[0]
            return ["columns: row ", row, " has no column ", name_of(missing),
                    f"; expected {expected}, got ", ops.joined(columns, row)]  # fmt: skip

        ops.require(values, self.source, ops.all(~missing), lacks)
        picked = ops.pick(values[self.source], ops.maximum(place, 0))
        values[self.source] = ops.where((place >= 0)[:, None], picked, _NAN)
