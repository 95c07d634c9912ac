"""Pictures of what comes next, and of many series at once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from gru_training.forecasting.baselines.simple import SEASONAL_NAIVE, BaselineResult
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.scores.conformal import MEDIAN
from gru_training.forecasting.scores.evaluation import Evaluation
from gru_training.plots.picture import plain_label, save_figure

_TRUTH, _MODEL = "#333333", "#0b63b5"
_MOST_PANELS, _SEASONS = 6, 4


def shown_columns(test: Evaluation) -> list[int]:
    """All columns where they are few, else of the best, middling and worst two each."""
    squared, _ = test.errors.by_column()
    if len(squared) <= _MOST_PANELS:
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
        columns: Which of the K to show.
        path: Of the PNG file.
    """
    shown = max(_SEASONS * data.season, 3 * data.shape.horizon)
    figure = Figure(figsize=(10, 1.9 * len(columns) + 0.8), dpi=120, layout="constrained")
    panels = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
    for axes, k in zip(panels, columns, strict=True):
        past = data.series.values[-shown:, data.shape.targets[k]]
        axes.plot(data.series.times[-shown:], past, color=_TRUTH, linewidth=1, label="measured")
        for pair in range(len(levels) // 2):
            nominal = levels[-1 - pair] - levels[pair]
            axes.fill_between(times, bounds[:, k, pair], bounds[:, k, -1 - pair], color=_MODEL,
                              alpha=0.16 + 0.14 * pair, linewidth=0,
                              label=f"{nominal:.0%} interval")  # fmt: skip
        axes.plot(times, bounds[:, k, list(levels).index(MEDIAN)], color=_MODEL, linewidth=1.6,
                  marker="." if len(times) <= 30 else None, label="forecast")  # fmt: skip
        axes.set_title(plain_label(data.target_columns[k]), loc="left", fontsize="medium")
        axes.margins(x=0.01)
        axes.grid(alpha=0.25)
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize="small", ncols=4,
                  loc="outside upper right")  # fmt: skip
    save_figure(figure, path)


def draw_many_columns(test: Evaluation, baselines: Sequence[BaselineResult], path: Path) -> None:
    """Draw how errors are spread over columns that are too many for a bar each.

    On the left the squared error, on the right that over the seasonal naive forecast's.
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
