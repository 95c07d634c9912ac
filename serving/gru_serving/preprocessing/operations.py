"""The operations in which steps are written, for both arrays and tensors.

Arithmetic, comparisons and slices work on both without them.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gru_serving.errors import InvalidArgument

Parts = Callable[[], Sequence[Any]]


def failed(message: str) -> InvalidArgument:
    """Make the error of a failed Assert of TensorFlow."""
    return InvalidArgument(f"assertion failed: [{message}]")


def encoded(texts: Sequence[str]) -> np.ndarray:
    """Encode texts as in requests, (N,) of `bytes`."""
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return array


class Arrays:
    """Operations on arrays."""

    where, isnan, isinf = np.where, np.isnan, np.isinf
    maximum, minimum, clip = np.maximum, np.minimum, np.clip
    exp, expm1, log1p, sqrt = np.exp, np.expm1, np.log1p, np.sqrt
    sin, cos, tensordot = np.sin, np.cos, np.tensordot
    any, all, sum = np.any, np.all, np.sum
    concat, stack, reshape, broadcast = np.concatenate, np.stack, np.reshape, np.broadcast_to
    shape, texts = np.shape, encoded

    @staticmethod
    def cast(values: Any, dtype: str) -> Any:
        """Convert values to another dtype."""
        return np.asarray(values).astype(dtype)

    @staticmethod
    def take(values: Any, places: Any) -> Any:
        """Take some places of the last axis, or a single one without the axis."""
        if isinstance(places, int) and values.ndim > 1:
            return values[..., places]  # of one axis that would be no text, but an array of one
        return np.take(values, places, axis=-1)

    @staticmethod
    def whole(values: Any) -> bool:
        """Tell whether all values are known to be finite; False while a graph is made."""
        return values.size == 0 or (  # both have what is not finite; faster than a mask
            math.isfinite(np.maximum.reduce(values, axis=None))
            and math.isfinite(np.minimum.reduce(values, axis=None))
        )

    @staticmethod
    def full(shape: Sequence[Any], value: float) -> Any:
        """Return a float32 array of one value."""
        return np.full(shape, value, np.float32)

    @staticmethod
    def range(start: Any, stop: Any, step: int = 1) -> Any:
        """Return whole numbers, int64."""
        return np.arange(start, stop, step, dtype=np.int64)

    @staticmethod
    def searched(ends: np.ndarray, values: np.ndarray, at: Any) -> Any:
        """Look up the value that holds at places of any shape; each value holds up to its end."""
        return values[np.searchsorted(ends, at, side="right")]

    @staticmethod
    def filled(windows: Any) -> Any:
        """Fill NaN in windows (B, T, C) with the value before, or else with the one after."""
        if Arrays.whole(windows):
            return windows
        gone = np.isnan(windows)
        steps = np.arange(windows.shape[1])[:, np.newaxis]
        last = np.maximum.accumulate(np.where(gone, -1, steps), axis=1)
        first = np.argmin(gone, axis=1, keepdims=True)
        return np.take_along_axis(windows, np.where(last < 0, first, last), axis=1)

    @staticmethod
    def places(names: Any, own: Sequence[str]) -> tuple[Any, Any]:
        """Find C names of a model among the names (B, N) of a caller.

        Returns:
            Place (B, C) int32 of each name, -1 if it is missing, and whether it occurs twice.
        """
        numbers = {name.encode(): number for number, name in enumerate(own)}
        place = np.full((len(names), len(own)), -1, np.int32)
        twice = np.zeros(place.shape, bool)
        for row, given in enumerate(names.tolist()):
            for position, name in enumerate(given):
                number = numbers.get(name)
                if number is None:
                    continue
                if place[row, number] >= 0:
                    twice[row, number] = True
                else:
                    place[row, number] = position
        return place, twice

    @staticmethod
    def pick(values: Any, places: Any) -> Any:
        """Pick the columns at places (B, C) from values (B, T, N)."""
        return np.take_along_axis(values, places[:, np.newaxis], axis=2)

    @staticmethod
    def joined(texts: Any, row: Any) -> Any:
        """Join each row of texts (B, N) by commas."""
        return b", ".join(texts[row].tolist())

    @staticmethod
    def first(mask: Any) -> tuple[Any, ...]:
        """Find the first place at which a mask is true, one number per axis.

        (0, …) if there is none.
        """
        found = np.argwhere(mask)
        return tuple(found[0].tolist()) if len(found) else (0,) * np.ndim(mask)

    @staticmethod
    def require(values: dict[str, Any], name: str, condition: Any, parts: Parts) -> None:  # noqa: ARG004
        """Allow a value to be read only if a condition holds.

        Args:
            values: Values that hold it.
            name: Name of the value.
            condition: Condition, bool ().
            parts: Function that returns the parts of the refusal, texts or numbers.

        Raises:
            InvalidArgument: The condition does not hold.
        """
        if not condition:
            said = (part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)
                    for part in parts())  # fmt: skip
            raise failed("".join(said))


@cache
def tensors() -> Any:
    """Return the same operations of TensorFlow, for steps that build a graph."""
    import tensorflow as tf

    def _is_text(part: Any) -> bool:
        return isinstance(part, str) or (tf.is_tensor(part) and part.dtype == tf.string)

    class Tensors:
        where, isnan, isinf = tf.where, tf.math.is_nan, tf.math.is_inf
        maximum, minimum, clip = tf.maximum, tf.minimum, tf.clip_by_value
        exp, expm1, log1p, sqrt = tf.exp, tf.math.expm1, tf.math.log1p, tf.sqrt
        sin, cos, tensordot = tf.sin, tf.cos, tf.tensordot
        any, all, sum = tf.reduce_any, tf.reduce_all, tf.reduce_sum
        concat, stack, reshape, broadcast = tf.concat, tf.stack, tf.reshape, tf.broadcast_to
        cast = tf.cast

        @staticmethod
        def take(values: Any, places: Any) -> Any:
            return tf.gather(values, places, axis=-1)

        @staticmethod
        def whole(values: Any) -> bool:  # noqa: ARG004
            return False

        @staticmethod
        def shape(values: Any) -> Sequence[Any]:
            sizes = tf.unstack(tf.shape(values))
            known = values.shape.as_list()
            return [of if size is None else size for of, size in zip(sizes, known, strict=True)]

        @staticmethod
        def full(shape: Sequence[Any], value: float) -> Any:
            return tf.fill(shape, value)

        @staticmethod
        def range(start: Any, stop: Any, step: int = 1) -> Any:
            bounds = (tf.cast(bound, tf.int64) for bound in (start, stop))
            return tf.range(*bounds, step)

        @staticmethod
        def texts(names: Sequence[str]) -> Any:
            return tf.constant(list(names), tf.string)

        @staticmethod
        def searched(ends: np.ndarray, values: np.ndarray, at: Any) -> Any:
            flat = tf.reshape(at, [-1])
            place = tf.searchsorted(tf.constant(ends, tf.int64), flat, side="right")
            found = tf.gather(tf.constant(values, tf.int64), place)
            return tf.reshape(found, tf.shape(at))

        @staticmethod
        def filled(windows: Any) -> Any:
            missing = tf.reduce_any(tf.math.is_nan(windows))
            return tf.cond(missing, lambda: _filled(windows), lambda: windows)

        @staticmethod
        def places(names: Any, own: Sequence[str]) -> tuple[Any, Any]:
            wanted = tf.constant(list(own), tf.string)[tf.newaxis, :, tf.newaxis]
            same = tf.cast(tf.equal(wanted, names[:, tf.newaxis]), tf.int32)  # (B, C, N)
            times = tf.reduce_sum(same, axis=-1)
            place = tf.argmax(same, axis=-1, output_type=tf.int32)
            return tf.where(times > 0, place, -1), times > 1

        @staticmethod
        def pick(values: Any, places: Any) -> Any:
            return tf.gather(values, places, axis=2, batch_dims=1)

        @staticmethod
        def joined(texts: Any, row: Any) -> Any:
            given = tf.concat([texts, tf.fill((1, tf.shape(texts)[1]), "")], 0)[row]
            return tf.strings.reduce_join(given, separator=", ")

        @staticmethod
        def first(mask: Any) -> Any:
            found = tf.where(mask)
            none = tf.zeros((1, len(mask.shape)), tf.int64)
            return tf.unstack(tf.concat([found, none], 0)[0])

        @staticmethod
        def require(values: dict[str, Any], name: str, condition: Any, parts: Parts) -> None:
            texts = [part if _is_text(part) else tf.strings.as_string(part) for part in parts()]
            check = tf.debugging.Assert(condition, [tf.strings.join(texts)], name="check")
            with tf.control_dependencies([check]):
                values[name] = tf.identity(values[name])

    return Tensors


def _filled(windows: Any) -> Any:
    """Fill gaps: the value at t is the n-th valid one, where n values were valid up to t."""
    import tensorflow as tf

    columns = tf.transpose(windows, (0, 2, 1))  # (B, C, T)
    gone = tf.math.is_nan(columns)
    steps = tf.shape(columns)[2]
    place = tf.range(steps)
    seen_first = tf.argsort(tf.where(gone, place + steps, place), axis=2)
    count = tf.cumsum(tf.cast(~gone, tf.int32), axis=2)
    source = tf.gather(seen_first, tf.maximum(count - 1, 0), batch_dims=2, axis=2)
    return tf.transpose(tf.gather(columns, source, batch_dims=2, axis=2), (0, 2, 1))
