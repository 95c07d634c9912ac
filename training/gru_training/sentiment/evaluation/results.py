"""What the report of each kind of target consists of."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gru_training.runs.directory import RunWriter


class Results(NamedTuple):
    """On the held-out rows."""

    metrics: dict[str, Any]
    """For `metrics.json`: `model`, with measures by part, and whatever else is of this kind."""
    predictions: list[dict[str, Any]]
    """The test rows: `text`, `label`, `predicted`, `scores`."""
    draw: Callable[[RunWriter], dict[str, Any]]
    """Draw the pictures and pages of the report; returns further metrics, found on the way."""
    markdown: Callable[[Mapping[str, Any]], str]
    """Write the report, from all metrics."""
