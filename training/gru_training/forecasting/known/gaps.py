"""Missing values in windows, in the graph."""

import tensorflow as tf


def filled(history: tf.Tensor) -> tf.Tensor:
    """Windows (B, T, C) with NaN replaced by the value before, or else after.

    The value at t is the n-th seen one, n being how many were seen until t, at least one.
    """
    columns = tf.transpose(history, (0, 2, 1))  # (B, C, T)
    gone = tf.math.is_nan(columns)
    steps = tf.shape(columns)[2]
    place = tf.range(steps)
    seen_first = tf.argsort(tf.where(gone, place + steps, place), axis=2)
    count = tf.cumsum(tf.cast(~gone, tf.int32), axis=2)
    source = tf.gather(seen_first, tf.maximum(count - 1, 0), batch_dims=2, axis=2)
    return tf.transpose(tf.gather(columns, source, batch_dims=2, axis=2), (0, 2, 1))
