"""The pictures of a forecasting run."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from statsmodels.tsa.stattools import acf

from gru_serving.preprocessing.series import MEDIAN
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.evaluation import Evaluation
from gru_training.forecasting.intervals import quantiles
from gru_training.forecasting.known import KnownEffect
from gru_training.forecasting.linear import LAST_VALUE, SEASONAL_NAIVE
from gru_training.forecasting.preprocessor import Predictor
from gru_training.forecasting.simple import BaselineResult
from gru_training.forecasting.windows import Windows
from gru_training.plots import plain_label, save_figure

_TRUTH, _MODEL = "#333333", "#0b63b5"
_OTHERS = ("#e08214", "#2c9c4a", "#8e44ad")
_INTERVALS, _FLOORS = (_MODEL, *_OTHERS), ("#b0b0b0", *_OTHERS)
_MOST_POINTS = 1000
"""Greatest number of points of a line; longer parts are drawn as means."""


def draw_test_part(
    data: ForecastingData,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
    columns: Sequence[int],
    path: Path,
) -> None:
    """Draw consecutive forecasts over the test part, and the measured values.

    The left side shows them over time with the widest interval, the right side one against the
    other. Each step is forecast once, by windows that do not overlap except for the last.

    Args:
        data: The series with its split.
        predict: The trained forecaster.
        offsets: (H, K, Q), of its quantiles.
        levels: The Q levels.
        columns: Numbers of the targets to show, among the K.
        path: Path of the PNG file.
    """
    rows, bounds = one_after_another(data, predict, offsets, levels, columns)
    times = np.asarray(data.series.positions[rows])
    step = -(-len(times) // _MOST_POINTS)
    figure = Figure(figsize=(10, 2.2 * len(columns) + 0.6), dpi=120, layout="constrained")
    panels = figure.subplots(len(columns), 2, squeeze=False, width_ratios=(3.2, 1))
    for place, (k, (left, right)) in enumerate(zip(columns, panels, strict=True)):
        truth = data.series.values[rows, data.shape.targets[k]]
        of_column = np.where(np.isfinite(truth)[:, np.newaxis], bounds[:, place], np.nan)
        forecast = of_column[:, list(levels).index(MEDIAN)]
        shown = times[::step]
        low, high = _means(of_column[:, 0], step), _means(of_column[:, -1], step)
        nominal = levels[-1] - levels[0]
        left.fill_between(shown, low, high, color=_MODEL, alpha=0.18, linewidth=0,
                          label=f"{nominal:.0%} interval")  # fmt: skip
        left.plot(shown, _means(truth, step), color=_TRUTH, linewidth=0.9, label="measured")
        left.plot(shown, _means(forecast, step), color=_MODEL, linewidth=1.1, label="forecast")
        title = plain_label(data.target_columns[k])
        title += f", means of {step} steps" if step > 1 else ""
        left.set_title(title, loc="left", fontsize="medium")
        left.margins(x=0.01)
        _scatter(right, truth, forecast)
        for axes in (left, right):
            axes.grid(alpha=0.25)
    panels[-1, 1].set_xlabel("measured")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", ncols=3, loc="outside upper right")
    save_figure(figure, path)


def _scatter(axes: Axes, truth: np.ndarray, forecast: np.ndarray) -> None:
    """Draw measured against forecast values of every step; equal ones lie on the line."""
    axes.scatter(truth, forecast, s=5, color=_MODEL, alpha=0.45, linewidths=0, rasterized=True)
    both = np.concatenate([truth, forecast])
    if np.isfinite(both).any():
        ends = np.nanmin(both), np.nanmax(both)
        axes.plot(ends, ends, color=_TRUTH, linewidth=0.7)
    axes.set_ylabel("forecast")


def one_after_another(
    data: ForecastingData,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
    columns: Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers (N,) of the test part, and quantiles (N, columns, Q), in raw units."""
    windows = data.windows("test")
    chosen = _apart(windows)
    H, rows = windows.horizon, len(data.series)
    found = np.full((rows, len(columns), len(levels)), np.nan, np.float32)
    for some in windows.pieces(chosen):
        bounds = quantiles(predict(windows.histories(some)), offsets, levels)
        restored = data.preprocessor.restore(bounds, windows.effects_ahead(some)).numpy()
        for origin, answer in zip(windows.origins[some], restored, strict=True):
            ahead = found[origin : origin + H]
            new = np.isnan(ahead[:, 0, 0])
            ahead[new] = answer[new][:, list(columns)]
    first, last = int(windows.origins[0]), int(windows.origins[-1]) + H
    return np.arange(first, last), found[first:last]


def _apart(windows: Windows) -> np.ndarray:
    """Return the numbers of non-overlapping windows, and of the last one."""
    chosen = [0]
    for number, origin in enumerate(windows.origins):
        if origin >= windows.origins[chosen[-1]] + windows.horizon:
            chosen.append(number)
    return np.array(sorted({*chosen, len(windows) - 1}))


