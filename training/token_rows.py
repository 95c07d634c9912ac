"""Labelled texts as a model reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TokenRows:
    """One part of a data set."""

    ids: Sequence[np.ndarray]
    """N rows of word ids, each (T_i,) int32."""
    labels: np.ndarray
    """(N,) int32: indices into the classes."""
