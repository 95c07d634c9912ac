"""A GRU and an n-gram regression that answer together."""

import keras
import numpy as np
from scipy.optimize import minimize

from training.classification.calibration import negative_log_likelihood
from training.words.ngram_model import NgramLogits, NgramModel


def fit_shares(
    labels: np.ndarray, gru_logits: np.ndarray, ngram_logits: np.ndarray
) -> tuple[float, float]:
    """The weights, at least 0, of the sum that maximises the likelihood of held-out rows.

    Args:
        labels: (N,) class numbers, of rows that neither model was trained on.
        gru_logits: (N, C).
        ngram_logits: (N, C).

    Returns:
        The GRU's share and the regression's. The problem is convex; where every row can be got
        right at any size of the shares, they stay below 10.
    """
    found = minimize(
        lambda s: negative_log_likelihood(labels, s[0] * gru_logits + s[1] * ngram_logits),
        x0=(0.5, 0.5),
        bounds=((0.0, 10.0), (0.0, 10.0)),
        method="L-BFGS-B",
    )
    return float(found.x[0]), float(found.x[1])


def combine(model: keras.Model, ngrams: NgramModel, shares: tuple[float, float]) -> keras.Model:
    """A model that answers with the weighted sum of both logits.

    Args:
        model: From word ids (B, T) to logits (B, C).
        ngrams: Over the same ids and classes.
        shares: Of `fit_shares`.
    """
    count, classes = ngrams.weights.shape
    layer = NgramLogits(count, classes, ngrams.vocabulary_size, name="ngrams")
    counted = layer(model.input)
    layer.set_model(ngrams)
    parts = [
        keras.layers.Rescaling(share)(logits)
        for share, logits in zip(shares, (model.output, counted), strict=True)
    ]
    logits = keras.layers.Add(name="combined_logits")(parts)
    return keras.Model(model.input, logits, name="combined")
