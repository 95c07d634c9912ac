"""The pictures of a classification run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, precision_recall_curve

from gru_training.plots import plain_label, save_figure
from gru_training.sentiment.decision import reliability


def wilson_interval(share: float, rows: int) -> tuple[float, float]:
    """Compute the 95 % confidence interval of a share in `rows` independent rows (Wilson, 1927)."""
    found = binomtest(round(share * rows), rows).proportion_ci(0.95, "wilson")
    return min(share, float(found.low)), max(share, float(found.high))  # against rounding


_BEFORE, _AFTER, _GUIDE = "#9a9a9a", "#0b63b5", "#333333"


def draw_confusion_matrix(counts: np.ndarray, classes: Sequence[str], path: Path) -> None:
    """Draw how often each class was mistaken for each, coloured by share of the row.

    Args:
        counts: Number of rows by label and prediction, (C, C).
        classes: C names.
        path: The PNG file.
    """
    size = float(np.clip(1.2 + 0.75 * len(classes), 3.6, 16))
    figure = Figure(figsize=(size + 1, size), dpi=120, layout="constrained")
    axes = figure.subplots()
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [plain_label(name) for name in classes]
    axes.set_xticks(range(len(names)), names, rotation=45 if len(names) > 3 else 0,
                    ha="right" if len(names) > 3 else "center")  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("label")
    if len(names) <= 20:
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count:,}\n{shares[row, column]:.0%}", ha="center",
                      va="center", color=colour, fontsize="small")  # fmt: skip
    figure.colorbar(image, label="share of the label's rows")
    save_figure(figure, path)


def draw_calibration(
    labels: np.ndarray, logits: np.ndarray, temperature: float, path: Path
) -> None:
    """Draw confidence against accuracy, before and after temperature scaling.

    The upper part has a point for each of several bins of equal numbers of rows, with its 95 %
    interval; on the diagonal, accuracy equals confidence. The lower part shows the number of rows
    by confidence.

    Args:
        labels: (N,) class numbers.
        logits: Logits (N, C), not yet divided.
        temperature: Divisor of the logits.
        path: The PNG file.
    """
    figure = Figure(figsize=(6, 6.4), dpi=120, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    edges = np.linspace(1 / logits.shape[1], 1, 26)
    left, bottom = 1.0, 1.0
    kinds = [(logits / temperature, _AFTER, "o-", f"temperature {temperature:.3g}")]
    if temperature != 1:
        kinds.insert(0, (logits, _BEFORE, "o--", "as trained"))
    for divided, colour, style, name in kinds:
        curve = reliability(labels, divided)
        low, high = np.transpose(
            [wilson_interval(*of) for of in zip(curve.accuracy, curve.rows, strict=True)]
        )
        errors = _error_bars(curve.accuracy, low, high)
        above.errorbar(
            curve.confidence, curve.accuracy, errors,
            fmt=style, color=colour, elinewidth=0.8, markersize=4,
            label=f"{name}: calibration error {curve.expected_error:.1%}",
        )  # fmt: skip
        confidence = softmax(divided, axis=1).max(axis=1)
        below.hist(confidence, edges, color=colour, histtype="step", linewidth=1.5)
        left, bottom = min(left, confidence.min()), min(bottom, low.min())
    left, bottom = max(0.0, left - 0.03), max(0.0, bottom - 0.03)
    above.plot((0, 1), (0, 1), ":", color=_GUIDE, linewidth=1, label="ideal")
    above.set(ylim=(bottom, 1.01), ylabel="share of right answers")
    below.set(xlim=(left, 1.01), xlabel="probability of the answer", ylabel="test rows")
    for axes in (above, below):
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.grid(alpha=0.25)
    above.yaxis.set_major_formatter(PercentFormatter(1))
    above.legend(fontsize="small", loc="upper left")
    save_figure(figure, path)


def _error_bars(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[list[float]]:
    """Return the lengths below and above as lists, which Matplotlib requires."""
    return [(middle - low).tolist(), (high - middle).tolist()]


_MOST_CURVES = 8


def draw_precision_recall(
    members: np.ndarray, scores: np.ndarray, names: Sequence[str], path: Path
) -> None:
    """Draw a curve for each class or label.

    If there are many, those with the lowest average precision.

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
