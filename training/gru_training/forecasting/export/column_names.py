"""Columns by name, in the graph: for callers that do not know the order in which a model reads."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


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
        """What to send, for a caller that has columns of these names.

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
        """(B, C, N)."""
        return tf.equal(self._columns[tf.newaxis, :, tf.newaxis], names[:, tf.newaxis])

    def _found(self, names: Any) -> tuple[Any, Any]:
        """Whether each of the model's columns is among the names, and where."""
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
