"""Precision against recall, as a picture."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from sklearn.metrics import average_precision_score, precision_recall_curve

from gru_training.plots.picture import plain_label, save_figure

_MOST_CURVES = 8


def draw_precision_recall(
    members: np.ndarray, scores: np.ndarray, names: Sequence[str], path: Path
) -> None:
    """Draw a curve for each class or label; of many those with the lowest average precision.

    Args:
        members: (N, C) bool, which rows are of which class.
        scores: (N, C) probabilities.
        names: C names.
        path: The PNG file.
    """
    figure = Figure(figsize=(7.6, 4.6), dpi=120, layout="constrained")
    axes = figure.subplots()
    there = [k for k in range(len(names)) if members[:, k].any()]
    precision = {k: float(average_precision_score(members[:, k], scores[:, k])) for k in there}
    drawn = sorted(there, key=lambda k: (precision[k], k))[:_MOST_CURVES]
    if len(names) == 2 and len(drawn) == 2:
        drawn.sort()
    for k in drawn:
        heights, widths, _ = precision_recall_curve(members[:, k], scores[:, k])
        label = f"{plain_label(names[k])}: {precision[k]:.1%}"
        axes.step(widths, heights, where="post", linewidth=1.5, label=label)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), xlabel="recall", ylabel="precision")
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.25)
    hidden = len(there) - len(drawn)
    title = "average precision" + (f"\n(the lowest of {len(there)})" if hidden else "")
    axes.legend(fontsize="small", title=title, loc="center left", bbox_to_anchor=(1, 0.5))
    save_figure(figure, path)
