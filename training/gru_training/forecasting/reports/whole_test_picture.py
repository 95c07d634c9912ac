"""Measured against forecast over the whole test part, as a picture."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.predictor import Predictor
from gru_training.forecasting.scores.conformal import MEDIAN, quantiles
from gru_training.forecasting.windows import Windows
from gru_training.plots.picture import plain_label, save_figure

_TRUTH, _MODEL = "#333333", "#0b63b5"
_MOST_POINTS = 1000
"""Of a line; of longer parts means are drawn."""
_CHUNK = 64


def draw_test_part(
    data: ForecastingData,
    predict: Predictor,
    offsets: np.ndarray,
    levels: Sequence[float],
    columns: Sequence[int],
    path: Path,
) -> None:
    """Draw forecasts that follow each other over the test part, and the measured values.

    On the left over time, with the widest interval, on the right one against the other. Each step
    is forecast once, by windows that do not overlap but for the last.

    Args:
        data: The series with its split.
        predict: The trained forecaster.
        offsets: (H, K, Q), of its quantiles.
        levels: The Q levels.
        columns: Which of the K to show.
        path: Of the PNG file.
    """
    rows, bounds = one_after_another(data, predict, offsets, levels, columns)
    times = np.asarray(data.series.times[rows])
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
    """One against the other, every step; on the line they agree."""
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
    """Row numbers (N,) of the test part, and the quantiles (N, columns, Q) there, in raw units."""
    windows = data.windows("test")
    chosen = _apart(windows)
    H, rows = windows.horizon, len(data.series)
    found = np.full((rows, len(columns), len(levels)), np.nan, np.float32)
    for begin in range(0, len(chosen), _CHUNK):
        some = chosen[begin : begin + _CHUNK]
        bounds = quantiles(predict(windows.histories(some)), offsets, levels)
        restored = data.preprocessor.restore(bounds, windows.effects_ahead(some)).numpy()
        for origin, answer in zip(windows.origins[some], restored, strict=True):
            ahead = found[origin : origin + H]
            new = np.isnan(ahead[:, 0, 0])
            ahead[new] = answer[new][:, list(columns)]
    first, last = int(windows.origins[0]), int(windows.origins[-1]) + H
    return np.arange(first, last), found[first:last]


def _apart(windows: Windows) -> np.ndarray:
    """Numbers of windows that do not overlap, and of the last one."""
    chosen = [0]
    for number, origin in enumerate(windows.origins):
        if origin >= windows.origins[chosen[-1]] + windows.horizon:
            chosen.append(number)
    return np.array(sorted({*chosen, len(windows) - 1}))


def _means(values: np.ndarray, step: int) -> np.ndarray:
    """Of so many values at a time, over those that are there."""
    if step == 1:
        return values
    padded = np.full(-(-len(values) // step) * step, np.nan)
    padded[: len(values)] = values
    groups = padded.reshape(-1, step)
    count = np.isfinite(groups).sum(axis=1)
    total = np.nansum(groups, axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
