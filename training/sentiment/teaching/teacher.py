"""The run whose answers another network is to learn; needs no TensorFlow."""

from pathlib import Path
from typing import Any

from training.errors import DataError
from training.sentiment.continuing.rows import load_data
from training.sentiment.data import LabelledTexts, SentimentData
from training.sentiment.rows import text_key
from training.sentiment.run import SentimentRun


def teacher_of(path: Path, data: SentimentData) -> SentimentRun:
    """Open the run of `--teach`.

    Raises:
        RunDirectoryError: There is none.
        DataError: It does not answer with the classes of these data, or nobody can tell what it
            was trained on.
    """
    run = SentimentRun.open(path)
    if run.kind != data.kind or run.classes != data.classes:
        raise DataError(
            f"--teach: expected a run that answers {data.kind} {', '.join(data.classes)}, got "
            f"{run.path}, which answers {run.kind} {', '.join(run.classes)}"
        )
    if run.given is not None:
        raise DataError(
            f"--teach: {run.path} was trained in Python on data in memory, so that nobody can tell "
            "whether rows that are held out here were among them; write them to a file and train "
            "with --data"
        )
    return run


def held_out_alike(run: SentimentRun, data: SentimentData) -> bool:
    """Whether a run held out the same rows as these data.

    Raises:
        DataError: It was trained on rows that are held out here.
    """
    theirs = load_data(run.config)
    if _contents(theirs.validation) == _contents(data.validation) and (
        _contents(theirs.test) == _contents(data.test)
    ):
        return True
    learned = {text_key(text) for text in theirs.train.texts}
    held_out = [*data.validation.texts, *data.test.texts]
    known = sum(text_key(text) in learned for text in held_out)
    if known:
        raise DataError(
            f"--teach: {run.path} was trained on {known:,} of the {len(held_out):,} rows that are "
            "held out here; hold out the same rows with --split-seed "
            f"{run.config.data.drawn_with(run.config.training.seed)}"
        )
    return False


def _contents(rows: LabelledTexts) -> tuple[tuple[str, ...], list[Any]]:
    return rows.texts, rows.labels.tolist()
