"""What signatures require of their inputs, in the graph."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def shaped(name: str, values: Any) -> Any:
    """The values, if they have the dimensions that their signature says, of its sizes.

    Servers do not compare the two, and a single column would be spread over all.
    """
    expected = ["?" if size is None else str(size) for size in values.shape]
    # Hide the shape from graph optimizers, which would otherwise fold the check to true.
    fed = tf.shape(tf.raw_ops.PlaceholderWithDefault(input=values, shape=tf.TensorShape(None)))
    fits = tf.equal(tf.size(fed), len(expected))
    for axis, size in enumerate(values.shape):
        if size is not None:  # of too few dimensions there is nothing to compare, nor to fail on
            fits = tf.logical_and(fits, tf.reduce_all(tf.equal(fed[axis : axis + 1], size)))
    got = tf.strings.reduce_join(tf.strings.as_string(fed), separator=", ")
    needed = f"{name}: expected shape [{', '.join(expected)}], got ["
    message = tf.strings.join([needed, got, "]"])
    with tf.control_dependencies([tf.debugging.Assert(fits, [message], name="shaped")]):
        return tf.identity(values)


def finite(name: str, values: Any) -> Any:
    """That no value is infinite."""
    message = f"{name}: expected finite numbers, or NaN where missing, got infinity"
    finite = tf.logical_not(tf.reduce_any(tf.math.is_inf(values)))
    return tf.debugging.Assert(finite, [message], name="finite")


def alike(history: Any, name: str, values: Any) -> Any:
    """That both have as many rows."""
    rows, ahead = tf.shape(history)[0], tf.shape(values)[0]
    parts = [f"{name}: expected a row for each of the ", tf.strings.as_string(rows)]
    parts += [" of history, got ", tf.strings.as_string(ahead)]
    return tf.debugging.Assert(tf.equal(rows, ahead), [tf.strings.join(parts)], name="alike")


def long_enough(history: Any, least: int) -> Any:
    """That (B, T, C) has so many steps."""
    length = tf.shape(history)[1]
    needed = f"history: expected at least {least} steps, got "
    message = tf.strings.join([needed, tf.strings.as_string(length)])
    return tf.debugging.Assert(length >= least, [message], name="long_enough")


def some_value(history: Any, read: Sequence[int], names: Any) -> Any:
    """That each column read has a value in each row of (B, T, C).

    Args:
        history: Of the steps read.
        read: Numbers of these columns.
        names: Of these columns.
    """
    empty = tf.reduce_all(tf.math.is_nan(tf.gather(history, read, axis=-1)), axis=1)
    row, column = tf.unstack(tf.concat([tf.where(empty), tf.zeros((1, 2), tf.int64)], 0)[0])
    message = tf.strings.join(
        [
            "history: row ",
            tf.strings.as_string(row),
            " has no value of column ",
            tf.gather(names, column),
            " in the steps read, the last ",
            tf.strings.as_string(tf.shape(history)[1]),
            "; expected at least one that is not NaN",
        ]
    )
    filled = tf.logical_not(tf.reduce_any(empty))
    return tf.debugging.Assert(filled, [message], name="some_value")


def seen(history: Any) -> Any:
    """That each row of (B, T) has a value."""
    empty = tf.reduce_all(tf.math.is_nan(history), axis=1)
    row = tf.argmax(tf.cast(empty, tf.int32), output_type=tf.int32)
    message = tf.strings.join(
        ["history: row ", tf.strings.as_string(row), " has no value; expected at least one"]
    )
    return tf.debugging.Assert(tf.logical_not(tf.reduce_any(empty)), [message], name="known")