def _means(values: np.ndarray, step: int) -> np.ndarray:
    """Average groups of this many values, over the known ones."""
    means = pd.Series(values).groupby(np.arange(len(values)) // step).mean()
    return np.asarray(means)


_MOST_INPUTS, _POINTS = 6, 200


def draw_known_inputs(data: ForecastingData, path: Path) -> None:
    """Draw the effect of each known input on the first targets over its values in training.

    The other inputs are at their means, and the effect at the mean of all is zero. Targets are in
    their own units (or a power of them if that is learned); for targets on a logarithmic scale the
    factor is shown. For a panel it is the median over the series, with the range between the 10th
    and 90th percentile.

    Args:
        data: Series with known inputs.
        path: Path of the PNG file.
    """
    known = data.preprocessor.known
    assert known is not None
    count = min(len(known.knots), _MOST_INPUTS)
    rows = -(-count // 2) if count > 1 else 1
    figure = Figure(figsize=(10, 2.6 * rows + 0.4), dpi=120, layout="constrained")
    panels = figure.subplots(rows, min(2, count), squeeze=False).ravel()
    for place in range(count):
        (_draw_panel if known.by_series else _draw_targets)(panels[place], data, known, place)
        panels[place].grid(alpha=0.25)
    for unused in panels[count:]:
        unused.set_visible(False)
    save_figure(figure, path)


def _draw_targets(axes: Axes, data: ForecastingData, known: KnownEffect, place: int) -> None:
    scale, column = data.preprocessor, known.columns[place]
    targets = list(enumerate(data.shape.targets))[: 1 + len(_OTHERS)]
    train = data.series.values[: data.borders.train, column]
    values = np.linspace(np.nanmin(train), np.nanmax(train), _POINTS)
    inputs = np.zeros((_POINTS, len(known.columns)))
    inputs[:, place] = (values - scale.mean[column]) / scale.deviation[column]
    added = _added(known, inputs)
    for (k, target), colour in zip(targets, (_MODEL, *_OTHERS), strict=False):
        curve = added[:, k] * scale.deviation[target]
        curve = np.exp(curve) if scale.multiplies(target) else curve
        axes.plot(values, curve, color=colour, label=plain_label(data.target_columns[k]))
    axes.set_xlabel(plain_label(data.series.columns[column]))
    first = targets[0][1]
    own = "own units" if not scale.transformed[first] or scale.exponent == 1 else "of the power"
    axes.set_ylabel("factor" if scale.multiplies(first) else f"added, {own}")
    if len(targets) > 1 and not place:
        axes.legend(fontsize="small")


def _draw_panel(axes: Axes, data: ForecastingData, known: KnownEffect, place: int) -> None:
    scale, count = data.preprocessor, len(known.knots)
    columns, targets = list(known.columns[place::count]), list(data.shape.targets)
    train = data.series.values[: data.borders.train, columns]
    read = (train - scale.mean[columns]) / scale.deviation[columns]
    standardised = np.linspace(np.nanmin(read), np.nanmax(read), _POINTS)
    inputs = np.zeros((_POINTS, len(targets), count))
    inputs[..., place] = standardised[:, np.newaxis]
    added = _added(known, inputs.reshape(_POINTS, -1))  # (points, K)
    logarithmic = all(map(scale.multiplies, targets))
    if logarithmic:
        added = np.exp(added * scale.deviation[targets])
    mean, deviation = scale.mean[columns], scale.deviation[columns]
    alike = bool((mean == mean[0]).all())
    values = standardised * deviation[0] + mean[0]
    values = values if alike else values / mean[0]
    low, middle, high = np.quantile(added, (0.1, 0.5, 0.9), axis=1)
    axes.fill_between(values, low, high, color=_MODEL, alpha=0.2, linewidth=0)
    axes.plot(values, middle, color=_MODEL)
    names = *data.series.inputs, *data.series.calendar.columns
    name = plain_label(names[place])
    axes.set_xlabel(name if alike else f"{name}, over its mean in each series")
    axes.set_ylabel("factor" if logarithmic else "added, deviations of a series")


def _added(known: KnownEffect, inputs: np.ndarray) -> np.ndarray:
    """Compute the effects (points, K), relative to inputs at their means."""
    return np.asarray(known(inputs) - known(inputs[:1] * 0))


_MOST_FUTURE_PANELS, _SEASONS = 6, 4


def shown_columns(test: Evaluation) -> list[int]:
    """Choose all columns if they are few, otherwise the best, middling and worst two each."""
    squared, _ = test.errors.by_column()
    if len(squared) <= _MOST_FUTURE_PANELS:
        return list(range(len(squared)))
    order = [int(k) for k in np.argsort(squared) if np.isfinite(squared[k])]
    middle = len(order) // 2
    return list(dict.fromkeys([*order[:2], *order[middle - 1 : middle + 1], *order[-2:]]))


def draw_future(
    data: ForecastingData,
    times: pd.DatetimeIndex,
    bounds: np.ndarray,
    levels: Sequence[float],
    columns: Sequence[int],
    path: Path,
) -> None:
    """Draw the forecast of the steps after the series, with both intervals.

    Args:
        data: The series.
        times: (H,), of the forecast.
        bounds: (H, K, Q) in raw units.
        levels: The Q levels.
        columns: Numbers of the targets to show, among the K.
        path: Path of the PNG file.
    """
    shown = max(_SEASONS * data.season, 3 * data.shape.horizon)
    figure = Figure(figsize=(10, 1.9 * len(columns) + 0.8), dpi=120, layout="constrained")
    panels = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
    ahead = times.asi8 if data.series.numbered else times
    for axes, k in zip(panels, columns, strict=True):
        past = data.series.values[-shown:, data.shape.targets[k]]
        axes.plot(data.series.positions[-shown:], past, color=_TRUTH, linewidth=1, label="measured")
        _draw_bounds(axes, ahead, bounds[:, k], levels, 1.6, "." if len(times) <= 30 else None)
        axes.set_title(plain_label(data.target_columns[k]), loc="left", fontsize="medium")
        axes.margins(x=0.01)
        axes.grid(alpha=0.25)
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize="small", ncols=4,
                  loc="outside upper right")  # fmt: skip
    save_figure(figure, path)


def draw_many_columns(test: Evaluation, baselines: Sequence[BaselineResult], path: Path) -> None:
    """Draw the distribution of errors over columns that are too many for one bar each.

    The left side shows the squared error, the right side its ratio to the seasonal naive
    forecast's.
    """
    squared, _ = test.errors.by_column()
    naive = next(floor for floor in baselines if floor.name == SEASONAL_NAIVE)
    of_naive, _ = naive.test.by_column()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = squared / of_naive
    figure = Figure(figsize=(10, 3.6), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, values, label in (
        (left, squared, "mean squared error, standardised"),
        (right, ratio, "that over the seasonal naive forecast's"),
    ):
        seen = values[np.isfinite(values) & (values > 0)]
        ends = np.log10(seen.min()) - 1e-3, np.log10(seen.max()) + 1e-3
        axes.hist(seen, bins=np.logspace(*ends, 31).tolist(), color=_MODEL, alpha=0.8,
                  weights=np.full(len(seen), 1 / len(seen)))  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.grid(alpha=0.25)
    left.set_ylabel("share of the columns")
    right.axvline(1.0, color=_TRUTH, linewidth=0.8, linestyle=":")
    better = float((ratio[np.isfinite(ratio)] < 1).mean())
    right.set_title(f"below 1: {better:.0%} of the columns", loc="left", fontsize="medium")
    save_figure(figure, path)


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
        offsets: Offsets (H, K, Q) of the forecaster's quantiles.
        levels: The Q levels.
        test: Evaluation on the test part.
        baselines: Results of simple forecasters.
        folder: Folder of the PNG files.
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
    if data.preprocessor.known is not None:
        draw_known_inputs(data, folder / "known_inputs.png")


def draw_forecasts(
    data: ForecastingData,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
    columns: Sequence[int],
    path: Path,
) -> None:
    """Draw the last test windows in raw units, with both intervals and the measured values.

    With several columns it is the last window of each; with a single column its last four windows
    that do not overlap.
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
        axes.plot(data.series.positions[past], data.series.values[past, column], color=_TRUTH,
                  linewidth=1, label="truth")  # fmt: skip
        times = data.series.positions[origin : origin + H]
        _draw_bounds(axes, times, bounds, levels, 1.4)
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
    """Draw the share of true values inside each interval, by steps ahead."""
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
        values = residuals[:, k].astype(np.float64)
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
    if left.get_legend_handles_labels()[1]:
        left.legend(fontsize="small")
    # This uses float64, since float32 values that are nearly equal could not be divided into this
    # many bins.
    seen_residuals = residuals[np.isfinite(residuals)].astype(np.float64)
    right.hist(seen_residuals, bins=60, color=_MODEL, alpha=0.8)
    right.set_xlabel("truth minus forecast, standardised")
    right.set_ylabel("windows times columns")
    for axes in (left, right):
        axes.grid(alpha=0.25)
    save_figure(figure, path)


def _floors(baselines: Sequence[BaselineResult]) -> list[tuple[BaselineResult, str]]:
    return list(zip(baselines, _FLOORS[: len(baselines)], strict=True))


def _draw_bounds(
    axes: Axes,
    times: Any,
    bounds: np.ndarray,
    levels: Sequence[float],
    linewidth: float,
    marker: str | None = None,
) -> None:
    """Draw a forecast inside its intervals, from quantiles (H, Q)."""
    for pair in range(len(levels) // 2):
        nominal = levels[-1 - pair] - levels[pair]
        axes.fill_between(times, bounds[:, pair], bounds[:, -1 - pair], color=_MODEL,
                          alpha=0.16 + 0.14 * pair, linewidth=0,
                          label=f"{nominal:.0%} interval")  # fmt: skip
    middle = bounds[:, list(levels).index(MEDIAN)]
    axes.plot(times, middle, color=_MODEL, linewidth=linewidth, marker=marker, label="forecast")
