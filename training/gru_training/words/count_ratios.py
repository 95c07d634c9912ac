"""Naive-Bayes log-count ratios: how much more often a feature occurs in texts of one class.

After Wang and Manning (2012), "Baselines and Bigrams: Simple, Good Sentiment and Topic
Classification", section 2.1, with counts of texts and one added to each.
"""

import numpy as np
import scipy.sparse as sp

from gru_training.words.token_rows import TokenRows, members_of, word_counts
from gru_training.words.vocabulary import RESERVED


def log_count_ratios(held: sp.csr_matrix, is_class: np.ndarray) -> np.ndarray:
    """The ratio of each feature.

    Args:
        held: (N, K) of 0 and 1, which features each text holds.
        is_class: (N,) bool.

    Returns:
        (K,), above 0 for features of the class, below for those of the rest.
    """
    p = 1 + np.asarray(held[is_class].sum(axis=0)).ravel()
    q = 1 + np.asarray(held[~is_class].sum(axis=0)).ravel()
    return np.asarray(np.log((p / p.sum()) / (q / q.sum())))


def word_ratios(rows: TokenRows, classes: int, words: int) -> np.ndarray:
    """The ratios of words.

    Args:
        rows: The training texts.
        classes: C.
        words: W; ids from there on are passed over.

    Returns:
        (W, C), of each class against the rest; of two classes only the second, (W, 1). Zeros for
        the reserved ids.
    """
    held = (word_counts(rows.ids, words) > 0).astype(np.float64)
    of = [1] if classes == 2 and rows.labels.ndim == 1 else range(classes)
    ratios = np.stack([log_count_ratios(held, members_of(rows.labels, k)) for k in of], axis=1)
    ratios[: len(RESERVED)] = 0.0
    return ratios
