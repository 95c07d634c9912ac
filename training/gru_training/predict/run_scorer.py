"""A run as a function of data frames, for engines that spread rows over many processes."""

import functools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from gru_training.predict.run_kind import run_task, scored_columns
from gru_training.scoring.engine import score_table
from gru_training.scoring.file_job import find_columns, output_schema
from gru_training.scoring.scorer import Scorer

_ONE_AT_A_TIME = threading.Lock()
"""Some engines call from several threads, and each call uses all cores already."""


class RunScorer:
    """Adds a run's answers to data frames of Spark, Dask or Ray, partition by partition.

    It can be pickled, as it holds only the run's path: each process that calls it loads the model
    once. All machines must see the path. `docs/examples` shows it with Spark and with Dask.

    Args:
        run: A run directory.
        columns: The frames' names of the columns that the model reads, as `text="body"`; found
            by themselves when called as `gru-train predict` expects.

    Raises:
        TrainingError: There is no run, or its model answers no rows.
    """

    def __init__(self, run: str | os.PathLike[str], **columns: str):
        self._path, self._columns = Path(run).absolute(), columns
        scored_columns(self._path, run_task(self._path), columns)

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the answers appended to its columns.

        Args:
            frame: N rows. An empty one gives an empty one, with the columns and types of every
                other answer.

        Returns:
            N rows in the same order, with the same index. A column that is called as an answer
            gets `input_` before its name.

        Raises:
            DataError: The frame lacks a column that the model reads.
            RowError: A row cannot be read.
        """
        inputs = scored_columns(self._path, run_task(self._path), self._columns)
        found = find_columns(
            "the data frame", pa.schema([(str(name), pa.null()) for name in frame.columns]),
            inputs, self._columns,
        )  # fmt: skip
        read = pa.Table.from_pandas(frame[list(found.values())], preserve_index=False)
        with _ONE_AT_A_TIME:
            answers = score_table(_opened(self._path), read, found)
        names = list(map(str, frame.columns))
        kept = pa.schema([(name, pa.null()) for name in names])
        renamed = output_schema(kept, names, answers.schema).names[: len(names)]
        answered = answers.to_pandas().set_axis(frame.index)
        return pd.concat([frame.set_axis(renamed, axis=1), answered], axis=1)

    def in_pandas(self, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The call, for each of a stream of frames: what Spark's `mapInPandas` takes."""
        return map(self, frames)


@functools.lru_cache(maxsize=4)
def _opened(path: Path) -> Scorer:
    """The scorer of a run, loaded once per process."""
    task = run_task(path)
    opened: Any = task.open_run(path)
    return task.scorer(opened)
