"""The run whose answers another network is to learn; needs no TensorFlow."""

from typing import NamedTuple

from gru_training.data.problems import Problems
from gru_training.errors import DataError
from gru_training.sentiment.continuing.rows import rows_of_run
from gru_training.sentiment.data import SentimentData, labelled_data
from gru_training.sentiment.rows import text_key
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.teaching.config import TeachingConfig


class TeacherRun(NamedTuple):
    """The run of `--teach`."""

    run: SentimentRun
    held_out_alike: bool
    """Whether it held out the same rows as its student, and can be measured beside it."""


def teacher_of(teaching: TeachingConfig, data: SentimentData) -> TeacherRun:
    """Open the run of `--teach`.

    Raises:
        RunDirectoryError: There is none.
        DataError: It is of another task, does not answer with the classes of these data, has no
            probabilities where they are asked for, or was trained on rows that are held out here.
    """
    assert teaching.teach is not None
    run = SentimentRun.open(teaching.teach)
    if run.task != "sentiment":
        raise DataError(f"--teach: expected a run of sentiment, got {run.path}, one of {run.task}")
    if run.kind != data.kind or run.classes != data.classes:
        raise DataError(
            f"--teach: expected a run that answers {data.kind} {', '.join(data.classes)}, got "
            f"{run.path}, which answers {run.kind} {', '.join(run.classes)}"
        )
    if teaching.teach_sure is not None and run.kind != "class":
        raise DataError(
            f"--teach-sure: expected a run that tells one class from others, got {run.path}, "
            f"which answers {run.kind}"
        )
    return TeacherRun(run, _held_out_alike(run, data))


def _held_out_alike(run: SentimentRun, data: SentimentData) -> bool:
    """Whether a run held out the same rows as these data.

    Raises:
        DataError: It was trained on rows that are held out here, or nobody can tell, as its rows
            are gone or have changed.
    """
    source, parts = rows_of_run(run, "train the run of --teach on the rows that are there")
    theirs = labelled_data(source, parts, Problems(source.name, False))
    if theirs.validation.same_rows(data.validation) and theirs.test.same_rows(data.test):
        return True
    learned = {text_key(text) for text in theirs.train.texts}
    held_out = [*data.validation.texts, *data.test.texts]
    known = sum(text_key(text) in learned for text in held_out)
    if known:
        raise DataError(
            f"--teach: {run.path} was trained on {known:,} of the {len(held_out):,} rows that are "
            f"held out here; hold out the same rows, with {_splitting(run)}"
        )
    return False


def _splitting(run: SentimentRun) -> str:
    """The settings that a run's rows were split with, in words."""
    data = run.config.data
    drawn = f"--split-seed {data.drawn_with(run.config.training.seed)}"
    split = drawn if data.fold is None else f"--fold {data.fold}"
    return split if data.data is None else f"--data {data.data} and {split}"
