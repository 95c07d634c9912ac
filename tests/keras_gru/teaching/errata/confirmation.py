"""What confirms an erratum: which one it is, derivatives by differences, a random GRU."""

import numpy as np


def confirms(*identifiers):
    """Say which errata a test confirms; test_every_erratum.py reads it off the source."""
    assert identifiers
    return lambda test: test


def derivative(function, at, step=1e-4):
    """Jacobian of a vector function of an array by fourth-order central differences."""
    columns = []
    for index in np.ndindex(at.shape):
        total = 0.0
        for offset, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            moved = at.copy()
            moved[index] += offset * step
            total = total + weight * np.asarray(function(moved))
        columns.append(total / (12 * step))
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), *at.shape)


def random_gru(rng, D=2, U=3):
    return [rng.normal(size=(D, 3 * U)), rng.normal(size=(U, 3 * U)), rng.normal(size=3 * U)]
