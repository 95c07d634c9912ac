"""The names of classes, to stand beside their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gru_serving.client.interface import Client
from gru_serving.errors import ServingError

MOST_NAMES = 6
"""Beyond it only the likeliest classes of a row are shown."""


def class_names(
    client: Client,
    model: str,
    target: Any,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
) -> list[str]:
    """The classes in the order of the scores, from the signature `classify`; empty without it.

    Args:
        client: Asked what was asked before.
        model: Name of the model.
        target: `version` and `label`.
        inputs: Of the request; its first row is classified.
        outputs: Of the answer, among them `scores` (B, C) and `label` (B,).
    """
    scores, label = outputs.get("scores"), outputs.get("label")
    answers = label is not None or "labels" in outputs
    if scores is None or not answers or scores.ndim != 2 or not len(scores):
        return []
    if label is not None and label.shape != scores.shape[:1]:
        return []
    example = {name: array[0] for name, array in inputs.items() if array.ndim}
    try:
        (row,) = client.classify([example], model, signature="classify", **target)
    except (ServingError, ValueError, TypeError):  # the model has no such signature
        return []
    names = [name for name, _ in row]
    if label is None:  # any number of labels
        return names if len(set(names)) == scores.shape[1] else []
    # Not the likeliest one: costs or thresholds may decide otherwise.
    known = len(names) == scores.shape[1] and label[0] in [name.encode() for name in names]
    return names if known else []


def likeliest(scores: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Of each row (B, C) the likeliest classes with their scores, (B,) texts."""
    texts = np.empty(len(scores), object)
    for number, row in enumerate(scores):
        best = np.argsort(-row, kind="stable")[:MOST_NAMES]
        shown = ", ".join(f"{classes[k]} {row[k]:.4g}" for k in best)
        texts[number] = f"{shown} ..." if len(row) > len(best) else shown
    return texts
