"""The measures of a sentiment run, as values for `metrics.json`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gru_training.data.digest import data_digest
from gru_training.sentiment.decision import Temperature, negative_log_likelihood, reliability
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import TrainedClassifier


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
