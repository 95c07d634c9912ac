from dataclasses import replace

import keras
import numpy as np
import pytest

from gru_training.forecasting.config import ForecastingTrainingConfig
from gru_training.loop.optimizers import learning_rate_schedule


def test_learning_rates():
    settings = ForecastingTrainingConfig(epochs=7, learning_rate=0.1)
    decay = learning_rate_schedule(settings, 10)
    rates = [float(decay(step)) for step in (0, 39, 40, 49, 50, 69)]
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.08, 0.08, 0.064, 0.0512], rtol=1e-6)
    cosine = learning_rate_schedule(replace(settings, schedule="cosine"), 10)
    assert isinstance(cosine, keras.optimizers.schedules.CosineDecay)
    assert float(cosine(35)) == pytest.approx(0.05)
    assert float(cosine(70)) == pytest.approx(0.0, abs=1e-9)
    assert learning_rate_schedule(replace(settings, schedule="constant"), 10) == 0.1
