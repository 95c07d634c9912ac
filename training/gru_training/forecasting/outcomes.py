"""The outcomes of a forecasting run on every test window, for comparisons with other runs.

`test_errors.npz` of a run holds, for N test windows:

===============  ==================================================================================
names            the model and the M - 1 baselines
squared          (M, N) sums of squared errors of each window, standardised
absolute         (M, N) likewise of absolute errors
scaled           (M, N) likewise of absolute errors over those of the seasonal naive forecast on
                 the training rows (Hyndman and Koehler, 2006, "Another look at measures of forecast
                 accuracy", International Journal of Forecasting 22): their mean is the MASE
count            (N,) values compared with
times            (N,) of the first step that is forecast
truth            digest of what is forecast
naive_error      (K,) what the scaled errors are divided by, standardised
===============  ==================================================================================
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gru_training.data.digest import data_digest
from gru_training.data.problems import first_names
from gru_training.errors import DataError, RunDirectoryError
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.evaluation import (
    ForecastErrors,
    evaluate_forecasts,
    measure,
    naive_scale,
)
from gru_training.forecasting.preprocessor import make_predictor
from gru_training.forecasting.run import ForecastingRun, require_alike
from gru_training.forecasting.series_check import series_problems
from gru_training.forecasting.sets import Borders, load_series
from gru_training.forecasting.simple import BaselineResult, naive_forecasters
from gru_training.outcomes import Answers, Outcomes, ratio_measure

_MODEL = "model"
_MEASURES = ("MSE", "MAE", "MASE")


def stored_errors(
    data: ForecastingData, model: ForecastErrors, baselines: Sequence[BaselineResult]
) -> dict[str, Any]:
    """Collect the content of `test_errors.npz`.

    Args:
        data: Series that the run was trained on.
        model: The errors of its test windows.
        baselines: Results on the same windows; one that skipped some is left out.
    """
    windows, naive_error = data.windows("test"), naive_scale(data.plain).absolute
    everyone = {_MODEL: model, **{floor.name: floor.test for floor in baselines}}
    named = {
        name: _sums(errors, np.ones(len(naive_error)), naive_error)
        for name, errors in everyone.items()
        if len(errors.windows.count) == len(windows)
    }
    begin, end = data.borders.part("test")
    truth = data.series.values[begin:end, list(data.shape.targets)]
    columns = (np.stack(each) for each in zip(*named.values(), strict=True))
    return {
        "names": np.array(list(named)),
        **dict(zip(("squared", "absolute", "scaled"), columns, strict=True)),
        "count": model.windows.count,
        "times": data.series.index[windows.origins].to_numpy(),
        "truth": np.array(data_digest([*data.target_columns, truth])),
        "naive_error": naive_error,
    }


def held_out_outcomes(run: ForecastingRun, like: ForecastingRun) -> Outcomes:
    """Return outcomes on the run's own test windows, from its stored errors; needs no model.

    Args:
        run: Run to measure.
        like: Run whose series, horizon and scale it must have.

    Raises:
        RunDirectoryError: The series, horizon or scale differ, or the run's files are damaged.
    """
    require_alike(run, like)
    if not np.allclose(_deviation(run), _deviation(like), rtol=1e-9):
        raise RunDirectoryError(
            f"{run.path}: expected the training rows of {like.path}, whose scale the errors have, "
            "got others; --data FILE with the series brings both to one scale"
        )
    stored = run.test_errors()
    answers = {
        str(name): _answers(sums, stored["count"])
        for name, *sums in zip(
            *(stored[key] for key in ("names", "squared", "absolute", "scaled")), strict=True
        )
    }
    return Outcomes(
        "held-out windows",
        np.array([f"{time} {stored['truth']}" for time in stored["times"]]),
        answers.pop(_MODEL),
        answers,
        overlap=run.series.horizon,
    )


def file_outcomes(run: ForecastingRun, path: Path, like: ForecastingRun) -> Outcomes:
    """Compute outcomes on the windows of a file after the rows with which the run was made.

    Args:
        run: Run to measure.
        path: A CSV file with the run's columns, in any order.
        like: Run whose horizon and targets it must have, and on whose scale the errors are.

    Raises:
        TrainingError: The runs differ in what they forecast, or the file cannot be used.
    """
    require_alike(run, like)
    data = _data_of(run, path)
    windows = data.windows("test")
    if not len(windows):
        raise DataError(
            f"{path}: expected at least {run.series.horizon} rows with values from "
            f"{pd.Timestamp(_test_begin(run))} on, the first time that {run.path} was neither "
            f"trained nor tuned on, and {run.series.lookback} rows to read before them; got "
            f"{len(data.series):,} rows from {data.series.index[0]} to {data.series.index[-1]}"
        )
    factor = _deviation(run) / _deviation(like)
    naive_error = like.test_errors()["naive_error"]
    predict = make_predictor(run.load_model(), data.preprocessor)
    parts = run.offsets, data.preprocessor, run.levels
    everyone = {_MODEL: evaluate_forecasts(predict, windows, *parts).errors}
    plain = data.plain
    for naive, lookback in naive_forecasters(plain):
        if windows.origins[0] >= lookback:
            further = replace(plain.windows("test"), lookback=lookback)
            everyone[naive.name] = measure(naive, further, plain.preprocessor)
    named = {
        name: _answers(_sums(errors, factor, naive_error), errors.windows.count)
        for name, errors in everyone.items()
    }
    times = data.series.index[windows.origins]
    return Outcomes(
        "windows",
        times.astype(str).to_numpy(),
        named.pop(_MODEL),
        named,
        run.series.horizon,
        data.series.notes,
    )


def _answers(sums: Sequence[np.ndarray], count: np.ndarray) -> Answers:
    """Make answers from the squared, absolute and scaled errors of each window."""
    return Answers(
        tuple(
            ratio_measure(name, of, count)
            for name, of in zip(_MEASURES, sums, strict=True)
            if np.isfinite(of).all()
        )
    )


def _sums(
    errors: ForecastErrors, factor: np.ndarray, naive_error: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Compute squared, absolute and scaled errors of each window, (N,) each.

    Args:
        errors: Errors of N windows and K columns.
        factor: (K,), to the scale wanted.
        naive_error: (K,), on that scale; where it is zero, scaled errors are infinite.
    """
    windows = errors.windows
    absolute = windows.absolute * factor
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = (absolute / naive_error).sum(axis=1)
    return (windows.squared * factor**2).sum(axis=1), absolute.sum(axis=1), scaled


