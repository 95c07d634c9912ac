"""A run directory as a model of MLflow's `pyfunc` flavour, whose loader this module is."""

from typing import TYPE_CHECKING, Any

from training.estimators.forecaster import Forecaster
from training.estimators.text_estimator import TextEstimator
from training.runs.directory import RunDirectory

if TYPE_CHECKING:
    import pandas as pd


class TextModel:
    """Answers texts with the columns of `gru-train predict`.

    Args:
        path: Of the run.
    """

    def __init__(self, path: str):
        self._estimator = TextEstimator.load(path)

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Answer texts.

        Args:
            data: A table with a column of texts, or texts alone.
            params: None are known.
        """
        table: pd.DataFrame = self._estimator.predict(data)
        return table


class SeriesModel:
    """Forecasts what comes after a table.

    Args:
        path: Of the run.
    """

    def __init__(self, path: str):
        self._estimator = Forecaster.load(path)

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Forecast all steps that the model was trained for.

        Args:
            data: A table with times and the columns of the training, as of `Forecaster.predict`.
            params: None are known.
        """
        return self._estimator.predict(data=data)


def _load_pyfunc(data_path: str) -> TextModel | SeriesModel:
    """What MLflow calls to load a model."""
    task = RunDirectory.open(data_path).task
    return SeriesModel(data_path) if task == "forecasting" else TextModel(data_path)
