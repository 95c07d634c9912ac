"""What a distilled forecaster learns from."""

from dataclasses import dataclass, replace

import keras
import numpy as np

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.predictor import make_predictor
from gru_training.forecasting.scores.forecast_errors import CHUNK
from gru_training.forecasting.windows import Windows


@dataclass(frozen=True)
class Teacher:
    """An average of runs.

    With the squared error, to learn a mean of truth and forecast is to learn both, each with its
    share; other losses are drawn towards the forecast.
    """

    model: keras.Model
    """From standardised windows (B, L, C) to (B, H, K, 1)."""
    delivered: keras.Model
    """The same, trained on all rows: the teacher of what is trained on all rows."""

    def teach(self, windows: Windows, data: ForecastingData) -> Windows:
        """The windows with the forecasts, of those that begin late enough for the teacher.

        Args:
            windows: To learn from.
            data: Of which they are.
        """
        lookback = int(self.model.input_shape[1])
        predict = make_predictor(self.model, data.preprocessor)
        K = len(data.shape.targets)
        forecasts = np.full((len(windows), windows.horizon, K), np.nan, np.float32)
        rows = np.flatnonzero(windows.origins >= lookback)
        read = replace(windows, lookback=lookback)
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            forecasts[chunk] = predict(read.histories(chunk))[..., 0]
        return replace(windows, taught=forecasts)

    def of_all_rows(self) -> "Teacher":
        """The teacher of what is trained on all rows."""
        return replace(self, model=self.delivered)