def _deviation(run: ForecastingRun) -> np.ndarray:
    return run.preprocessor().plain.deviation[list(run.shape.targets)]


def _test_begin(run: ForecastingRun) -> Any:
    """Return the first time on which the run was neither trained nor tuned."""
    return run.test_errors()["times"][0]


def _data_of(run: ForecastingRun, path: Path) -> ForecastingData:
    """Read the series of a file with the run's columns, scale and look-back.

    The test part is free.
    """
    config = replace(run.config.data, data=path)
    problems = series_problems(config)
    series = load_series(config, problems)
    problems.remedies.clear()  # which are flags of a training
    problems.raise_errors()
    missing = [name for name in run.columns if name not in series.columns]
    if missing and not (series.panel and {*run.target_columns} & {*series.columns}):
        raise DataError(
            f"{path}: expected the columns of {run.path}, got none called {first_names(missing)}"
        )
    if series.frequency != run.frequency:
        raise DataError(
            f"{path}: expected a row every {run.frequency} as {run.path} reads them, got one every "
            f"{series.frequency}"
        )
    ended = [name for name in run.target_columns if name in missing]
    notes = (f"no rows of {first_names(ended)}",) if ended else ()
    series = replace(series.with_columns(run.columns), notes=notes)
    begin = int(series.index.searchsorted(_test_begin(run)))
    return ForecastingData(
        series,
        Borders(0, begin, len(series)),
        run.shape,
        run.series.season,
        run.preprocessor(),
    )
