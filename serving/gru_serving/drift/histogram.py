"""Histograms of quantities, to be compared with earlier ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 10
_NAMES = 50
OTHERS = "(others)"


@dataclass(frozen=True)
class NumberBins:
    """Bins between the deciles of some rows, and one bin for missing values.

    Attributes:
        edges: Inner borders, ascending; a value on a border is in the bin below.
        low: The 1 % quantile of those rows.
        median: The median of those rows.
        high: The 99 % quantile of those rows.
    """

    edges: Sequence[float]
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> NumberBins:
        """Compute bins from the values of rows, (N,), of which some must not be NaN."""
        there = values[~np.isnan(values)]
        edges = np.unique(np.quantile(there, np.linspace(0, 1, BINS + 1)[1:-1]))
        low, median, high = np.quantile(there, [0.01, 0.5, 0.99])
        return cls([float(edge) for edge in edges], float(low), float(median), float(high))

    def counts(self, values: np.ndarray) -> np.ndarray:
        """Count the rows in each bin; missing values are counted last."""
        missing = np.isnan(values)
        place = np.searchsorted(np.asarray(self.edges), values[~missing], side="left")
        found = np.bincount(place, minlength=len(self.edges) + 1)
        return np.append(found, missing.sum())

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Measure how far values lie outside of 98 % of the rows, (N,), in widths of that range.

        0 inside.

        A missing value counts as inside.
        """
        width = (self.high - self.low) or abs(self.high) or 1.0
        far = np.maximum(self.low - values, values - self.high) / width
        return np.nan_to_num(np.maximum(far, 0.0), nan=0.0)


@dataclass(frozen=True)
class NameBins:
    """A bin for each of the most common names, and one for all others."""

    names: Sequence[str]

    @classmethod
    def of(cls, values: Sequence[str]) -> NameBins:
        """Choose bins for the most frequent names of rows."""
        return cls([name for name, _ in Counter(values).most_common(_NAMES)])

    def counts(self, values: Sequence[str]) -> np.ndarray:
        """Count the rows in each bin; rows with other names are counted last."""
        found = Counter(values)
        named = [found[name] for name in self.names]
        return np.array([*named, len(values) - sum(named)])

    def labels(self) -> list[str]:
        """Name the content of each bin."""
        return [*self.names, OTHERS]


def bins_from_json(values: Mapping[str, Any]) -> NumberBins | NameBins:
    """Restore bins from the result of `dataclasses.asdict`.

    Raises:
        TypeError: The values are not those of bins.
    """
    return NameBins(**values) if "names" in values else NumberBins(**values)
