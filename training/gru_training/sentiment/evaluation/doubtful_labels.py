"""Labels that are probably wrong, found by predictions for rows on which the model was not trained.

The rule is that of confident learning (Northcutt, Jiang and Chuang 2021, "Confident Learning:
Estimating Uncertainty in Dataset Labels", section 3): a row labelled i counts as one of class j if
its probability of j reaches the mean probability of j over the rows labelled j. Doubtful rows are
ranked by their margin: the probability of their label minus that of the other class.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from gru_training.sentiment.evaluation.baselines import word_regression

_FOLDS = 5
_PENALTY = 10.0


class Doubtful(NamedTuple):
    """A row whose label is probably wrong."""

    row: int
    suggested: int
    """Number of the more probable class."""
    of_label: float
    """Probability of the row's label."""
    of_suggested: float
    """Probability of the suggested class."""


def doubtful_labels(labels: np.ndarray, scores: np.ndarray) -> list[Doubtful]:
    """Find the rows whose label is probably wrong, the most doubtful first.

    Args:
        labels: (N,) class numbers, all of which occur.
        scores: (N, C) probabilities, of models that were not trained on the row.
    """
    classes = scores.shape[1]
    least = np.array([scores[labels == k, k].mean() for k in range(classes)])
    rows = np.arange(len(labels))
    others = np.where(scores >= least, scores, -1.0)
    others[rows, labels] = -1.0
    suggested = others.argmax(axis=1)
    own, other = scores[rows, labels], others[rows, suggested]
    found = np.flatnonzero(other > own)
    ranked = found[np.argsort(own[found] - other[found], kind="stable")]
    return [
        Doubtful(int(row), int(suggested[row]), float(own[row]), float(other[row]))
        for row in ranked
    ]


def out_of_fold_scores(counts: sp.csr_matrix, labels: np.ndarray) -> np.ndarray | None:
    """Compute probabilities (N, C) of each row by a regression on the words of the other folds.

    Args:
        counts: (N, W), how often each text holds each word.
        labels: (N,) class numbers.

    Returns:
        Probabilities; None if a class has too few rows for folds.
    """
    folds = min(_FOLDS, int(np.bincount(labels).min()))
    if folds < 2:
        return None
    model = word_regression(len(np.unique(labels)), _PENALTY)
    splits = StratifiedKFold(folds, shuffle=True, random_state=0)
    features = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    scores = cross_val_predict(model, features, labels, cv=splits, method="predict_proba")
    return np.asarray(scores)


def doubtful_table(
    found: Sequence[Doubtful],
    texts: Sequence[str],
    places: Sequence[str],
    labels: np.ndarray,
    classes: Sequence[str],
) -> list[dict[str, object]]:
    """Write the table of rows by which people correct labels."""
    return [
        {
            "rank": rank,
            "place": places[one.row] if places else "",
            "label": classes[labels[one.row]],
            "suggested": classes[one.suggested],
            "probability_of_label": round(one.of_label, 4),
            "probability_of_suggested": round(one.of_suggested, 4),
            "text": texts[one.row],
        }
        for rank, one in enumerate(found, 1)
    ]
