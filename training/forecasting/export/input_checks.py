"""What signatures require of their inputs, in the graph."""

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


def alike(history: Any, future: Any) -> Any:
    """That both have as many rows."""
    rows, ahead = tf.shape(history)[0], tf.shape(future)[0]
    parts = ["future: expected a row for each of the ", tf.strings.as_string(rows)]
    parts += [" of history, got ", tf.strings.as_string(ahead)]
    return tf.debugging.Assert(tf.equal(rows, ahead), [tf.strings.join(parts)], name="alike")
