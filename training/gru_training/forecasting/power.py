"""A power of values that are never negative, under which they vary alike at every level.

Box and Cox (1964), "An Analysis of Transformations", of one more than a value:
((1 + x)^λ - 1) / λ with an exponent λ from 0 to 1; for 0 that is log(1 + x), and for 1 the value
itself, of which only the way back differs: nothing below zero comes out.
"""

from typing import Any

import numpy as np
import tensorflow as tf
from scipy.optimize import minimize_scalar
from scipy.special import boxcox1p, inv_boxcox1p

LARGEST_LOGARITHM = 80.0
"""Of which float32 still has the exponential."""
_LEAST, _MOST = 0.1, 0.9
"""Exponents nearer to 0 are the logarithm's, nearer to 1 that of no transform."""


def powers(values: np.ndarray, exponent: float) -> np.ndarray:
    """The transform; negative values count as zero, NaN stays."""
    return np.asarray(boxcox1p(np.maximum(values, 0), exponent))


def roots(values: np.ndarray, exponent: float) -> np.ndarray:
    """The inverse of `powers`, at least zero."""
    largest = boxcox1p(np.expm1(LARGEST_LOGARITHM), exponent)
    return np.asarray(inv_boxcox1p(np.clip(values, 0, largest), exponent))


def graph_powers(values: tf.Tensor, exponent: float) -> tf.Tensor:
    """`powers` as graph operations."""
    positive = tf.maximum(values, 0.0)
    if exponent == 1:
        return positive
    logarithms = tf.math.log1p(positive)
    return tf.math.expm1(exponent * logarithms) / exponent if exponent else logarithms


def graph_roots(values: tf.Tensor, exponent: float) -> tf.Tensor:
    """`roots` as graph operations."""
    if exponent == 1:
        return tf.maximum(values, 0.0)
    logarithms = values
    if exponent:
        logarithms = tf.math.log1p(exponent * tf.maximum(values, 0.0)) / exponent
    return tf.maximum(tf.math.expm1(tf.minimum(logarithms, LARGEST_LOGARITHM)), 0.0)


def steady_exponent(values: np.ndarray, season: int) -> float:
    """The exponent under which seasons of a series vary alike, whatever their level.

    Guerrero (1993), "Time-series analysis supported by power transformations", Journal of
    Forecasting 12: that with the least coefficient of variation of deviation / level^(1 - λ) over
    the seasons; here for all columns together.

    Args:
        values: (rows, K), at least zero, NaN where a value is missing.
        season: Steps; a single one counts as two.
    """
    steps = max(2, season)
    count = len(values) // steps
    if count < 2:
        return (_LEAST + _MOST) / 2
    whole = values[len(values) - count * steps :].reshape(count, steps, -1)
    full = np.isfinite(whole).all(axis=1)
    levels, deviations = 1 + whole.mean(axis=1), whole.std(axis=1, ddof=1)

    def unsteadiness(exponent: float) -> float:
        total = 0.0
        for level, deviation, known in zip(levels.T, deviations.T, full.T, strict=True):
            ratios = deviation[known] / level[known] ** (1 - exponent)
            if len(ratios) > 1 and ratios.mean() > 0:
                total += ratios.std(ddof=1) / ratios.mean()
        return total

    found: Any = minimize_scalar(unsteadiness, bounds=(_LEAST, _MOST), method="bounded")
    return round(float(found.x), 2)
