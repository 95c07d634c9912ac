"""The measures of a sentiment run, as values for `metrics.json`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gru_serving.preprocessing.texts import UNKNOWN
from gru_training.data.digest import data_digest
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.decision import Temperature, negative_log_likelihood, reliability
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.pictures import LengthBins
from gru_training.sentiment.measures import class_measures, per_class
from gru_training.words.vocabulary import TokenRows


def data_summary(data: SentimentData, vocabulary_size: int) -> dict[str, Any]:
    """Return the data set, its split and its words."""
    return {
        "name": data.name,
        "rows": {name: len(part) for name, part in data.parts().items()},
        "vocabulary": vocabulary_size,
        "notes": list(data.notes),
        "digest": data_digest(data.contents()),
        "balance": balance(data),
    }


def part_summary(
    labels: np.ndarray, logits: np.ndarray, predicted: np.ndarray | None = None
) -> dict[str, float]:
    """Summarise the loss before temperature scaling, the accuracy and the averages of a part.

    Args:
        labels: (N,) class numbers.
        logits: Logits, (N, C).
        predicted: (N,) class numbers answered; the likeliest by default.
    """
    answered = logits.argmax(axis=1) if predicted is None else predicted
    return {
        "loss": negative_log_likelihood(labels, logits),
        **class_measures(labels, answered, logits.shape[1]),
    }


def baseline_summary(floors: Sequence[BaselineResult]) -> dict[str, dict[str, float]]:
    """Return the measures of the simple models by name, such as `validation_accuracy`."""
    return {
        floor.name: {
            f"{part}_{name}": value
            for part, measures in (("validation", floor.validation), ("test", floor.test))
            for name, value in measures.items()
        }
        for floor in floors
    }


def same_words(test: TokenRows, predicted: np.ndarray, bag_predicted: np.ndarray) -> dict[str, Any]:
    """Measure how often rows with the same words but different labels are both right.

    Rows with unknown words are left out, since these words may differ.
    """
    bags: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(test.ids):
        if UNKNOWN not in row:
            bags[tuple(sorted(row.tolist()))].append(index)

    def pairs(counted: np.ndarray) -> int:
        total = 0
        for indices in bags.values():
            labels = test.labels[indices][counted[indices]]
            total += (len(labels) ** 2 - int(np.sum(np.bincount(labels) ** 2))) // 2
        return total

    everything = pairs(np.ones(len(test.labels), bool))
    result: dict[str, Any] = {"pairs": everything}
    for name, answers in (("gru", predicted), ("bag_of_words", bag_predicted)):
        result[name] = pairs(answers == test.labels) / everything if everything else None
    return result


def class_summary(
    data: SentimentData, predicted: np.ndarray, scores: np.ndarray
) -> dict[str, dict[str, Any]]:
    """Compute precision, recall, F1, average precision and rows of each class in the test part."""
    numbers = np.arange(len(data.classes))
    return per_class(
        data.test.labels[:, np.newaxis] == numbers,
        predicted[:, np.newaxis] == numbers,
        scores,
        data.classes,
    )


def balance(data: SentimentData) -> dict[str, dict[str, int]]:
    """Count the rows of each class or label by part; nothing for numbers."""
    if data.kind == "number":
        return {}
    counts = {
        part: (
            np.bincount(rows.labels, minlength=len(data.classes))
            if data.kind == "class"
            else rows.labels.sum(axis=0)
        )
        for part, rows in data.parts().items()
    }
    return {
        name: {part: int(of[k]) for part, of in counts.items()}
        for k, name in enumerate(data.classes)
    }


def calibration_summary(
    temperature: Temperature,
    labels: Mapping[str, np.ndarray],
    logits: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """Describe the effect of the temperature by part: validation, on which it was fitted, and test.

    Args:
        temperature: Temperature of the run.
        labels: (N,) of each part.
        logits: (N, C) of each part, not yet divided.
    """
    summary: dict[str, Any] = {"temperature": temperature.value, "remark": temperature.remark}
    for part, raw in logits.items():
        summary[part] = {}
        for when, divided in (("before", raw), ("after", raw / temperature.value)):
            curve = reliability(labels[part], divided)
            summary[part][when] = {
                "negative_log_likelihood": negative_log_likelihood(labels[part], divided),
                "expected_calibration_error": curve.expected_error,
                "bins": len(curve.rows),
            }
    return summary


def length_summary(bins: LengthBins, right: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Compute the accuracy with its 95 % interval by number of tokens, for each model.

    Args:
        bins: Rows by length.
        right: (N,) bool of each model, whether a row was got right.
    """
    accuracies = {name: bins.accuracy(rows) for name, rows in right.items()}
    names = ("accuracy", "low", "high")
    return [
        {
            "shortest": int(bins.shortest[k]),
            "longest": int(bins.longest[k]),
            "rows": len(bins.members[k]),
            **{name: dict(zip(names, of[k], strict=True)) for name, of in accuracies.items()},
        }
        for k in range(len(bins.members))
    ]
