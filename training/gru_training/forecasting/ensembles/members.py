"""Runs of one series that can be averaged, and the plan that they were trained by."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gru_training.config import to_dict
from gru_training.errors import RunDirectoryError
from gru_training.forecasting.combination.components import refitted
from gru_training.forecasting.combination.plan import Candidate, Plan, linear_data
from gru_training.forecasting.combination.refit import stored_plan
from gru_training.forecasting.data import prepare, read_series
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.stored import description


def plan_of(run: ForecastingRun) -> Plan:
    """The plan that a run was trained by, its simple forecasters fitted anew.

    The settings of a run leave nothing open, so that they do not lead to its plan by themselves:
    its networks may read less than the run.

    Raises:
        TrainingError: The run combines nothing, or its series cannot be read again.
    """
    combination = _combination(run)
    if run.given is not None:
        raise RunDirectoryError(
            f"{run.path}: expected a run whose series can be read again, got one that was trained "
            "in Python on data in memory; write them to a file and train with --data"
        )
    if run.config.continued is not None:
        raise RunDirectoryError(
            f"{run.path}: expected a run that was trained anew, got one that goes on from another"
        )
    data = prepare(read_series(run.config.data), run.config.data)
    scale = run.preprocessor()
    if to_dict(description(data)) != to_dict(run.series) or not (
        np.array_equal(data.preprocessor.mean, scale.mean)
        and np.array_equal(data.preprocessor.deviation, scale.deviation)
    ):
        raise RunDirectoryError(
            f"{run.path}: its series is not that of its settings; expected the file as it was when "
            "the run was trained"
        )
    plan = stored_plan(run.config, combination, data)
    rows = linear_data(data)
    return replace(
        plan,
        candidates=tuple(
            Candidate(refitted(each.forecaster, rows), each.validation_mse)
            for each in plan.candidates
        ),
        transforms=tuple(combination["transforms"].items()),
        criterion=str(combination.get("criterion", "")),
    )


def require_alike(runs: Sequence[ForecastingRun]) -> None:
    """Raise RunDirectoryError unless runs forecast the same steps of the same series alike."""
    first = runs[0]
    for run in runs:
        _combination(run)
        if "ensemble" in run.metrics:
            raise RunDirectoryError(
                f"{run.path}: expected a run that was trained, got an average; name the runs in it"
            )
        if run.config.model.loss == "quantile":
            raise RunDirectoryError(
                f"{run.path}: expected a run that forecasts a mean or a median, got --loss quantile"
            )
    for run in runs[1:]:
        expected, got = to_dict(first.series), to_dict(run.series)
        for name, value in expected.items():
            if got[name] != value:
                raise RunDirectoryError(
                    f"{run.path}: expected the {name.replace('_', ' ')} of {first.path}, "
                    f"{_short(value)}, got {_short(got[name])}"
                )
        one, other = first.test_errors(), run.test_errors()
        same = np.array_equal(one["times"], other["times"]) and one["truth"] == other["truth"]
        if not same or run.digest(["scaler.json"]) != first.digest(["scaler.json"]):
            raise RunDirectoryError(
                f"{run.path}: expected the series, its parts and its scale as in {first.path}, got "
                "others"
            )
        if to_dict(run.config.model) != to_dict(first.config.model) or run.levels != first.levels:
            raise RunDirectoryError(
                f"{run.path}: expected networks with the settings of {first.path}, got others"
            )
        for name in ("network_lookback", "training_lookback"):
            if _combination(run)[name] != _combination(first)[name]:
                raise RunDirectoryError(
                    f"{run.path}: expected networks that read {_combination(first)[name]} steps as "
                    f"those of {first.path}, got {_combination(run)[name]}"
                )


def _combination(run: ForecastingRun) -> dict[str, Any]:
    found = run.combination
    if found is None:
        raise RunDirectoryError(
            f"{run.path}: expected a run that combines networks with simple forecasters, got a "
            "network that stands alone"
        )
    return found


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else text[:79] + "…"
