"""Random sequences with masks of every pattern."""

import numpy as np


def sequences_with_gaps(features=5):
    """Sequences (3, 7, features) and their mask (3, 7): right-padded, with gaps, and full."""
    x = np.random.default_rng(1).normal(size=(3, 7, features)).astype("float32")
    mask = np.ones((3, 7), bool)
    mask[0, 4:] = False
    mask[1, [0, 3, 6]] = False
    return x, mask
