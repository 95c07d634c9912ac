"""Pictures of a forecasting run, for people."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from statsmodels.tsa.stattools import acf

from gru_training.forecasting.baselines.simple import LAST_VALUE, BaselineResult
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.predictor import Predictor
from gru_training.forecasting.reports.future_picture import draw_many_columns, shown_columns
from gru_training.forecasting.reports.whole_test_picture import draw_test_part
from gru_training.forecasting.scores.conformal import MEDIAN, quantiles
from gru_training.forecasting.scores.evaluation import Evaluation
from gru_training.plots.picture import plain_label, save_figure

_TRUTH, _MODEL = "#333333", "#0b63b5"
_INTERVALS = (_MODEL, "#e08214", "#2c9c4a", "#8e44ad")
_FLOORS = ("#b0b0b0", "#e08214", "#2c9c4a", "#8e44ad")
_MOST_PANELS, _SHOWN_HISTORY, _MOST_LAGS, _MOST_BARS, _MOST_NAMES = 4, 2.0, 200, 30, 8


def draw_all(
    data: ForecastingData,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
    test: Evaluation,
    baselines: Sequence[BaselineResult],
    folder: Path,
) -> None:
    """Draw every picture of the report into a folder.

    Args:
        data: The series with its split.
        predict: The trained forecaster.
        offsets: (H, K, Q), of its quantiles.
        levels: The Q levels.
        test: What it achieves on the test part.
        baselines: What others achieve.
        folder: Where the PNG files go.
    """
    columns = shown_columns(test)
    draw_forecasts(data, predict, offsets, levels, columns, folder / "forecasts.png")
    draw_test_part(data, predict, offsets, levels, columns, folder / "test_part.png")
    draw_errors_by_horizon(test, baselines, folder / "errors_by_horizon.png")
    of_columns = folder / "errors_by_column.png"
    if len(data.shape.targets) > _MOST_BARS:
        draw_many_columns(test, baselines, of_columns)
    else:
        draw_errors_by_column(data, test, baselines, of_columns)
    draw_coverage(test, folder / "coverage.png")
    draw_residuals(data, test, folder / "residuals.png")


def draw_forecasts(
    data: ForecastingData,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
    columns: Sequence[int],
    path: Path,
) -> None:
    """Draw the last test windows in raw units, with both intervals and the measured values.

    Of several columns the last window of each of those given; of a single column its last
    four windows that do not overlap.
    """
    windows = data.windows("test")
    L, H, K = data.shape.lookback, data.shape.horizon, len(data.shape.targets)
    if K > 1:
        panels = [(len(windows) - 1, k) for k in columns]
    else:
        apart = range(len(windows) - 1, -1, -H)
        panels = [(row, 0) for row in sorted(apart[:_MOST_PANELS])]
    figure = Figure(figsize=(10, 2.4 * len(panels) + 0.6), dpi=120, layout="constrained")
    for axes, (row, k) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels,
                              strict=True):  # fmt: skip
        rows = np.array([row])
        bounds = quantiles(predict(windows.histories(rows)), offsets, levels)
        restored = data.preprocessor.restore(bounds, windows.effects_ahead(rows))
        bounds = restored.numpy()[0, :, k]
        origin = int(windows.origins[row])
        shown = min(L, round(_SHOWN_HISTORY * max(H, data.season)))
        column = data.shape.targets[k]
        past = slice(origin - shown, origin + H)
        axes.plot(data.series.times[past], data.series.values[past, column], color=_TRUTH,
                  linewidth=1, label="truth")  # fmt: skip
        times = data.series.times[origin : origin + H]
        for pair in range(len(levels) // 2):
            nominal = levels[-1 - pair] - levels[pair]
            axes.fill_between(times, bounds[:, pair], bounds[:, -1 - pair], color=_MODEL,
                              alpha=0.16 + 0.14 * pair, linewidth=0,
                              label=f"{nominal:.0%} interval")  # fmt: skip
        axes.plot(times, bounds[:, list(levels).index(MEDIAN)], color=_MODEL, linewidth=1.4,
                  label="forecast")  # fmt: skip
        axes.axvline(times[0], color=_TRUTH, linewidth=0.6, linestyle=":")
        axes.set_title(plain_label(data.target_columns[k]), loc="left", fontsize="medium")
        axes.margins(x=0.01)
        axes.grid(alpha=0.25)
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", ncols=4, loc="outside upper right")
    save_figure(figure, path)


def draw_errors_by_horizon(
    test: Evaluation, baselines: Sequence[BaselineResult], path: Path
) -> None:
    """Draw the squared error at each step ahead, beside the baselines."""
    figure = Figure(figsize=(8, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    curves = [(floor.name, floor.test, colour, 1.2) for floor, colour in _floors(baselines)]
    highest = 0.0
    for name, errors, colour, width in [*curves, ("GRU", test.errors, _MODEL, 2.2)]:
        squared, _ = errors.by_horizon()
        axes.plot(np.arange(1, len(squared) + 1), squared, color=colour, linewidth=width,
                  marker="." if len(squared) <= 30 else None, label=name)  # fmt: skip
        if name != LAST_VALUE:
            highest = max(highest, float(np.nanmax(squared)))
    axes.set_ylim(0, 1.15 * highest)  # repeating the last value may lie far above all others
    axes.set_xlabel("steps ahead")
    axes.set_ylabel("mean squared error, standardised")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def draw_errors_by_column(
    data: ForecastingData, test: Evaluation, baselines: Sequence[BaselineResult], path: Path
) -> None:
    """Draw the squared error of each column, beside the baselines."""
    names = [plain_label(name) for name in data.target_columns]
    bars = [(floor.name, floor.test, colour) for floor, colour in _floors(baselines)]
    bars.append(("GRU", test.errors, _MODEL))
    figure = Figure(figsize=(max(6.0, 1.1 * len(names) + 2), 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(bars)
    for number, (name, errors, colour) in enumerate(bars):
        squared, _ = errors.by_column()
        place = np.arange(len(names)) + (number - (len(bars) - 1) / 2) * width
        axes.bar(place, squared[: len(names)], width, color=colour, label=name)
    axes.set_xticks(range(len(names)), names, rotation=45 if len(names) > 8 else 0,
                    ha="right" if len(names) > 8 else "center")  # fmt: skip
    axes.set_ylabel("mean squared error, standardised")
    axes.grid(alpha=0.25, axis="y")
    axes.legend(fontsize="small")
    save_figure(figure, path)


def draw_coverage(test: Evaluation, path: Path) -> None:
    """Draw how often the truth lay inside each interval, by steps ahead."""
    figure = Figure(figsize=(8, 3.6), dpi=120, layout="constrained")
    axes = figure.subplots()
    lowest = 1.0
    for interval, colour in zip(test.intervals, itertools.cycle(_INTERVALS)):
        shares = interval.by_horizon()
        lowest = min(lowest, interval.nominal, float(np.nanmin(shares)))
        axes.plot(np.arange(1, len(shares) + 1), shares, color=colour,
                  marker="." if len(shares) <= 30 else None,
                  label=f"{interval.nominal:.0%} interval: {interval.coverage:.1%}")  # fmt: skip
        axes.axhline(interval.nominal, color=colour, linewidth=0.8, linestyle="--")
    axes.set_ylim(max(0.0, lowest - 0.08), 1.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("steps ahead")
    axes.set_ylabel("share inside")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def draw_residuals(data: ForecastingData, test: Evaluation, path: Path) -> None:
    """Draw the autocorrelation of the errors one step ahead, and their distribution."""
    figure = Figure(figsize=(10, 3.6), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    residuals = test.first_residuals
    lags = int(min(2 * data.season + 1, _MOST_LAGS, len(residuals) // 2))
    few = residuals.shape[1] <= _MOST_NAMES
    for k, name in enumerate(data.target_columns):
        values = residuals[:, k]
        if np.isfinite(values).sum() > 2 and np.nanstd(values) > 0:
            correlation = acf(values, nlags=lags, fft=False, missing="conservative")
            left.plot(range(1, len(correlation)), correlation[1:], linewidth=1,
                      label=plain_label(name) if few else None)  # fmt: skip
    seen = np.isfinite(residuals).sum(axis=0).max()
    for sign in (-1, 1):
        left.axhline(sign * 1.96 / seen**0.5, color=_TRUTH, linewidth=0.8, linestyle=":")
    left.axhline(0, color=_TRUTH, linewidth=0.6)
    left.set_xlabel("lag in steps")
    left.set_ylabel("autocorrelation")
    left.set_title("errors one step ahead", loc="left", fontsize="medium")
    if few:
        left.legend(fontsize="small")
    # In float64: in float32 nearly equal ones could not be cut into so many bins.
    seen_residuals = residuals[np.isfinite(residuals)].astype(np.float64)
    right.hist(seen_residuals, bins=60, color=_MODEL, alpha=0.8)
    right.set_xlabel("truth minus forecast, standardised")
    right.set_ylabel("windows times columns")
    for axes in (left, right):
        axes.grid(alpha=0.25)
    save_figure(figure, path)


def _floors(baselines: Sequence[BaselineResult]) -> list[tuple[BaselineResult, str]]:
    return list(zip(baselines, _FLOORS[: len(baselines)], strict=True))
