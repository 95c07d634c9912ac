"""What the report of each kind of target consists of."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Results(NamedTuple):
    """On the held-out rows."""

    metrics: dict[str, Any]
    """For `metrics.json`: `model`, with measures by part, and whatever else is of this kind."""
    predictions: list[dict[str, Any]]
    """The test rows: `text`, `label`, `predicted`, `scores`."""
    markdown: Callable[[Mapping[str, Any]], str]
    """From all metrics to the report; pictures are drawn by then."""
