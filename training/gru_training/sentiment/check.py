"""Labelled texts looked at before training; needs no TensorFlow."""

from collections import defaultdict
from functools import partial
from statistics import median

import numpy as np

from gru_training.data.check import DataCheck, DataTable
from gru_training.data.problems import DataProblemsError, Problems
from gru_training.errors import DataError, ForeignDataError, TrainingError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData, read_data
from gru_training.sentiment.rows import SentimentRows, numbers_of
from gru_training.sentiment.sources.unlabelled import require_prose

_QUANTILES = (0, 0.05, 0.5, 0.95, 1)


def check_sentiment(config: SentimentConfig) -> DataCheck:
    """Read, check and split what a classifier would be trained on.

    Raises:
        ForeignDataError: The columns of the file are not those of labelled texts.
    """
    settings = config.data
    problems = Problems(str(settings.data or "made-up reviews"), settings.drop_bad)
    source: SentimentRows | None = None
    data: SentimentData | None = None
    try:
        source, data = read_data(config, problems)
    except ForeignDataError:
        raise
    except DataProblemsError as error:
        problems.errors += error.messages
    except TrainingError as error:
        problems.error(str(error))
    if config.pretraining.unlabelled is not None:
        try:
            require_prose(config.pretraining.unlabelled)
        except DataError as error:
            problems.error(str(error))
    if config.training.warm_start is not None and data is not None:
        from gru_training.sentiment.warm_start import starting_run, with_start_settings

        try:
            with_start_settings(config, starting_run(config))
        except TrainingError as error:
            problems.error(str(error))
    if config.teaching.teach is not None and data is not None:
        from gru_training.sentiment.teaching.teacher import teacher_of

        try:
            teacher_of(config.teaching, data)
        except TrainingError as error:
            problems.error(str(error))
    return DataCheck(
        problems.source,
        "nothing that could be read" if source is None else _summary(source, data),
        None if source is None else partial(_class_table, source),
        tuple(problems.errors),
        tuple(problems.remedies),
        tuple(problems.notes),
        None if problems.errors else data,
    )


def _summary(source: SentimentRows, data: SentimentData | None) -> str:
    what = {
        "class": f"in {len(source.classes):,} classes",
        "labels": f"with {len(source.classes):,} labels",
        "number": "with a number each",
    }
    text = f"{len(source.all_rows):,} texts {what[source.kind]}"
    if data is None:
        return text
    parts = ", ".join(f"{len(part):,} {name}" for name, part in data.parts().items())
    return f"{text}; {parts}"


def _class_table(source: SentimentRows) -> DataTable:
    """Each class or label with its rows, their share, and how long its texts are."""
    if source.kind == "number":
        return _number_table(source)
    words: dict[int, list[int]] = defaultdict(list)
    for row in source.all_rows:
        for label in numbers_of(row):
            words[label].append(len(row.text.split()))
    total = max(1, len(source.all_rows))
    rows = [
        (
            source.classes[label],
            f"{len(lengths):,}",
            f"{len(lengths) / total:.1%}",
            f"{median(lengths):,.0f}",
            f"{max(lengths):,}",
        )
        for label, lengths in sorted(words.items())
    ]
    head = "class" if source.kind == "class" else "label"
    return DataTable((head, "rows", "share", "median words", "most words"), rows)


def _number_table(source: SentimentRows) -> DataTable:
    """Where the numbers to estimate lie."""
    values = np.array([row.label for row in source.all_rows], np.float64)
    shown = [f"{value:,.4g}" for value in (*np.quantile(values, _QUANTILES), values.mean())]
    return DataTable(
        ("number", "least", "5%", "median", "95%", "greatest", "mean"),
        [(source.classes[0], *shown)],
    )
