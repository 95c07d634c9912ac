"""The measures by which a text model is compared with the run that taught it."""

from collections.abc import Mapping
from typing import Any

PARTS = ("validation", "test")

_MEASURES = {
    "class": ("accuracy", "macro_f1"),
    "labels": ("micro_f1", "macro_f1", "average_precision"),
    "number": ("mae", "rmse"),
}


def measured(metrics: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """By part and name, from what `metrics.json` holds."""
    kind = metrics.get("target", "class")
    found = {
        part: {name: float(metrics["model"][part][name]) for name in _MEASURES[kind]}
        for part in PARTS
    }
    if kind == "class":
        for part in PARTS:
            likelihoods = metrics["calibration"][part]["after"]
            found[part]["log_loss"] = float(likelihoods["negative_log_likelihood"])
    return found
