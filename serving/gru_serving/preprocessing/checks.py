"""Checks of what a caller sent; refusals are worded as those of an Assert in TensorFlow's graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.description import Step, Values


def failed(message: str) -> InvalidArgument:
    """Make the error of a failed Assert of TensorFlow."""
    return InvalidArgument(f"assertion failed: [{message}]")


def asserted(values: Values, name: str, condition: Any, *message: Any) -> None:
    """Let a value be read only where a condition holds, by operations of TensorFlow.

    Args:
        values: Values that hold it.
        name: Name of the value.
        condition: Condition, bool ().
        message: Parts of the refusal, texts or numbers; of numbers scalars.
    """
    import tensorflow as tf

    parts = [
        part if isinstance(part, str) or part.dtype == tf.string else tf.strings.as_string(part)
        for part in message
    ]
    check = tf.debugging.Assert(condition, [tf.strings.join(parts)], name="check")
    with tf.control_dependencies([check]):
        values[name] = tf.identity(values[name])


@dataclass(frozen=True)
class RequireShape(Step, kind="require_shape"):
    """Refusal of another number of axes, or of another size of one that is fixed.

    Servers do not compare the two with the signature, and a single column would be spread over all.

    Attributes:
        source: Value that is checked.
        sizes: Sizes of its axes; None for any.
    """

    source: str
    sizes: tuple[int | None, ...]

    def numpy(self, values: Values) -> None:
        """Compare the shape."""
        shape = values[self.source].shape
        if len(shape) != len(self.sizes) or any(
            wanted is not None and size != wanted
            for size, wanted in zip(shape, self.sizes, strict=True)
        ):
            raise failed(f"{self._said}{', '.join(map(str, shape))}]")

    def graph(self, values: Values) -> None:
        """Compare the shape."""
        import tensorflow as tf

        value = values[self.source]
        # Hide the shape from graph optimizers, which would otherwise fold the check to true.
        hidden = tf.raw_ops.PlaceholderWithDefault(input=value, shape=tf.TensorShape(None))
        fed = tf.shape(hidden)
        fits = tf.equal(tf.size(fed), len(self.sizes))
        for axis, size in enumerate(self.sizes):
            if size is not None:  # of too few axes there is nothing to compare, nor to fail on
                fits &= tf.reduce_all(tf.equal(fed[axis : axis + 1], size))
        got = tf.strings.reduce_join(tf.strings.as_string(fed), separator=", ")
        asserted(values, self.source, fits, self._said, got, "]")

    @property
    def _said(self) -> str:
        expected = ", ".join("?" if size is None else str(size) for size in self.sizes)
        return f"{self.source}: expected shape [{expected}], got ["


@dataclass(frozen=True)
class RequireRows(Step, kind="require_rows"):
    """Refusal of another number of rows than a history has.

    Attributes:
        source: Value that is checked.
        history: History.
    """

    source: str
    history: str = "history"

    def numpy(self, values: Values) -> None:
        """Compare the rows."""
        rows, got = len(values[self.history]), len(values[self.source])
        if got != rows:
            raise failed(f"{self._said[0]}{rows}{self._said[1]}{got}")

    def graph(self, values: Values) -> None:
        """Compare the rows."""
        import tensorflow as tf

        rows, got = tf.shape(values[self.history])[0], tf.shape(values[self.source])[0]
        said = self._said
        asserted(values, self.source, tf.equal(rows, got), said[0], rows, said[1], got)

    @property
    def _said(self) -> tuple[str, str]:
        return f"{self.source}: expected a row for each of the ", f" of {self.history}, got "


@dataclass(frozen=True)
class RequireSteps(Step, kind="require_steps"):
    """Refusal of histories with too few steps.

    Attributes:
        source: History (B, T, ...).
        least: Least number of steps.
    """

    source: str
    least: int

    def numpy(self, values: Values) -> None:
        """Count them."""
        length = values[self.source].shape[1]
        if length < self.least:
            raise failed(f"{self._said}{length}")

    def graph(self, values: Values) -> None:
        """Count them."""
        import tensorflow as tf

        length = tf.shape(values[self.source])[1]
        asserted(values, self.source, length >= self.least, self._said, length)

    @property
    def _said(self) -> str:
        return f"{self.source}: expected at least {self.least} steps, got "


@dataclass(frozen=True)
class RequireFinite(Step, kind="require_finite"):
    """Refusal of infinite values.

    Attributes:
        source: Value that is checked.
    """

    source: str

    def numpy(self, values: Values) -> None:
        """Look for one."""
        if not is_whole(values[self.source]) and np.isinf(values[self.source]).any():
            raise failed(self._said)

    def graph(self, values: Values) -> None:
        """Look for one."""
        import tensorflow as tf

        none = ~tf.reduce_any(tf.math.is_inf(values[self.source]))
        asserted(values, self.source, none, self._said)

    @property
    def _said(self) -> str:
        return f"{self.source}: expected finite numbers, or NaN where missing, got infinity"


@dataclass(frozen=True)
class RequireSome(Step, kind="require_some"):
    """Refusal of histories without any value.

    Attributes:
        source: Histories (B, T).
    """

    source: str

    def numpy(self, values: Values) -> None:
        """Look for one."""
        empty = np.isnan(values[self.source]).all(axis=1)
        if empty.any():
            raise failed(f"{self.source}: row {empty.argmax()}{self._said}")

    def graph(self, values: Values) -> None:
        """Look for one."""
        import tensorflow as tf

        empty = tf.reduce_all(tf.math.is_nan(values[self.source]), axis=1)
        row = tf.argmax(tf.cast(empty, tf.int32), output_type=tf.int32)
        none = ~tf.reduce_any(empty)
        asserted(values, self.source, none, f"{self.source}: row ", row, self._said)

    @property
    def _said(self) -> str:
        return " has no value; expected at least one"


@dataclass(frozen=True)
class RequireValues(Step, kind="require_values"):
    """Refusal of windows in which a column that is read has no value.

    Attributes:
        source: Windows (B, T, C) of the steps read.
        columns: Numbers of the columns that are read.
        names: Names of these columns.
    """

    source: str
    columns: tuple[int, ...]
    names: tuple[str, ...]

    def numpy(self, values: Values) -> None:
        """Look for one."""
        read = values[self.source]
        if is_whole(read):
            return
        empty = np.isnan(read).all(axis=1)[:, list(self.columns)]
        if empty.any():
            row, column = np.argwhere(empty)[0]
            first, second, third, last = self._said
            name, steps = self.names[column], read.shape[1]
            raise failed(f"{first}{row}{second}{name}{third}{steps}{last}")

    def graph(self, values: Values) -> None:
        """Look for one."""
        import tensorflow as tf

        read = values[self.source]
        picked = tf.gather(read, self.columns, axis=-1)
        empty = tf.reduce_all(tf.math.is_nan(picked), axis=1)
        row, column = tf.unstack(tf.concat([tf.where(empty), tf.zeros((1, 2), tf.int64)], 0)[0])
        first, second, third, last = self._said
        name = tf.gather(tf.constant(self.names, tf.string), column)
        steps = tf.shape(read)[1]
        none = ~tf.reduce_any(empty)
        asserted(values, self.source, none, first, row, second, name, third, steps, last)

    @property
    def _said(self) -> tuple[str, str, str, str]:
        return (
            "history: row ",
            " has no value of column ",
            " in the steps read, the last ",
            "; expected at least one that is not NaN",
        )


def is_whole(array: np.ndarray) -> bool:
    """Whether there are values, and all are finite; faster than masks of those that are not."""
    return (
        array.size > 0
        and math.isfinite(np.maximum.reduce(array, axis=None))
        and math.isfinite(np.minimum.reduce(array, axis=None))
    )
