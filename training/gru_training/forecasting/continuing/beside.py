"""The run that a forecaster went on from beside it, on old and new windows."""

from dataclasses import replace
from typing import Any

import numpy as np

from gru_training.compare.diebold_mariano import diebold_mariano
from gru_training.continuing.beside import checked
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.continuing.start import Start
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.predictor import make_predictor
from gru_training.forecasting.run import ForecastingRun
from gru_training.forecasting.scores.evaluation import Evaluation
from gru_training.forecasting.scores.forecast_errors import ForecastErrors
from gru_training.forecasting.scores.outcomes import errors_of_run

_MEASURES = {"mse": ("squared", 2), "mae": ("absolute", 1)}
"""What is summed over the steps of a window, and the power of the scale in it."""


def beside_the_old(
    start: Start,
    config: ForecastingConfig,
    data: ForecastingData,
    validation: Evaluation,
    test: Evaluation,
) -> dict[str, Any]:
    """What `gru_training.continuing.beside` tells of.

    Both models are compared on windows that neither was trained on: those of the validation and
    the test part as they are now. Old windows forecast no row that the old run had not.

    Args:
        start: What the training began with.
        config: Every setting.
        data: Old and new rows.
        validation: The new model on the validation windows.
        test: Likewise on the test windows.
    """
    assert config.continued is not None
    measure = config.model.measure
    run, of_run = start.run, _read_by(start.run, data)
    predict = make_predictor(start.model, of_run.preprocessor)
    K, horizon = len(run.target_columns), data.shape.horizon
    scale = of_run.preprocessor.target_scale[1] / data.preprocessor.target_scale[1][:K]
    sums, old, count = {}, {}, {}
    for part, evaluation in (("validation", validation), ("test", test)):
        origins = data.windows(part).origins
        windows = replace(of_run.windows(part), origins=origins)
        count[part] = np.isfinite(windows.futures()).sum(axis=(1, 2))
        old[part] = origins + horizon <= start.rows
        before = errors_of_run(run, predict, of_run, windows)
        sums[part] = (
            _by_window(before, measure, scale),
            _by_window(evaluation.errors, measure, np.ones(K)),
        )

    def both(part: str, chosen: np.ndarray) -> dict[str, Any]:
        values = count[part][chosen].sum()
        before, after = (float(of[chosen].sum() / values) if values else None for of in sums[part])
        return {"rows": int(chosen.sum()), "before": before, "after": after}

    check, chosen = None, old["validation"] & (count["validation"] > 0)
    if chosen.any():
        before, after = (of[chosen] / count["validation"][chosen] for of in sums["validation"])
        found = diebold_mariano(after - before, horizon)
        check = checked(
            **both("validation", chosen),
            p_value=None if found is None else found.p_value,
            higher_is_better=False,
        )
    learned = start.learned(data.windows("train"))
    return {
        "run": str(config.continued.from_run),
        "new_data": str(config.continued.new_data),
        "only_new": False,
        "replay": learned.windows.share,
        "grown": {
            "rows": len(data.series) - start.rows,
            "series": list(data.target_columns[K:]),
        },
        "measure": {"mse": "mean squared error", "mae": "mean absolute error"}[measure],
        "style": ".4f",
        "rows": "windows",
        "parts": {
            "old test windows": both("test", old["test"]),
            "new test windows": both("test", ~old["test"]),
            "all test windows": both("test", np.ones(len(old["test"]), bool)),
        },
        "check": check,
    }


def _read_by(run: ForecastingRun, data: ForecastingData) -> ForecastingData:
    """The rows as the old run reads them: with its scale, without series that it does not know."""
    known = len(run.columns)
    series = replace(data.series, columns=run.columns, values=data.series.values[:, :known])
    return ForecastingData(series, data.borders, run.shape, data.season, run.preprocessor())


def _by_window(errors: ForecastErrors, measure: str, factor: np.ndarray) -> np.ndarray:
    """(N,) sums over steps and the first columns, times the factor (K,) of their scale."""
    name, power = _MEASURES[measure]
    of = np.asarray(getattr(errors.windows, name), np.float64)[:, : len(factor)]
    return np.asarray((of * factor**power).sum(axis=1))
