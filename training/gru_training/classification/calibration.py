"""Whether probabilities can be trusted: of the rows with 80 % confidence, 80 % should be right."""

from dataclasses import dataclass

import numpy as np

_MOST_BINS, _ROWS_PER_BIN = 15, 40


@dataclass(frozen=True)
class Reliability:
    """Test rows in K bins of equally many, from the least confident to the most."""

    confidence: np.ndarray
    """Mean probability of the predicted class, (K,)."""
    accuracy: np.ndarray
    """Share of right predictions, (K,)."""
    rows: np.ndarray
    """(K,)."""

    @property
    def expected_error(self) -> float:
        """Expected calibration error: the mean of |accuracy - confidence| over all rows.

        Naeini et al. (2015), "Obtaining Well Calibrated Probabilities Using Bayesian Binning";
        Guo et al. (2017), equation 3. With few rows per bin chance alone makes it positive.
        """
        gaps = np.abs(self.accuracy - self.confidence)
        return float(np.average(gaps, weights=self.rows))


def negative_log_likelihood(labels: np.ndarray, logits: np.ndarray) -> float:
    """Mean of -log p(label) over the rows, in nats.

    Args:
        labels: (N,) class numbers.
        logits: (N, C).
    """
    from scipy.special import log_softmax

    log_probabilities = log_softmax(logits.astype(np.float64), axis=1)
    return float(-log_probabilities[np.arange(len(labels)), labels].mean())


def reliability(labels: np.ndarray, logits: np.ndarray, bins: int | None = None) -> Reliability:
    """Confidence against accuracy.

    Args:
        labels: (N,) class numbers.
        logits: (N, C).
        bins: K; by default 15 as Guo et al. have it, or fewer where bins would have less than 40
            rows.
    """
    count = len(labels)
    if bins is None:
        bins = int(np.clip(count // _ROWS_PER_BIN, 1, _MOST_BINS))
    from scipy.special import softmax

    scores = softmax(logits.astype(np.float64), axis=1)
    confidence = scores.max(axis=1)
    right = scores.argmax(axis=1) == labels
    parts = np.array_split(np.argsort(confidence, kind="stable"), bins)
    return Reliability(
        np.array([confidence[part].mean() for part in parts]),
        np.array([right[part].mean() for part in parts]),
        np.array([len(part) for part in parts]),
    )
