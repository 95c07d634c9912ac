"""Temperature scaling: one number by which all logits are divided.

Guo et al. (2017), "On Calibration of Modern Neural Networks" (arXiv:1706.04599), section 4.2.
The most likely class does not change.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gru_training.classification.calibration import negative_log_likelihood
from gru_training.config import require_above_zero

Loss = Callable[[np.ndarray, np.ndarray], float]
LOWEST, HIGHEST = 0.1, 10.0
"""Bounds of the search; a temperature outside them says that something else is wrong."""


@dataclass(frozen=True)
class Temperature:
    """What logits are divided by before the softmax."""

    value: float = 1.0
    """Above 1 makes the model less confident, below 1 more confident."""
    remark: str | None = None
    """Why it is not the temperature of maximum likelihood, if it is not."""

    def __post_init__(self) -> None:
        require_above_zero("temperature", self.value)


def fit_temperature(
    labels: np.ndarray, logits: np.ndarray, loss: Loss = negative_log_likelihood
) -> Temperature:
    """The temperature that minimises the negative log-likelihood of held-out rows.

    There is none if every row is right: the likelihood then grows with confidence. The temperature
    is then 1, which leaves the model as it is. Otherwise the likelihood has one maximum, as the
    loss is convex in 1/T.

    Args:
        labels: (N,) class numbers, or (N, C) of 0 and 1, of rows that were not trained on.
        logits: (N, C).
        loss: Of labels and divided logits; that of a sigmoid where labels are (N, C).
    """
    answered = logits > 0 if labels.ndim > 1 else logits.argmax(axis=1)
    if np.all(answered == labels):
        return Temperature(
            1.0, f"there is no best one, as all {len(labels):,} validation rows are right"
        )
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log_t: loss(labels, logits / math.exp(log_t)),
        bounds=(math.log(LOWEST), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    for bound in (LOWEST, HIGHEST):
        if abs(found.x - math.log(bound)) < 1e-4:
            side = "below" if bound == LOWEST else "above"
            return Temperature(bound, f"the best one lies {side} it, beyond the end of the search")
    return Temperature(math.exp(found.x))
