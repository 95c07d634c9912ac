"""The loading of any run directory as an estimator, and as a model of MLflow's `pyfunc` flavour."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gru_training.data.frames import as_frame, frame_like, texts_of
from gru_training.errors import RunDirectoryError
from gru_training.estimators.forecaster import Forecaster
from gru_training.estimators.run_estimator import RunEstimator
from gru_training.estimators.text import TextClassifier, TextRegressor
from gru_training.runs.directory import RunDirectory
from gru_training.scoring.engine import score_table

if TYPE_CHECKING:
    import pandas as pd


def load_run(path: str | os.PathLike[str]) -> TextClassifier | TextRegressor | Forecaster:
    """Load a run directory as the estimator for its task and target.

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


class RunModel:
    """A run with the interface of an MLflow model.

    Args:
        answer: Function from a table to the table of its answers.
    """

    def __init__(self, answer: "Callable[[Any], pd.DataFrame]"):
        self._answer = answer

    def predict(self, data: Any, params: Any = None) -> "pd.DataFrame":  # noqa: ARG002
        """Answer texts, or forecast the steps after a series.

        Args:
            data: A table with the columns of the training, or texts alone.
            params: Parameters of MLflow, of which none is known.
        """
        return self._answer(data)


def _load_pyfunc(data_path: str) -> RunModel:
    """Load a model for MLflow, which calls this function."""
    if RunDirectory.open(data_path).task == "language":
        return RunModel(_likelihoods(Path(data_path)))
    found = load_run(data_path)
    if isinstance(found, Forecaster):
        return RunModel(lambda data: found.predict(data=data))
    return RunModel(found.predict_frame)


def _likelihoods(path: Path) -> "Callable[[Any], pd.DataFrame]":
    """Make a function that scores texts, with the columns of `gru-train predict`."""
    from gru_training.language.task import TASK

    run = TASK.open_run(path)
    column, scorer = run.column_of("text"), TASK.scorer(run)

    def answer(data: Any) -> "pd.DataFrame":
        frame = as_frame(data)
        there = frame is not None and column in frame.columns
        texts = texts_of(data, column if there else None)
        found = score_table(scorer, pa.table({"text": pa.array(texts, pa.string())}))
        columns = {name: found.column(name).to_numpy() for name in found.column_names}
        table: pd.DataFrame = frame_like(data, columns)
        return table

    return answer
