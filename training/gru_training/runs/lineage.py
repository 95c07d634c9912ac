"""The runs behind an average or a distilled network, with what was gained over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_LOWER = ("mae", "rmse", "log_loss", "mse", "mase")
"""Measures of which less is better."""
_LEAST = 0.1
"""Of the runs' standard deviation: of a smaller gain no share is told."""
PARTS = ("validation", "test")
Measured = Mapping[str, Mapping[str, float]]
"""Measures by part and name."""


@dataclass(frozen=True)
class Lineage:
    """Where a model comes from."""

    runs: tuple[str, ...]
    """Names of the runs that were averaged."""
    weights: tuple[float, ...]
    """Of their answers in the average."""
    members: tuple[Measured, ...]
    """Of each run."""
    how: str
    """How the model was made of them, as sentences."""
    average: Measured | None = None
    """Of a distilled network what it was distilled from; None for the average itself."""

    @property
    def key(self) -> str:
        """What the figures are called in `metrics.json`."""
        return "ensemble" if self.average is None else "distilled"

    def figures(self, own: Measured) -> dict[str, Any]:
        """What was gained, for `metrics.json`; gains are above 0 where the model is better.

        Args:
            own: Measures of the model, the same as those of the runs.
        """
        mean = _over(self.members, np.mean)
        found: dict[str, Any] = {
            "runs": [
                {"name": name, "weight": weight, **of}
                for name, weight, of in zip(self.runs, self.weights, self.members, strict=True)
            ],
            "how": self.how,
            "mean": mean,
            "deviation": _over(self.members, lambda values: np.std(values, ddof=1)),
        }
        if self.average is None:
            return {**found, "model": own, "gain": gains(own, mean)}
        whole, kept = gains(self.average, mean), gains(own, mean)
        return {
            **found,
            "average": self.average,
            "model": own,
            "gain": kept,
            "gain_of_average": whole,
            "kept": {
                part: {
                    name: kept[part][name] / value
                    if value > _LEAST * found["deviation"][part][name]
                    else None
                    for name, value in of.items()
                }
                for part, of in whole.items()
            },
        }


def gains(better: Measured, worse: Measured) -> dict[str, dict[str, float]]:
    """How much better the one is, by part and measure."""
    return {
        part: {
            name: (value - worse[part][name]) * (-1 if name in _LOWER else 1)
            for name, value in of.items()
        }
        for part, of in better.items()
    }


def _over(members: Sequence[Measured], statistic: Any) -> dict[str, dict[str, float]]:
    return {
        part: {
            name: float(statistic([each[part][name] for each in members]))
            for name in members[0][part]
        }
        for part in PARTS
    }
