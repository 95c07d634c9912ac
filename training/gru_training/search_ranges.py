"""The values from which a search (`gru_training.tune`) chooses a setting.

A setting that is searched by default states its range beside its type: `learning_rate:
Annotated[float, Floats(3e-4, 1e-2, log=True)] = 1e-3`.
"""

from dataclasses import dataclass, replace
from math import gcd
from typing import Any


@dataclass(frozen=True)
class Floats:
    """Numbers from `low` to `high`."""

    low: float
    high: float
    log: bool = False
    """Whether to draw them evenly by their logarithm."""

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', by logarithm' if self.log else ''}"

    def suggest(self, trial: Any, name: str) -> float:
        """Let a trial of Optuna choose a value."""
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))

    def holds(self, value: Any) -> bool:
        """Tell whether the choice contains a value."""
        return isinstance(value, float | int) and self.low <= value <= self.high

    def including(self, value: float) -> "Floats":
        """Widen the range to include a value."""
        return replace(self, low=min(self.low, value), high=max(self.high, value))


@dataclass(frozen=True)
class Integers:
    """Whole numbers from `low` to `high`, `step` apart."""

    low: int
    high: int
    step: int = 1

    def __str__(self) -> str:
        apart = f", {self.step} apart" if self.step > 1 else ""
        return f"{self.low} to {self.high}{apart}"

    def suggest(self, trial: Any, name: str) -> int:
        """Let a trial of Optuna choose a value."""
        return int(trial.suggest_int(name, self.low, self.high, step=self.step))

    def holds(self, value: Any) -> bool:
        """Tell whether the choice contains a value."""
        return isinstance(value, int) and value in range(self.low, self.high + 1, self.step)

    def including(self, value: int) -> "Integers":
        """Widen or refine the range to include a value."""
        if self.holds(value):
            return self
        return Integers(
            min(self.low, value), max(self.high, value), gcd(self.step, value, self.low)
        )


@dataclass(frozen=True)
class OneOf:
    """A choice among some values."""

    values: tuple[str | bool | int | float, ...]

    def __str__(self) -> str:
        return " or ".join(map(written, self.values))

    def suggest(self, trial: Any, name: str) -> Any:
        """Let a trial of Optuna choose a value."""
        return trial.suggest_categorical(name, self.values)

    def holds(self, value: Any) -> bool:
        """Tell whether the choice contains a value."""
        return value in self.values

    def including(self, value: Any) -> "OneOf":
        """Add a value to the choice."""
        return self if self.holds(value) else OneOf((*self.values, value))


Choice = Floats | Integers | OneOf


def written(value: Any) -> str:
    """Write a setting for display."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)
