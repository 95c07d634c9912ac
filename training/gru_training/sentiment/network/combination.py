"""A GRU and an n-gram regression that answer together."""

from collections.abc import Callable

import keras
import numpy as np
from scipy.optimize import minimize, minimize_scalar

from gru_training.classification.calibration import negative_log_likelihood
from gru_training.words.ngram_layer import NgramLogits
from gru_training.words.ngram_model import NgramModel

Loss = Callable[[np.ndarray, np.ndarray], float]
_LARGEST = 10.0
_RATIOS = np.linspace(0, 1, 11)


def fit_shares(
    labels: np.ndarray,
    gru_logits: np.ndarray,
    ngram_logits: np.ndarray,
    loss: Loss = negative_log_likelihood,
    score: Loss | None = None,
) -> tuple[float, float]:
    """The weights, at least 0, of the sum that does best on held-out rows.

    Args:
        labels: Targets of N rows that neither model was trained on.
        gru_logits: (N, C).
        ngram_logits: (N, C).
        loss: Of targets and logits, to minimise.
        score: Of targets and logits, by which the ratio of the weights is chosen where it is
            given; the loss then chooses their size, and among equals.

    Returns:
        The GRU's share and the regression's. The loss is convex; where every row can be got
        right at any size of the shares, they stay below 10.
    """
    found = minimize(
        lambda s: loss(labels, s[0] * gru_logits + s[1] * ngram_logits),
        x0=(0.5, 0.5),
        bounds=((0.0, _LARGEST), (0.0, _LARGEST)),
        method="L-BFGS-B",
    )
    best = float(found.x[0]), float(found.x[1])
    if score is None:
        return best
    candidates = [best]
    for ratio in _RATIOS:
        mixed = ratio * gru_logits + (1 - ratio) * ngram_logits
        size = minimize_scalar(
            lambda size, mixed=mixed: loss(labels, size * mixed),
            bounds=(1e-3, _LARGEST),
            method="bounded",
        ).x
        candidates.append((float(size * ratio), float(size * (1 - ratio))))

    def value(shares: tuple[float, float]) -> tuple[float, float]:
        logits = shares[0] * gru_logits + shares[1] * ngram_logits
        return score(labels, logits), -loss(labels, logits)

    return max(candidates, key=value)


def combine(model: keras.Model, ngrams: NgramModel, shares: tuple[float, float]) -> keras.Model:
    """A model that answers with the weighted sum of both logits.

    Args:
        model: From word ids (B, T) to logits (B, C).
        ngrams: Over the same ids and classes.
        shares: Of `fit_shares`.
    """
    count, classes = ngrams.weights.shape
    layer = NgramLogits(count, classes, ngrams.vocabulary_size, ngrams.order, name="ngrams")
    counted = layer(model.input)
    layer.set_model(ngrams)
    parts = [
        keras.layers.Rescaling(share)(logits)
        for share, logits in zip(shares, (model.output, counted), strict=True)
    ]
    logits = keras.layers.Add(name="combined_logits")(parts)
    return keras.Model(model.input, logits, name="combined")


def shares_of(model: keras.Model) -> tuple[float, float]:
    """The weights of both logits in a model of `combine`; of a GRU alone 1 and 0."""
    found = {"logits": 1.0, "ngrams": 0.0}
    for layer in model.layers:
        if isinstance(layer, keras.layers.Rescaling):
            found[layer.input._keras_history.operation.name] = float(layer.scale)
    return found["logits"], found["ngrams"]
