"""Random numbers for the tests of the texts."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)
