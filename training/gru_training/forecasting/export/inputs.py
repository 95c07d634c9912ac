"""The inputs of a forecaster's signatures, and their checks in the graph."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Specs = dict[str, dict[str, tf.TensorSpec]]


def input_specs(columns: int, horizon: int, known: int, timed: bool) -> Specs:
    """The inputs of a forecaster of series as they are, by signature and name.

    Args:
        columns: C, that a caller sends.
        horizon: H, steps forecast.
        known: F, inputs of the steps ahead that a caller sends.
        timed: Whether a caller sends the time.
    """
    times = {"timestamp": texts("timestamp", None)} if timed else {}
    ahead, their_ahead = {}, {}
    if known:
        ahead["future"] = numbers("future", None, horizon, known)
        their_ahead["future"] = numbers("future", None, horizon, None)
        their_ahead["future_columns"] = texts("future_columns", None, None)
    history = numbers("history", None, None, columns)
    theirs = {
        "history": numbers("history", None, None, None),
        "columns": texts("columns", None, None),
    }
    return {
        "serving_default": {"history": history, **ahead, **times},
        "by_name": {**theirs, **their_ahead, **times},
        "columns": {"names": texts("names", None, None)},
        "gates": {"history": history, **times},
    }


def one_series_specs(known: int, horizon: int) -> dict[str, tf.TensorSpec]:
    """The inputs of a series that the model never saw.

    Args:
        known: F, inputs of it that a caller sends.
        horizon: H, steps forecast.
    """
    history = {"history": numbers("history", None, None)}
    if not known:
        return history
    past, future = (None, None, known), (None, horizon, known)
    return {**history, "past": numbers("past", *past), "future": numbers("future", *future)}


def numbers(name: str, *shape: int | None) -> tf.TensorSpec:
    """Specify an input of float32."""
    return tf.TensorSpec(shape, tf.float32, name)


def texts(name: str, *shape: int | None) -> tf.TensorSpec:
    """Specify an input of strings."""
    return tf.TensorSpec(shape, tf.string, name)


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
    """Assert that no value is infinite."""
    message = f"{name}: expected finite numbers, or NaN where missing, got infinity"
    finite = tf.logical_not(tf.reduce_any(tf.math.is_inf(values)))
    return tf.debugging.Assert(finite, [message], name="finite")


def alike(history: Any, name: str, values: Any) -> Any:
    """Assert that history and values have the same number of rows."""
    rows, ahead = tf.shape(history)[0], tf.shape(values)[0]
    parts = [f"{name}: expected a row for each of the ", tf.strings.as_string(rows)]
    parts += [" of history, got ", tf.strings.as_string(ahead)]
    return tf.debugging.Assert(tf.equal(rows, ahead), [tf.strings.join(parts)], name="alike")


def long_enough(history: Any, least: int) -> Any:
    """Assert that (B, T, C) has so many steps."""
    length = tf.shape(history)[1]
    needed = f"history: expected at least {least} steps, got "
    message = tf.strings.join([needed, tf.strings.as_string(length)])
    return tf.debugging.Assert(length >= least, [message], name="long_enough")


def some_value(history: Any, read: Sequence[int], names: Any) -> Any:
    """Assert that each column read has a value in each row of (B, T, C).

    Args:
        history: (B, T, C) of the steps read.
        read: Numbers of these columns.
        names: Names of these columns.
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
    """Assert that each row of (B, T) has a value."""
    empty = tf.reduce_all(tf.math.is_nan(history), axis=1)
    row = tf.argmax(tf.cast(empty, tf.int32), output_type=tf.int32)
    message = tf.strings.join(
        ["history: row ", tf.strings.as_string(row), " has no value; expected at least one"]
    )
    return tf.debugging.Assert(tf.logical_not(tf.reduce_any(empty)), [message], name="known")


