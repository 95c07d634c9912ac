"""The run whose answers another network is to learn; needs no TensorFlow."""

from typing import NamedTuple

from gru_training.data.digest import data_digest
from gru_training.errors import DataError
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.teaching.config import TeachingConfig
from gru_training.sentiment.training_texts import is_learned, split_settings


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
    """Whether a run learned from the same rows as these data, and held out the same.

    Raises:
        TrainingError: It was trained on rows that are held out here, or does not tell.
    """
    if run.metrics["data"]["digest"] == data_digest(data.contents()):
        return True
    held_out = [*data.validation.texts, *data.test.texts]
    known = int(is_learned(held_out, run).sum())
    if known:
        raise DataError(
            f"--teach: {run.path} was trained on {known:,} of the {len(held_out):,} rows that are "
            f"held out here; hold out the same rows, with {split_settings(run)}"
        )
    return False
