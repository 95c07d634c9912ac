"""The measures of a sentiment run, as values for `metrics.json`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gru_serving.preprocessing.texts import UNKNOWN
from gru_training.data.digest import data_digest
from gru_training.sentiment.decision import Temperature, negative_log_likelihood, reliability
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import TrainedClassifier
from gru_training.sentiment.evaluation.pictures import LengthBins
from gru_training.words.vocabulary import TokenRows


def data_summary(trained: TrainedClassifier) -> dict[str, Any]:
    """Describe the data set, its split, its words, and the rows of each class or label by part."""
    data, target = trained.data, trained.target
    counts = {
        part: target.members(rows.labels).sum(axis=0).tolist()
        for part, rows in data.parts().items()
    }
    named = data.classes if data.kind != "number" else ()
    return {
        "name": data.name,
        "rows": {name: len(part) for name, part in data.parts().items()},
        "vocabulary": len(trained.texts.words.vocabulary),
        "notes": list(data.notes),
        "digest": data_digest(data.contents()),
        "balance": {
            name: {part: of[k] for part, of in counts.items()} for k, name in enumerate(named)
        },
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
