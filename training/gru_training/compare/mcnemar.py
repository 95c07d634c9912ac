"""Whether one classifier is right more often than another, by more than chance."""

from typing import NamedTuple

import numpy as np
from statsmodels.stats.contingency_tables import mcnemar

FEW = 25


class McNemar(NamedTuple):
    """Rows on which one of two models is right and the other wrong, and the test's result."""

    gained: int
    """Rows that only the first gets right."""
    lost: int
    """Rows that only the second gets right."""
    p_value: float


def mcnemar_test(right: np.ndarray, reference: np.ndarray) -> McNemar:
    """McNemar's test (1947): is each of two models right on half of the rows on which they differ?

    Exact if they differ on fewer than 25 rows; otherwise chi-squared without a correction for
    continuity, which keeps its level there and has more power (Fagerland, Lydersen and Laake, 2013,
    "The McNemar test for binary matched-pairs data", BMC Medical Research Methodology 13).

    Args:
        right: (N,) bool, the rows that a model gets right.
        reference: (N,) bool, those that the other model gets right.
    """
    gained, lost = int(np.sum(right & ~reference)), int(np.sum(~right & reference))
    table = [[int(np.sum(right & reference)), gained], [lost, int(np.sum(~right & ~reference))]]
    tested = mcnemar(table, exact=gained + lost < FEW, correction=False)
    return McNemar(gained, lost, float(min(tested.pvalue, 1.0)))
