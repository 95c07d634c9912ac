"""The estimator of any run directory, and a run as a model of MLflow's `pyfunc` flavour."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gru_training.data.frames import as_frame, frame_like, texts_of
from gru_training.errors import RunDirectoryError
from gru_training.estimators.forecaster import Forecaster
from gru_training.estimators.run_estimator import RunEstimator
from gru_training.estimators.text import TextClassifier, TextEstimator, TextRegressor
from gru_training.runs.directory import RunDirectory
from gru_training.scoring.engine import score_table

if TYPE_CHECKING:
    import pandas as pd


def load_run(path: str | os.PathLike[str]) -> TextClassifier | TextRegressor | Forecaster:
    """Load a run directory as the estimator that its task and target call for.

    Args:
        path: Run directory of `gru-train`, of an estimator, or of `save`.

    Returns:
        A fitted `TextClassifier`, `TextRegressor` or `Forecaster`.

    Raises:
        RunDirectoryError: There is no complete run, or it is of a language model, for which there
            is no estimator.
    """
    run = RunDirectory.open(path)
    if run.task == "language":
        raise RunDirectoryError(
            f"{path} is a run of a language model, for which there is no estimator; score texts "
            f"with gru-train predict {path} --data texts.csv --output scores.csv"
        )
    kinds: dict[str, type[RunEstimator]] = {
        "sentiment": TextRegressor if (run.path / "scale.json").is_file() else TextClassifier,
        "forecasting": Forecaster,
    }
    if run.task not in kinds:
        raise RunDirectoryError(
            f"{path}: expected a run of the tasks {', '.join(kinds)}, got one of {run.task!r}"
        )
    found = kinds[run.task].load(path)
    assert isinstance(found, TextClassifier | TextRegressor | Forecaster)
    return found


class TextModel:
    """A model that answers texts with the columns of `gru-train predict`.

    Args:
        path: Run directory.
    """

    def __init__(self, path: str):
        found = load_run(path)
        assert isinstance(found, TextEstimator)
        self._estimator = found

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Answer texts.

        Args:
            data: A table with a column of texts, or texts alone.
            params: Parameters of MLflow, of which none is known.
        """
        table: pd.DataFrame = self._estimator.predict_frame(data)
        return table


class SeriesModel:
    """A model that forecasts the steps after a table.

    Args:
        path: Run directory.
    """

    def __init__(self, path: str):
        self._estimator = Forecaster.load(path)

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Forecast all steps that the model was trained for.

        Args:
            data: Table with times and the columns of the training, as for `Forecaster.predict`.
            params: Parameters of MLflow, of which none is known.
        """
        return self._estimator.predict(data=data)


class LikelihoodModel:
    """A model that says how likely texts are, with the columns of `gru-train predict`.

    Args:
        path: Run directory of a language model.
    """

    def __init__(self, path: str):
        from gru_training.language.task import TASK

        run = TASK.open_run(Path(path))
        self._column = run.config.data.text_column
        self._scorer = TASK.scorer(run)

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Score texts.

        Args:
            data: A table with a column of texts, or texts alone.
            params: Parameters of MLflow, of which none is known.
        """
        frame = as_frame(data)
        there = frame is not None and self._column in frame.columns
        texts = texts_of(data, self._column if there else None)
        found = score_table(self._scorer, pa.table({"text": pa.array(texts, pa.string())}))
        columns = {name: found.column(name).to_numpy() for name in found.column_names}
        table: pd.DataFrame = frame_like(data, columns)
        return table


def _load_pyfunc(data_path: str) -> TextModel | SeriesModel | LikelihoodModel:
    """Load a model for MLflow, which calls this function."""
    models: dict[str, type[TextModel | SeriesModel | LikelihoodModel]] = {
        "forecasting": SeriesModel,
        "language": LikelihoodModel,
    }
    return models.get(RunDirectory.open(data_path).task, TextModel)(data_path)
