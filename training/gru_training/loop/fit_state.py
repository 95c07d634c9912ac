"""How far a training run has come, apart from its weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Totals:
    """Sums over rows, for means that weigh every row alike."""

    sums: dict[str, float] = field(default_factory=dict)
    """Of the loss and each metric."""
    rows: int = 0

    def add(self, sums: Mapping[str, Any], rows: int) -> None:
        """Add the sums over further rows."""
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        self.rows += rows

    def means(self) -> dict[str, float]:
        """Per row.

        Raises:
            ValueError: There are no rows.
        """
        if not self.rows:
            raise ValueError("expected at least one row, got none")
        return {name: value / self.rows for name, value in self.sums.items()}


@dataclass(frozen=True)
class EpochRecord:
    """The result of one epoch."""

    epoch: int
    """Counted from 1."""
    train: dict[str, float]
    """Means over the epoch's training rows, with dropout, while the weights moved."""
    validation: dict[str, float]
    """Means over the validation rows after the epoch."""
    learning_rate: float
    seconds: float


@dataclass
class FitState:
    """How far training has come."""

    epoch: int = 1
    """The current one."""
    step: int = 0
    """How many of its steps are done."""
    totals: Totals = field(default_factory=Totals)
    """Of its rows so far."""
    seconds: float = 0.0
    """Spent on it, when a checkpoint was written."""
    records: list[EpochRecord] = field(default_factory=list)
    """Of the epochs before it."""
    best_epoch: int = 0
    best_score: tuple[float, ...] | None = None