class ColumnNames(tf.Module):
    """The names of a forecaster's columns, and what it makes of those of a caller.

    B rows, N names that a caller has, C columns of the model, K that it forecasts.

    Args:
        columns: The C names in the order of the model's `history`.
        targets: The K column numbers that are forecast.
        read: Numbers of the columns without which there is no forecast.
        known: Numbers of the F columns that are read of the steps ahead.
    """

    def __init__(
        self,
        columns: Sequence[str],
        targets: Sequence[int],
        read: Sequence[int],
        known: Sequence[int] = (),
    ):
        super().__init__(name="column_names")
        self._columns = tf.constant(list(columns), tf.string)
        self._targets = tf.constant(list(targets), tf.int32)
        self._read = tf.constant([number in set(read) for number in range(len(columns))])
        self._future: ColumnNames | None = None
        if known:
            names = [columns[number] for number in known]
            self._future = ColumnNames(names, (), range(len(names)))

    def places(self, names: Any) -> dict[str, Any]:
        """Tell a caller that has columns of these names what to send.

        Args:
            names: (B, N) texts.

        Returns:
            `columns` (B, C), the model's in the order of `history`; `place` (B, C) int32,
            where each of them stands among the names, -1 where it does not; `needed` (B, C)
            int32, 1 where there is no forecast without it; `forecast_columns` (B, K); where known
            inputs are read `future_columns` (B, F), in the order of `future`.
        """
        rows = tf.shape(names)[0]
        found, place = self._found(names)
        shape = tf.shape(found)
        known = {}
        if self._future is not None:
            known["future_columns"] = tf.tile(self._future._columns[tf.newaxis], (rows, 1))
        return {
            **known,
            "columns": tf.broadcast_to(self._columns, shape),
            "place": tf.where(found, place, -1),
            "needed": tf.broadcast_to(tf.cast(self._read, tf.int32), shape),
            "forecast_columns": tf.tile(tf.gather(self._columns, self._targets)[None], (rows, 1)),
        }

    def ordered(self, history: Any, columns: Any, of: str = "history") -> Any:
        """The history (B, T, C) as the model reads it, of one (B, T, N) with these columns (B, N).

        Others than the model's are left out; of those that it does not read any may be missing.
        """
        width = tf.shape(history)[2]
        named = tf.shape(columns)[1]
        message = tf.strings.join(
            [
                "columns: expected a name for each of the ",
                tf.strings.as_string(width),
                f" columns of {of}, got ",
                tf.strings.as_string(named),
            ]
        )
        fits = tf.debugging.Assert(tf.equal(width, named), [message], name="named")
        with tf.control_dependencies([fits]):
            found, place = self._found(columns)
        with tf.control_dependencies([self._each_once(columns), self._complete(found, columns)]):
            place = tf.identity(place)
        picked = tf.gather(history, place, axis=2, batch_dims=1)
        return tf.where(found[:, tf.newaxis], picked, float("nan"))

    def ordered_future(self, future: Any, columns: Any) -> Any:
        """Known inputs (B, H, M) with these columns (B, M) as the model reads them, (B, H, F)."""
        assert self._future is not None
        return self._future.ordered(future, columns, "future")

    def _same(self, names: Any) -> Any:
        """Mark which of the model's columns each name is, (B, C, N)."""
        return tf.equal(self._columns[tf.newaxis, :, tf.newaxis], names[:, tf.newaxis])

    def _found(self, names: Any) -> tuple[Any, Any]:
        """Mark the model's columns that are among the names, and find their places, (B, C) each."""
        same = self._same(names)
        return tf.reduce_any(same, axis=-1), tf.argmax(
            tf.cast(same, tf.int32), axis=-1, output_type=tf.int32
        )

    def _complete(self, found: Any, columns: Any) -> Any:
        missing = tf.where(tf.logical_and(self._read, tf.logical_not(found)))  # (M, 2)
        row, column = tf.unstack(tf.concat([missing, tf.zeros((1, 2), tf.int64)], 0)[0])
        wanted = tf.strings.reduce_join(tf.boolean_mask(self._columns, self._read), separator=", ")
        given = tf.concat([columns, tf.fill((1, tf.shape(columns)[1]), "")], 0)[row]
        message = tf.strings.join(
            [
                "columns: row ",
                tf.strings.as_string(row),
                " has no column ",
                tf.gather(self._columns, column),
                "; expected ",
                wanted,
                ", got ",
                tf.strings.reduce_join(given, separator=", "),
            ]
        )
        whole = tf.equal(tf.shape(missing)[0], 0)
        return tf.debugging.Assert(whole, [message], name="complete")

    def _each_once(self, columns: Any) -> Any:
        times = tf.reduce_sum(tf.cast(self._same(columns), tf.int32), axis=-1)  # (B, C)
        twice = tf.where(times > 1)
        _, column = tf.unstack(tf.concat([twice, tf.zeros((1, 2), tf.int64)], 0)[0])
        message = tf.strings.join(
            ["columns: expected each name once, got ", tf.gather(self._columns, column), " again"]
        )
        return tf.debugging.Assert(tf.equal(tf.shape(twice)[0], 0), [message], name="each_once")
