"""Answers to rows from a run of any task, by `gru-train predict` and inside of other engines."""

import functools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import tyro

from gru_training.config import OptionalName, OptionalText
from gru_training.errors import ConfigError, RunDirectoryError
from gru_training.tables.file_form import TextFormat
from gru_training.task import TASKS, Command, Scorable, find_task, start_tensorflow

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from gru_training.scoring.file_job import FileJob
    from gru_training.scoring.scorer import Scorer

PathName = Annotated[Path, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class PredictConfig:
    """Score every row of a file with a trained run, and write the answers to another file.

    Reads CSV, TSV, JSON lines and lists (plain, .gz or .zst), Parquet, Arrow and Excel; writes CSV,
    TSV, JSON lines (plain or .gz) and Parquet. The rows keep their order. For a text classifier the
    output has the columns of the file, then label, probability, and one column per class under the
    name of the class. If a column of the file has one of these names, it gets input_ before its
    name; a class called label or probability gets class_. Empty and missing texts are answered,
    too, about by the shares of the classes.

    Files may be of any size: memory stays bounded, but for Excel and JSON lists. If the command is
    interrupted or killed, run it again to continue. The output file appears when it is complete.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run, such as runs/NAME."""
    data: PathName
    """File with the rows to score."""
    output: PathName
    """File for the answers; its ending says the format."""
    text_column: OptionalName = None
    """Column with the text; that of the training, else detected if called text, sentence, ..."""
    separator: OptionalName = None
    """Character between the columns of a CSV, such as ';', or tab; detected."""
    encoding: OptionalName = None
    """Encoding of a text file, such as cp1252 or utf-16; detected: UTF-8, else Windows-1252."""
    keep: Annotated[OptionalText, tyro.conf.arg(metavar="COLUMN,...")] = None
    """Columns of the file to copy to the output; '' for none. All by default."""
    overwrite: bool = False
    """Replace the output if it is there already."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""

    def __post_init__(self) -> None:
        self.text_format  # noqa: B018  refuses what cannot be

    @property
    def text_format(self) -> TextFormat:
        """Format of a text file, as far as it is set."""
        return TextFormat(self.separator, self.encoding)


def scorable_task(path: Path, columns: Mapping[str, str]) -> Scorable:
    """Find the task of a run that can answer rows, without TensorFlow.

    Args:
        path: Run directory.
        columns: Columns that the caller named, by input.

    Raises:
        RunDirectoryError: There is no run, or runs of its task do not answer rows.
        ConfigError: A column is named for an input that does not exist.
    """
    from gru_training.runs.directory import RunDirectory

    name = RunDirectory.open(path).task
    if name not in TASKS:
        raise RunDirectoryError(
            f"{path}: expected a run of the tasks {', '.join(TASKS)}, got {name!r}"
        )
    task = find_task(name)
    if not isinstance(task, Scorable):
        raise RunDirectoryError(
            f"{path}: expected a run that answers rows, as a text classifier does; this one reads "
            "a series"
        )
    for name in columns:
        if name not in task.scored_columns:
            raise ConfigError(
                f"--{name}-column: expected a model that reads a {name}; {path} reads "
                f"{', '.join(task.scored_columns)}"
            )
    return task


def _columns_of_inputs(path: Path, task: Scorable) -> dict[str, Sequence[str]]:
    """List the names by which each input is found, in lower case; the training's comes first."""
    from gru_training.runs.directory import RunDirectory

    run = RunDirectory.open(path)
    return {
        name: usual if (own := run.column_of(name)) is None else (own.strip().lower(), *usual)
        for name, usual in task.scored_columns.items()
    }


class PredictJob(NamedTuple):
    """A file to score, checked as far as that is possible without the model."""

    config: PredictConfig
    task: Scorable
    job: "FileJob"


def check_prediction(config: PredictConfig, console: "Console") -> PredictJob:
    """Find the task of the run and check the file; needs no TensorFlow.

    Raises:
        TrainingError: Run, data or output cannot be used.
    """
    from gru_training.scoring.file_job import FileJob

    given = {} if config.text_column is None else {"text": config.text_column}
    task = scorable_task(config.run_path, given)
    job = FileJob(
        config.data,
        config.output,
        _columns_of_inputs(config.run_path, task),
        columns=given,
        keep=None if config.keep is None else [name for name in config.keep.split(",") if name],
        overwrite=config.overwrite,
        console=console,
        given=config.text_format,
    )
    return PredictJob(config, task, job)


def run_prediction(prepared: PredictJob, console: "Console") -> None:
    """Score the file.

    Raises:
        TrainingError: The run cannot be loaded, or the output cannot be written.
        InterruptedWork: The user interrupted it; finished rows are kept.
    """
    config, task, job = prepared
    with console.status(f"loading {config.run_path} ..."):
        run = task.open_run(config.run_path)
        scorer = task.graph_scorer(run)
    if scorer is None:
        start_tensorflow(console, config.debug)
        with console.status(f"loading {config.run_path} ..."):
            scorer = task.scorer(run)
    console.print(job.run(scorer).summary())
    console.print(f"output  {config.output}")


def predict_file(config: PredictConfig, console: "Console") -> None:
    """Score a file, as `gru-train predict` does.

    Args:
        config: The settings.
        console: Console for progress.

    Raises:
        TrainingError: Run, data or output cannot be used.
        InterruptedWork: The user interrupted it; finished rows are kept.
    """
    run_prediction(check_prediction(config, console), console)


PREDICT = Command(
    "predict",
    PredictConfig,
    run_prediction,
    check_prediction,
    needs_tensorflow=False,
    examples=(
        "gru-train predict runs/tickets --data june.csv --output june-scored.csv",
        "gru-train predict runs/tickets --data may.csv --text-column text --keep customer,created "
        "--output labels.parquet",
    ),
)


_LOADING_LOCK = threading.Lock()
"""Lock for engines that call from several threads, since each call uses all cores."""


class RunScorer:
    """Adds a run's answers to data frames of Spark, Dask or Ray, partition by partition.

    It can be pickled, as it holds only the run's path and the names of columns: each process that
    calls it loads the model once. All machines must be able to read the path. `docs/examples` shows
    it with Spark and with Dask.

    Args:
        run: A run directory.
        columns: The frames' names of the columns that the model reads, as `text="body"`; found
            by themselves when called as `gru-train predict` expects.

    Raises:
        TrainingError: There is no run, or its model answers no rows.
    """

    def __init__(self, run: str | os.PathLike[str], **columns: str):
        self._path, self._columns = Path(run).absolute(), columns
        self._inputs = _columns_of_inputs(self._path, scorable_task(self._path, columns))

    def __call__(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Append the answers to the columns of a frame.

        Args:
            frame: N rows. An empty one gives an empty one, with the columns and types of every
                other answer.

        Returns:
            N rows in the same order, with the same index. A column with the name of an answer gets
            `input_` before its name.

        Raises:
            DataError: The frame lacks a column that the model reads.
            RowError: A row cannot be read.
        """
        import pandas as pd
        import pyarrow as pa

        from gru_training.scoring.engine import score_table
        from gru_training.scoring.file_job import find_columns, output_schema

        read_from = pa.schema([(str(name), pa.null()) for name in frame.columns])
        found = find_columns("the data frame", read_from, self._inputs, self._columns)
        read = pa.Table.from_pandas(frame[list(found.values())], preserve_index=False)
        with _LOADING_LOCK:
            answers = score_table(_opened(self._path), read, found)
        names = list(map(str, frame.columns))
        kept = pa.schema([(name, pa.null()) for name in names])
        renamed = output_schema(kept, names, answers.schema).names[: len(names)]
        answered = answers.to_pandas().set_axis(frame.index)
        return pd.concat([frame.set_axis(renamed, axis=1), answered], axis=1)

    def in_pandas(self, frames: "Iterator[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
        """Apply the scorer to each of a stream of frames, as Spark's `mapInPandas` expects."""
        return map(self, frames)


@functools.lru_cache(maxsize=4)
def _opened(path: Path) -> "Scorer":
    """Load the scorer of a run, once per process."""
    task = scorable_task(path, {})
    return task.scorer(task.open_run(path))
