"""The report on a model that estimates a number for each text."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gru_training.plots import save_figure
from gru_training.runs.directory import RunWriter
from gru_training.runs.report_page import markdown_table
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import Results, TrainedClassifier
from gru_training.sentiment.evaluation.markdown import (
    beside_simple_models,
    cell,
    epoch_sentence,
    measure_table,
    opening,
    what_the_network_adds,
)

_ROWS_SHOWN = 10
_MEASURES = {
    "mae": ("mean absolute error", ".4g"),
    "rmse": ("root mean squared error", ".4g"),
    "r2": ("R²", ".4g"),
}
_BLUE, _GUIDE = "#0b63b5", "#333333"


def number_results(
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],  # noqa: ARG001
) -> Results:
    """Compute the figures of a run, and make the functions that draw its pictures.

    Arguments as in `class_results`.
    """
    logits, head = trained.answers.logits, trained.calibrated.head
    answers = {part: head.answers(of) for part, of in logits.items()}
    estimates = {part: of["value"].numpy() for part, of in answers.items()}
    values, bounds = trained.texts.rows["test"].labels, answers["test"]["quantiles"].numpy()
    covered = {
        share: float(np.mean((values >= bounds[:, low]) & (values <= bounds[:, high])))
        for share, low, high in (("95 %", 0, 3), ("80 %", 1, 2))
    }
    model = {part: trained.measures(part, logits[part], estimates[part]) for part in logits}
    predictions = trained.predictions(values.tolist(), estimates["test"].tolist(), bounds)

    def draw(writer: RunWriter) -> dict[str, Any]:
        _draw(values, estimates["test"], writer.path / "estimates.png")
        return {}

    worst = sorted(predictions, key=lambda row: -abs(row["label"] - row["predicted"]))[:_ROWS_SHOWN]
    markdown = partial(_markdown, mistakes=worst)
    return Results(model, {"coverage": covered}, predictions, draw, markdown)


def _draw(values: np.ndarray, estimates: np.ndarray, path: Path) -> None:
    """Draw estimates against numbers; numbers that many rows share are spread a little."""
    figure = Figure(figsize=(5.4, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    low, high = float(values.min()), float(values.max())
    spread = np.random.default_rng(0).uniform(-0.5, 0.5, len(values)) * 0.015 * (high - low)
    axes.plot(values + spread, estimates, ".", color=_BLUE, alpha=0.4, markersize=4)
    axes.plot((low, high), (low, high), ":", color=_GUIDE, linewidth=1, label="ideal")
    axes.set(xlabel="number", ylabel="estimate")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def _markdown(metrics: Mapping[str, Any], mistakes: Sequence[Mapping[str, Any]]) -> str:
    test, covered = metrics["model"]["test"], metrics["coverage"]
    adds = what_the_network_adds(metrics, "mae", "{:.3g}".format, -1)
    errors = [
        (f"{row['label']:.4g}", f"{row['predicted']:.4g}", cell(row["text"])) for row in mistakes
    ]
    lines = [
        *opening(
            metrics,
            "Numbers",
            f"**Estimates of new texts are off by {test['mae']:.3g} on average**; "
            f"{beside_simple_models(metrics, 'mae', '{:.3g}'.format, -1)}. They explain "
            f"{max(0.0, test['r2']):.0%} of the variance of the numbers (R²). {adds}".rstrip(),
            "",
            measure_table(metrics, _MEASURES),
            epoch_sentence(metrics)
            + " Curves and `history.json` are in standard deviations of the training rows.",
        ),
        "",
        "![loss and error](curves.png)",
        "",
        "![estimates](estimates.png)",
        "",
        "## Intervals",
        "",
        "Each estimate has intervals that are fitted on the validation rows (split conformal). On "
        f"the test rows the 95 % interval holds {covered['95 %']:.1%} of the numbers and the 80 % "
        f"interval {covered['80 %']:.1%}.",
        "",
        "## The largest errors",
        "",
        *markdown_table([("number", "estimate", "text"), *errors], 0, text_last=True),
    ]
    return "\n".join(lines) + "\n"
