"""Models that networks begin with or learn from, as a plan knows them."""

from typing import Protocol

import keras

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.windows import Learned, Windows


class Teaching(Protocol):
    """A model that networks also learn from; `gru_training.forecasting.ensembles.teacher`."""

    def teach(self, windows: Windows, data: ForecastingData) -> Windows:
        """The training windows of these data, with what it forecasts."""

    def of_all_rows(self) -> "Teaching":
        """The same, trained on all rows."""


class Beginning(Protocol):
    """A model that networks go on from; `gru_training.forecasting.continuing.start`."""

    @property
    def model(self) -> keras.Model:
        """Which holds those networks."""

    def learned(self, windows: Windows) -> Learned:
        """Those of the training windows that it has learned from, and how many are read again."""

    def of_all_rows(self) -> "Beginning":
        """The same, trained on all rows that there were."""
