"""Whether long texts are harder than short ones."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

_MOST_BINS, _ROWS_PER_BIN = 8, 100


@dataclass(frozen=True)
class LengthBins:
    """Rows by their number of tokens, in K bins of about equally many rows."""

    shortest: np.ndarray
    """(K,) tokens of the shortest row of each bin."""
    longest: np.ndarray
    """(K,) tokens of the longest row of each bin."""
    members: list[np.ndarray]
    """K arrays of row numbers."""

    def accuracy(self, right: np.ndarray) -> list[tuple[float, float, float]]:
        """Share of right rows in each bin, with the bounds of its 95 % interval (Wilson).

        Args:
            right: (N,) bool, whether each row was got right.
        """
        shares = [float(right[rows].mean()) for rows in self.members]
        return [
            (share, *wilson_interval(share, len(rows)))
            for share, rows in zip(shares, self.members, strict=True)
        ]


def bin_by_length(lengths: np.ndarray, bins: int | None = None) -> LengthBins:
    """Cut rows into bins at quantiles of their length; rows of one length share a bin.

    Args:
        lengths: (N,) number of tokens.
        bins: Most bins; by default 8, or fewer where bins would have less than 100 rows.
    """
    if bins is None:
        bins = int(np.clip(len(lengths) // _ROWS_PER_BIN, 1, _MOST_BINS))
    inner = np.quantile(lengths, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf")
    number = np.searchsorted(np.unique(inner), lengths)
    members = [np.flatnonzero(number == k) for k in np.unique(number)]
    return LengthBins(
        np.array([lengths[rows].min() for rows in members]),
        np.array([lengths[rows].max() for rows in members]),
        members,
    )


def wilson_interval(share: float, rows: int) -> tuple[float, float]:
    """95 % confidence interval of a share observed in `rows` independent rows (Wilson, 1927)."""
    found = binomtest(round(share * rows), rows).proportion_ci(0.95, "wilson")
    return min(share, float(found.low)), max(share, float(found.high))  # against rounding
