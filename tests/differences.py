"""Derivatives by central differences, which know nothing of how a function is computed."""

import numpy as np


def derivative(function, at, step=1e-4):
    """Jacobian of a function of an array by fourth-order central differences.

    Its first axes are those of the function's value, the others those of the array.
    """
    columns = []
    for index in np.ndindex(at.shape):
        total = 0.0
        for offset, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            moved = at.copy()
            moved[index] += offset * step
            total = total + weight * np.asarray(function(moved))
        columns.append(total / (12 * step))
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), *at.shape)
