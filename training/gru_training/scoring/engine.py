"""The scoring of rows in batches of similar length, with answers in the order of the rows."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from gru_training.scoring.scorer import BatchLimits, Reading, RowError, Scorer

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 8192
"""Number of rows that are sorted by length together."""


def score_table(
    scorer: Scorer, table: "pa.Table", columns: Mapping[str, str] | None = None
) -> "pa.Table":
    """Answer every row of a table.

    Args:
        scorer: Scorer of a run, from `gru_training.task.Task.scorer`, or of a server.
        table: N rows; other columns than those that are read do not matter.
        columns: The table's name of each column that the scorer reads; the scorer's by default.

    Returns:
        N rows, in the order of the table, with the columns of `scorer.answers`.

    Raises:
        RowError: A row cannot be read; it is numbered as in the table.
    """
    import pyarrow as pa

    # The columns become one chunk each: batches end where the table's own chunks do.
    batches = table.combine_chunks().to_batches(max_chunksize=CHUNK)
    return pa.Table.from_batches(score_batches(scorer, batches, columns), scorer.answers)


def score_batches(
    scorer: Scorer,
    batches: Iterable["pa.RecordBatch"],
    columns: Mapping[str, str] | None = None,
) -> Iterator["pa.RecordBatch"]:
    """Answer the rows of a stream of record batches, which need not fit into memory.

    The rows of each are sorted by length, so they should be some thousands (`CHUNK`).

    Args:
        scorer: Scorer of a run or of a server, as for `score_table`.
        batches: The rows.
        columns: Names in the stream of the columns that the scorer reads; the scorer's by default.

    Yields:
        Answers of each record batch, with the columns of `scorer.answers`.

    Raises:
        RowError: A row cannot be read; it is numbered as in the stream.
    """
    with ExitStack() as stack:
        pool = None
        if scorer.limits.in_flight > 1:
            pool = stack.enter_context(ThreadPoolExecutor(scorer.limits.in_flight))
        before: Reading | None = None
        for reading in _readings(scorer, batches, columns or {}):
            if before is not None:  # by now the next rows are being read in the background
                yield _answers(scorer, before, pool)
            before = reading
        if before is not None:
            yield _answers(scorer, before, pool)


def _readings(
    scorer: Scorer, batches: Iterable["pa.RecordBatch"], names: Mapping[str, str]
) -> Iterator[Reading]:
    start = 0
    for batch in batches:
        rows = batch.select([names.get(name, name) for name in scorer.inputs])
        try:
            yield scorer.read(rows.rename_columns(list(scorer.inputs)))
        except RowError as error:
            column = names.get(error.column, error.column)
            raise RowError(start + error.row, column, error.message) from error
        start += batch.num_rows


def batches_by_length(lengths: np.ndarray, limits: BatchLimits) -> list[np.ndarray]:
    """Cut row numbers, the shortest rows first, into batches within the limits.

    Args:
        lengths: (N,) int, steps of each row.
        limits: Limits of a batch; a row that is longer than they allow gets one of its own.
    """
    order = np.argsort(lengths, kind="stable")
    batches: list[np.ndarray] = []
    end = len(order)
    while end:  # from the longest, whose batches the limit of steps bounds
        widest = max(1, int(lengths[order[end - 1]]))
        begin = max(0, end - max(1, min(limits.rows, limits.steps // widest)))
        batches.append(order[begin:end])
        end = begin
    return batches[::-1]


def _answers(scorer: Scorer, reading: Reading, pool: ThreadPoolExecutor | None) -> "pa.RecordBatch":
    """Return the answers to all rows of a reading, in their order."""
    import pyarrow as pa

    from gru_training.tables.arrow_array import arrow_array

    batches = batches_by_length(reading.lengths, scorer.limits)
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=scorer.answers)
    parts = list(pool.map(reading.answer, batches) if pool else map(reading.answer, batches))
    places = np.empty(len(reading.lengths), np.int64)
    places[np.concatenate(batches)] = np.arange(len(places))
    (whole,) = pa.Table.from_batches(parts, scorer.answers).combine_chunks().to_batches()
    return whole.take(arrow_array(places, pa.int64()))
