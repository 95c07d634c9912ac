"""Choosing the next token of a text among those that a language model names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gru_serving.errors import InvalidArgument

__all__ = ["END", "UNKNOWN", "NextTokenSampler"]

END = "[END]"
"""The token with which a language model ends a document."""
UNKNOWN = "[UNK]"
"""The token that stands for all tokens that a language model does not know."""


class NextTokenSampler:
    """Draws tokens; the same draws for the same seed and the same probabilities.

    Args:
        temperature: Log-probabilities are divided by it; 0 takes the likeliest token.
        top_k: Number of the likeliest tokens to draw from; None for all that are named.
        top_p: Probability that the likeliest tokens to draw from have together (Holtzman et al.
            2020, arXiv:1904.09751).
        seed: Seed of the draws.

    Raises:
        InvalidArgument: A setting is out of range.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= temperature < float("inf"):
            raise InvalidArgument(f"temperature must be a number from 0, got {temperature}")
        if top_k is not None and top_k < 1:
            raise InvalidArgument(f"top_k must be at least 1, got {top_k}")
        if not 0 < top_p <= 1:
            raise InvalidArgument(f"top_p must be above 0 and at most 1, got {top_p}")
        if seed < 0:
            raise InvalidArgument(f"seed must be at least 0, got {seed}")
        self._temperature, self._top_k, self._top_p = temperature, top_k, top_p
        self._rng = np.random.default_rng(seed)

    def choose(self, tokens: Sequence[str], log_probabilities: np.ndarray) -> int:
        """The place of the token to go on with; unknown tokens are never chosen.

        Args:
            tokens: K of them.
            log_probabilities: (K,) natural logarithms.

        Raises:
            InvalidArgument: Every token is unknown.
        """
        known = np.array([place for place, token in enumerate(tokens) if token != UNKNOWN], int)
        if not len(known):
            raise InvalidArgument(f"expected a token to go on with, got {list(tokens)}")
        values = np.asarray(log_probabilities, np.float64)[known]
        order = np.argsort(-values, kind="stable")[: self._top_k]
        if self._temperature == 0:
            return int(known[order[0]])
        scaled = values[order] / self._temperature
        shares = np.exp(scaled - scaled.max())
        shares /= shares.sum()
        # All tokens until their shares reach top_p, the one that reaches it too.
        reached = np.cumsum(shares)
        count = int(np.searchsorted(reached, self._top_p * (1 - 1e-12))) + 1
        reached = reached[:count]
        drawn = np.searchsorted(reached, self._rng.random() * reached[-1], side="right")
        return int(known[order[min(int(drawn), len(reached) - 1)]])
