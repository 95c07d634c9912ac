"""How many windows the bounds of an interval need, and how many there are; needs no TensorFlow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gru_training.data.problems import counted

_FEW_WINDOWS = 200
"""Below which a horizon and column alone has too few residuals: they overlap."""


@dataclass(frozen=True)
class Support:
    """What there is to calibrate intervals with.

    Args:
        windows: Of the validation part, overlapping ones too.
        horizon: Steps of each.
        columns: That are forecast.
        panel: Whether series are of unequal length.
        levels: Of the quantiles, ascending.
    """

    windows: int
    horizon: int
    columns: int
    panel: bool
    levels: Sequence[float]

    @property
    def independent(self) -> float:
        """About how many windows do not depend on each other.

        Those that do not overlap; of several columns, which are alike but not the same, more.
        """
        return self.windows / self.horizon * math.sqrt(self.columns)

    @property
    def pools(self) -> bool:
        """Whether residuals of all columns and horizons are put together."""
        few = self.windows < _FEW_WINDOWS or self.independent < least_windows(self.levels[-1])
        return self.panel or few

    def notes(self) -> tuple[str, ...]:
        """The intervals whose bounds the windows do not support, and what is done."""
        levels = [level for level in self.levels if level > 0.5]
        short = [level for level in levels if self.independent < least_windows(level)]
        if not short:
            return ()
        needed = ", ".join(
            f"{100 * (2 * level - 1):.6g}% needs {least_windows(level):,}" for level in short
        )
        there = counted(max(1, round(self.independent)), "validation window")
        symmetric = len(short) == len(levels)
        how = "wider, and as wide above the forecast as below" if symmetric else "wider"
        return (f"rough intervals: about {there} without overlap ({needed}), so they are {how}",)


def least_windows(level: float) -> int:
    """The fewest residuals n among which the quantile of a level has a rank, ⌈level·(n + 1)⌉."""
    return math.ceil(round(level / (1 - level), 9))
