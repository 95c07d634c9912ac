"""A run directory as a model of MLflow's `pyfunc` flavour, whose loader this module is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gru_training.data.frames import as_frame, frame_like, texts_of
from gru_training.estimators.forecaster import Forecaster
from gru_training.estimators.load import load_run
from gru_training.estimators.text_estimator import TextEstimator
from gru_training.runs.directory import RunDirectory
from gru_training.scoring.engine import score_table
from gru_training.task import find_task

if TYPE_CHECKING:
    import pandas as pd


class TextModel:
    """Answers texts with the columns of `gru-train predict`.

    Args:
        path: Of the run.
    """

    def __init__(self, path: str):
        found = load_run(path)
        assert isinstance(found, TextEstimator)
        self._estimator = found

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Answer texts.

        Args:
            data: A table with a column of texts, or texts alone.
            params: None are known.
        """
        table: pd.DataFrame = self._estimator.predict_frame(data)
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


class LikelihoodModel:
    """Says how likely texts are, with the columns of `gru-train predict`.

    Args:
        path: Of the run of a language model.
    """

    def __init__(self, path: str):
        task = find_task("language")
        run = task.open_run(Path(path))
        self._column = run.config.data.text_column
        self._scorer = task.scorer(run)

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Score texts.

        Args:
            data: A table with a column of texts, or texts alone.
            params: None are known.
        """
        frame = as_frame(data)
        there = frame is not None and self._column in frame.columns
        texts = texts_of(data, self._column if there else None)
        found = score_table(self._scorer, pa.table({"text": pa.array(texts, pa.string())}))
        columns = {name: found.column(name).to_numpy() for name in found.column_names}
        table: pd.DataFrame = frame_like(data, columns)
        return table


def _load_pyfunc(data_path: str) -> TextModel | SeriesModel | LikelihoodModel:
    """What MLflow calls to load a model."""
    models: dict[str, type[TextModel | SeriesModel | LikelihoodModel]] = {
        "forecasting": SeriesModel,
        "language": LikelihoodModel,
    }
    return models.get(RunDirectory.open(data_path).task, TextModel)(data_path)
