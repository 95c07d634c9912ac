"""The files of a forecaster's run: model, scale, intervals, figures, pictures, report."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import keras
import numpy as np
from rich.console import Console

from gru_training.config import to_dict
from gru_training.forecasting.baselines.simple import SEASONAL_NAIVE, Baselines
from gru_training.forecasting.combination.plan import Plan
from gru_training.forecasting.combination.share import Combination, Share, as_record
from gru_training.forecasting.config import ForecastingConfig
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.future.forecast import future_times, inputs_ahead
from gru_training.forecasting.future.recent import FILE as LAST_WINDOW
from gru_training.forecasting.future.recent import Recent, last_window
from gru_training.forecasting.predictor import Predictor, make_predictor
from gru_training.forecasting.reports import pictures as forecast_pictures
from gru_training.forecasting.reports import report as forecasting_report
from gru_training.forecasting.reports.future_picture import draw_future, shown_columns
from gru_training.forecasting.reports.known_picture import draw_known_inputs
from gru_training.forecasting.run import DELIVERED
from gru_training.forecasting.scores.conformal import quantiles
from gru_training.forecasting.scores.evaluation import calibrate, evaluate_forecasts
from gru_training.forecasting.scores.forecast_errors import ForecastErrors
from gru_training.forecasting.scores.metrics import (
    data_summary,
    error_details,
    error_summary,
    interval_summary,
    quantile_summary,
)
from gru_training.forecasting.scores.outcomes import stored_errors
from gru_training.forecasting.stored import description, known_inputs, stored_windows
from gru_training.plots import learning_curves
from gru_training.runs.writer import TrainingRunWriter, run_summary


@dataclass(frozen=True)
class Forecaster:
    """A forecaster and what it was made of."""

    plan: Plan
    data: ForecastingData
    config: ForecastingConfig
    trained: Combination
    delivered: keras.Model | None
    """For forecasts and exports, trained on all rows; None: the one that is measured."""
    baselines: Baselines


def write_run_files(
    writer: TrainingRunWriter, made: Forecaster, started: float, console: Console
) -> None:
    """Calibrate and test a forecaster, and write the files of its run.

    Args:
        writer: Of the run.
        made: The forecaster.
        started: When the run began, on the clock of `time.perf_counter`.
        console: Where to show progress.
    """
    plan, data, config, baselines = made.plan, made.data, made.config, made.baselines
    trained, delivered = made.trained, made.delivered
    model, result, shares = trained.model, trained.result, trained.shares
    levels = config.model.levels
    with console.status("testing ..."):
        predict = make_predictor(model, data.preprocessor)
        offsets = calibrate(predict, data.windows("validation"), data.series.panel, levels)
        validation, test = (
            evaluate_forecasts(predict, data.windows(part), offsets, data.preprocessor, levels)
            for part in ("validation", "test")
        )
    metrics: dict[str, Any] = {
        "task": "forecasting",
        "data": data_summary(data),
        "model": {
            "name": _model_name(config, shares),
            "parameters": model.count_params(),
            "validation": error_summary(validation.errors),
            "test": {**error_summary(test.errors), **error_details(test.errors, data.plain)},
        },
        "combination": as_record(plan, trained) if shares else None,
        "refit": None
        if delivered is None
        else {"rows": len(data.series), "epochs": result.best_epoch},
        "known_inputs": known_inputs(data),
        "intervals": interval_summary(test, data.plain),
        "quantiles": quantile_summary(test, levels, data.plain),
        "baselines": {
            floor.name: {
                "detail": floor.detail,
                "validation": error_summary(floor.validation),
                "test": {**error_summary(floor.test), **error_details(floor.test, data.plain)},
            }
            for floor in baselines.results
        },
        "ridge_by_lookback": {
            str(lookback): {"validation": {"mse": errors[0]}, "test": {"mse": errors[1]}}
            for lookback, errors in baselines.ridge_by_lookback.items()
        },
        "beats_seasonal_naive": beats_seasonal_naive(
            validation.errors, baselines, config.model.measure
        ),
        "measure": config.model.measure,
        **run_summary(result, config.training.seed, started),
    }
    if plan.warm_start is not None:
        metrics["warm_start"] = plan.warm_start
    writer.write_json("series.json", to_dict(description(data)))
    if shares:
        writer.write_json("combination.json", as_record(plan, trained))
    data.preprocessor.save(writer.path / "scaler.json")
    kept = last_window(data)
    np.savez(
        writer.path / LAST_WINDOW,
        times=kept.times.asi8,
        values=kept.values,
        future=kept.future,
    )
    np.savez(writer.path / "calibration.npz", levels=np.array(levels), offsets=offsets)
    np.savez_compressed(
        writer.path / "test_windows.npz", **stored_windows(data, predict, offsets, levels)
    )
    np.savez_compressed(
        writer.path / "test_errors.npz", **stored_errors(data, test.errors, baselines.results)
    )
    writer.write_model(model, result)
    if delivered is not None:
        delivered.save(writer.path / DELIVERED)
    writer.write_json("metrics.json", metrics)

    def report() -> None:
        folder = writer.path
        learning_curves.draw_curves(
            result.epochs, result.best_epoch, ("loss", "mse"), folder / "curves.png"
        )
        forecast_pictures.draw_all(data, predict, offsets, levels, test, baselines.results, folder)
        if data.preprocessor.known is not None:
            draw_known_inputs(data, folder / "known_inputs.png")
        ahead = predict if delivered is None else make_predictor(delivered, data.preprocessor)
        draw_future(
            data,
            future_times(kept.times[-1], data.series.frequency, data.shape.horizon),
            _future(data, kept, ahead, offsets, levels),
            levels,
            shown_columns(test),
            folder / "future.png",
        )
        writer.write_text("report.md", forecasting_report.write_markdown(metrics))

    writer.report(report)


def _model_name(config: ForecastingConfig, shares: Collection[Share]) -> str:
    if shares:
        return "combination"
    return "GRU with linear skip" if config.model.linear_skip else "GRU"


def beats_seasonal_naive(
    validation: ForecastErrors, baselines: Baselines, measure: Literal["mse", "mae"]
) -> bool:
    """Whether the model's error on the validation part, by this measure, is the lower one."""
    naive = next(floor for floor in baselines.results if floor.name == SEASONAL_NAIVE)
    return bool(getattr(validation, measure) < getattr(naive.validation, measure))


def _future(
    data: ForecastingData,
    recent: Recent,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
) -> np.ndarray:
    """(H, K, Q): the quantiles of the steps after the series, in raw units.

    Where known inputs are not known of all of them, NaN after the last one.
    """
    history = recent.values[np.newaxis]
    series, columns = data.series, data.preprocessor.future_columns
    names = [series.columns[column] for column in columns]
    parts = recent, names, series.calendar, series.frequency
    known, future = inputs_ahead(*parts, data.shape.horizon)
    effects = data.preprocessor.effects(history, future[np.newaxis])
    served = quantiles(predict(history), offsets, levels)
    bounds = data.preprocessor.restore(served, effects)[0].numpy()
    if effects is not None:
        bounds[known:] = np.nan
    return np.asarray(bounds)
