"""What a model achieves on rows that it is not trained on."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gru_training.loop.fit_state import Totals

Measure = Callable[[np.ndarray, np.ndarray], float]
"""Of targets and outputs of many rows."""
AnyBatch = tuple[Any, np.ndarray]
"""What a step reads, and the targets: a `gru_training.loop.batches.Batch`, or a task's own."""
Step = Callable[[Any, Any], Mapping[str, Any]]
"""A batch in, the sum over its rows of the loss and of each metric out."""
OUTPUTS = "outputs"
"""Under which a step returns those of the model, if it does."""


def evaluate(
    eval_step: Step, batches: Iterable[AnyBatch], measures: Mapping[str, Measure] | None = None
) -> dict[str, float]:
    """Means over all rows of the loss and each metric, and the measures of all rows.

    Args:
        eval_step: From `make_eval_step`; with measures one that returns outputs.
        batches: All rows once.
        measures: By name.

    Raises:
        ValueError: There are no rows.
    """
    totals = Totals()
    answered: list[tuple[np.ndarray, np.ndarray]] = []
    for inputs, targets in batches:
        sums = dict(eval_step(inputs, targets))
        if measures:
            answered.append((targets, np.asarray(sums.pop(OUTPUTS))))
        totals.add(sums, len(targets))
    means = totals.means()
    if measures:
        rows = [np.concatenate(part) for part in zip(*answered, strict=True)]
        means |= {name: measure(rows[0], rows[1]) for name, measure in measures.items()}
    return means
