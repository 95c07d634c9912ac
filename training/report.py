"""Pictures and a summary of a classification run, for people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from training.learning_curves import save_figure


def confusion_counts(labels: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """(C, C) counts: row = label, column = prediction."""
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (labels, predicted), 1)
    return counts


def draw_confusion_matrix(counts: np.ndarray, classes: Sequence[str], path: Path) -> None:
    """Draws how often each class was taken for each, coloured by share of the row.

    Args:
        counts: (C, C), from :func:`confusion_counts`.
        classes: C names.
        path: the PNG file.
    """
    size = float(np.clip(1.2 + 0.75 * len(classes), 3.6, 16))
    figure = Figure(figsize=(size + 1, size), dpi=120, layout="constrained")
    axes = figure.subplots()
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    short = [name if len(name) <= 20 else name[:19] + "…" for name in classes]
    names = [name.replace("$", r"\$") for name in short]  # a pair of them would start a formula
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


def wilson_interval(share: float, rows: int) -> tuple[float, float]:
    """95 % confidence interval of a share observed in ``rows`` independent rows (Wilson, 1927)."""
    z2 = 1.959964**2
    centre = (share + z2 / (2 * rows)) / (1 + z2 / rows)
    half = (z2 * (share * (1 - share) / rows + z2 / (4 * rows**2))) ** 0.5 / (1 + z2 / rows)
    return centre - half, centre + half


def write_summary(
    metrics: Mapping[str, Any], classes: Sequence[str], mistakes: Sequence[Mapping[str, Any]]
) -> str:
    """The run as Markdown.

    Args:
        metrics: what ``metrics.json`` holds.
        classes: class names.
        mistakes: test rows got wrong, the surest first: ``text``, ``label``, ``predicted`` and
            ``probability`` of the prediction.
    """
    data, model = metrics["data"], metrics["model"]
    rows = data["rows"]
    lines = [
        f"# Sentiment: {data['name']}",
        "",
        f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test "
        f"rows that share no text; {len(classes)} classes; {model['parameters']:,} weights.",
        "",
        "| accuracy | validation | test |",
        "|---|---:|---:|",
        f"| **GRU** | {model['validation']['accuracy']:.2%} | {model['test']['accuracy']:.2%} |",
    ]
    for name, result in metrics["baselines"].items():
        lines.append(
            f"| {name} | {result['validation_accuracy']:.2%} | {result['test_accuracy']:.2%} |"
        )
    low, high = wilson_interval(model["test"]["accuracy"], rows["test"])
    lines += [
        "",
        f"The GRU's test accuracy has the 95 % interval {low:.2%} to {high:.2%} (Wilson). The best "
        f"of {metrics['epochs']} epochs is number {metrics['best_epoch']}, chosen on the "
        "validation rows; so are the baselines' penalties. The test rows were used once, at the "
        "end.",
    ]
    if metrics["interrupted"]:
        lines += ["", "**Training was interrupted**; the best epoch until then was kept."]
    lines += [f"\nNote: {note}." for note in data["notes"]]
    lines += _twins(metrics["same_words"])
    lines += ["", "![loss and accuracy](curves.png)", "", "![confusion](confusion_matrix.png)", ""]
    lines += ["| test rows | precision | recall | F1 | rows |", "|---|---:|---:|---:|---:|"]
    for name, values in metrics["per_class"].items():
        lines.append(
            f"| {_cell(name)} | {values['precision']:.2%} | {values['recall']:.2%} | "
            f"{values['f1']:.2%} | {values['rows']:,} |"
        )
    if mistakes:
        lines += ["", "## The surest mistakes", ""]
        lines += ["| label | predicted | probability | text |", "|---|---|---:|---|"]
        for row in mistakes:
            lines.append(
                f"| {_cell(row['label'])} | {_cell(row['predicted'])} | {row['probability']:.2%} "
                f"| {_cell(row['text'])} |"
            )
    lines += ["", "## Made with", "", f"Seed {metrics['seed']}; settings in `config.json`; "]
    lines[-1] += ", ".join(f"{name} {number}" for name, number in metrics["versions"].items()) + "."
    return "\n".join(lines) + "\n"


def _twins(same_words: Mapping[str, Any]) -> list[str]:
    if not same_words["pairs"]:
        return []
    return [
        "",
        f"**Word order.** {same_words['pairs']:,} pairs of test rows are made of the same words "
        f"and differ in label. The GRU gets both right in {same_words['gru']:.2%} of them, the "
        f"bag of words in {same_words['bag_of_words']:.2%}.",
    ]


def _cell(text: str, longest: int = 300) -> str:
    text = " ".join(text.split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("|", "\\|").replace("<", "&lt;")
