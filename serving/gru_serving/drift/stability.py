"""The population stability index of a histogram against an earlier one, and its interpretation."""

import math
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

MOVED, SHIFTED = 0.1, 0.25
"""The usual limits of the index (Siddiqi, Credit Risk Scorecards, 2006)."""
_CHANCE = 0.999

Verdict = Literal["stable", "moved", "shifted"]


OUTSIDE_SHARE = 0.02
"""Share of held-out rows outside of the range that holds 98 % of them."""
MOVED_OUTSIDE, SHIFTED_OUTSIDE = 0.05, 0.1
"""Shares of later rows outside of that range above which a quantity counts as moved or shifted. A
small group of unusual rows does not move the index.
"""


def share_verdict(outside: int, rows: int, held_out: int) -> Verdict:
    """Judge the share of rows outside of the range of 98 % of the held-out rows.

    A difference that may be chance counts as stable: by the G statistic of the two shares, which
    has a chi-squared distribution with one degree of freedom if both are the same.

    Args:
        outside: Number of later rows outside of the range.
        rows: Number of later rows, at least 1.
        held_out: Number of held-out rows that the range was made of, at least 1.
    """
    share = outside / rows
    if share <= MOVED_OUTSIDE:
        return "stable"
    common = (outside + OUTSIDE_SHARE * held_out) / (rows + held_out)
    statistic = 2 * (rows * _relative_entropy(share, common)
                     + held_out * _relative_entropy(OUTSIDE_SHARE, common))  # fmt: skip
    if statistic <= _chi_squared(1):
        return "stable"
    return "moved" if share <= SHIFTED_OUTSIDE else "shifted"


def _relative_entropy(share: float, common: float) -> float:
    terms = ((share, common), (1 - share, 1 - common))
    return sum(p * math.log(p / q) for p, q in terms if p)


class Stability(NamedTuple):
    """Distance of a histogram from an earlier one.

    Attributes:
        value: The population stability index.
        noise: Upper bound of the index in 99.9 % of the cases if nothing has changed.
    """

    value: float
    noise: float

    @property
    def verdict(self) -> Verdict:
        """Judge the distance by the usual limits; one that may be chance counts as stable."""
        if self.value <= max(MOVED, self.noise):
            return "stable"
        return "moved" if self.value <= SHIFTED else "shifted"


def stability(before: np.ndarray, now: np.ndarray) -> Stability:
    """Compare two histograms with the same bins.

    The index is the sum of (q - p) ln(q / p) over the bins' shares p before and q now. Half a row
    is added to each bin, which keeps the term of an empty bin finite. If both histograms come from
    one population, the index is distributed as (1/N + 1/M) times chi-squared with one degree of
    freedom fewer than there are bins (Yurdakul, Statistical Properties of Population Stability
    Index, 2018).

    Args:
        before: Rows in each bin; bins that are empty in both are left out.
        now: Rows in each bin of the later histogram.

    Raises:
        ValueError: One of the two has no rows.
    """
    rows, later = int(before.sum()), int(now.sum())
    if not rows or not later:
        raise ValueError(f"expected rows before and now, got {rows} and {later}")
    used = (before + now) > 0
    bins = int(used.sum())
    if bins == 1:
        return Stability(0.0, 0.0)
    p, q = ((counts[used] + 0.5) / (counts.sum() + 0.5 * bins) for counts in (before, now))
    index = float(((q - p) * np.log(q / p)).sum())
    return Stability(index, (1 / rows + 1 / later) * _chi_squared(bins - 1))


def _chi_squared(freedom: int) -> float:
    """Compute the quantile at `_CHANCE` by Wilson and Hilferty's approximation (1931)."""
    variance = 2 / (9 * freedom)
    z = NormalDist().inv_cdf(_CHANCE)
    return float(freedom * (1 - variance + z * math.sqrt(variance)) ** 3)
