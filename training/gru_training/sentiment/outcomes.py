"""The answers of a text run to test rows, for comparisons with other runs."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from gru_training.data.digest import data_digest
from gru_training.data.label_cells import LabelCells
from gru_training.data.label_names import classes_of
from gru_training.data.problems import Problems
from gru_training.data.text_files import read_text_file
from gru_training.errors import DataError, RunDirectoryError
from gru_training.outcomes import Answers, Measure, Outcomes, mean_measure
from gru_training.scoring.engine import score_table
from gru_training.scoring.scorer import Scorer
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.warm_start import is_learned


def held_out_outcomes(run: SentimentRun, like: SentimentRun) -> Outcomes:
    """Return the outcomes on the run's own test rows, from what it stored; needs no model.

    Args:
        run: Run to compare.
        like: Run whose classes the other must have.

    Raises:
        RunDirectoryError: The run has other classes, or its files are damaged.
    """
    order = _class_order(run, like)
    rows = list(run.test_predictions())
    numbers = {name: number for number, name in enumerate(like.classes)}
    labels = np.array([numbers[row.label] for row in rows])
    scores = np.array([row.scores for row in rows])[:, order]
    predicted = np.array([numbers[row.predicted] for row in rows])
    baselines = {
        name: label_answers(labels, np.argsort(order)[answers], None, len(order))
        for name, answers in run.baseline_predictions().items()
    }
    return Outcomes(
        "held-out texts",
        _keys((row.text, row.label) for row in rows),
        label_answers(labels, predicted, scores, len(order)),
        baselines,
    )


def file_outcomes(run: SentimentRun, data: Path, like: SentimentRun, scorer: Scorer) -> Outcomes:
    """Return the outcomes on the rows of a file with the column names of the run's training.

    Args:
        run: Run to compare.
        data: A file as `gru_training.data.text_files.read_text_file` reads it.
        like: Run whose classes the other must have.
        scorer: Scorer of the run; it answers label, probability, and the classes in their order.

    Raises:
        TrainingError: The run has other classes, or the file cannot be used.
    """
    order = _class_order(run, like)
    settings = run.config.data
    named = settings.text_column, settings.label_column
    problems = Problems(str(data))
    labels = LabelCells("class", settings.label_columns)
    columns = {name: column for name in ("text", "label") if (column := run.column_of(name))}
    rows, _ = read_text_file(
        data, *named, problems, labels, given=settings.text_format, like=columns
    )
    problems.close_rows(some_left=False)  # a comparison has no --drop-bad
    problems.raise_errors()
    numbers = {name: number for number, name in enumerate(like.classes)}
    class_of = classes_of({row.labels[0] for row in rows}, like.classes)
    unknown = sorted(set(class_of.values()) - set(numbers))
    if unknown:
        raise DataError(
            f"{data}: expected the labels {', '.join(like.classes)} of {run.path}, got "
            f"{unknown[0]!r}"
        )
    truth = np.array([numbers[class_of[row.labels[0]]] for row in rows])
    texts = pa.table({scorer.inputs[0]: [row.text for row in rows]})
    answers = score_table(scorer, texts)
    scores = np.column_stack([answers.columns[2 + number].to_numpy() for number in order])
    predicted = np.array([numbers[name] for name in answers.column("label").to_pylist()])
    majority = int(np.bincount(truth).argmax())
    always = label_answers(truth, np.full(len(truth), majority), None, len(order))
    notes = tuple(problems.notes)
    if learned := np.count_nonzero(is_learned((row.text for row in rows), run)):
        notes += (
            f"has learned from {learned:,} of these {len(rows):,} texts, so that it knows some of "
            "the answers",
        )
    return Outcomes(
        "texts",
        _keys((row.text, row.labels[0]) for row in rows),
        label_answers(truth, predicted, scores, len(order)),
        {f"always {like.classes[majority]!r}": always},
        notes=notes,
    )


def _class_order(run: SentimentRun, like: SentimentRun) -> list[int]:
    """Return the run's number of each class of the other run."""
    for each in (run, like):
        if each.kind != "class":
            raise RunDirectoryError(
                f"{each.path}: expected a run that answers one class for each text, got one that "
                f"answers {'labels' if each.kind == 'labels' else 'numbers'}"
            )
    if set(run.classes) != set(like.classes):
        raise RunDirectoryError(
            f"{run.path}: expected the classes {', '.join(like.classes)} of {like.path}, got "
            f"{', '.join(run.classes)}"
        )
    return [run.classes.index(name) for name in like.classes]


def _keys(rows: Iterable[tuple[str, str]]) -> np.ndarray:
    """Make a key for each text with its label; a repeated row has its number appended."""
    seen = Counter[str]()
    keys = []
    for row in rows:
        digest = data_digest(row)
        seen[digest] += 1
        keys.append(f"{digest} {seen[digest]}")
    return np.array(keys)


_MIN_LIKELIHOOD = float(np.finfo(np.float32).eps)
"""Least probability of the right class; lower ones count as this, as in scikit-learn."""


def label_answers(
    labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None, classes: int
) -> Answers:
    """Compute accuracy, macro F1 and, if probabilities are known, log loss.

    Args:
        labels: (N,) class numbers.
        predicted: (N,) class numbers.
        scores: (N, C) probabilities; None of a model that gives labels only.
        classes: C.
    """
    right = labels == predicted
    measures = [
        mean_measure("accuracy", right, higher_is_better=True, style=".2%"),
        _macro_f1(labels, predicted, classes),
    ]
    if scores is not None:
        likelihood = scores[np.arange(len(labels)), labels].astype(np.float64)
        losses = -np.log(np.clip(likelihood, _MIN_LIKELIHOOD, 1))
        measures.append(mean_measure("log loss", losses, higher_is_better=False))
    return Answers(tuple(measures), right)


def _macro_f1(labels: np.ndarray, predicted: np.ndarray, classes: int) -> Measure:
    of_class = np.arange(classes)
    labelled, answered = labels[:, np.newaxis] == of_class, predicted[:, np.newaxis] == of_class
    columns = np.concatenate([labelled & answered, labelled, answered], axis=1)
    of_means = partial(_mean_f1, classes=classes)
    return Measure("macro F1", columns.astype(np.float64), of_means, True, ".2%")


def _mean_f1(means: np.ndarray, classes: int) -> np.ndarray:
    """Average over the classes that occur among labels or answers, as in scikit-learn."""
    hits = means[..., :classes]
    total = means[..., classes : 2 * classes] + means[..., 2 * classes :]
    seen = total > 0
    scores = np.divide(2 * hits, total, out=np.zeros_like(hits), where=seen)
    return np.asarray(scores.sum(axis=-1) / seen.sum(axis=-1))
