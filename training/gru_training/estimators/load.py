"""The estimator of any run directory."""

import os

from gru_training.errors import RunDirectoryError
from gru_training.estimators.forecaster import Forecaster
from gru_training.estimators.run_estimator import RunEstimator
from gru_training.estimators.text_classifier import TextClassifier
from gru_training.estimators.text_regressor import TextRegressor
from gru_training.runs.directory import RunDirectory


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
