"""The report on a model that estimates a number for each text."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gru_training.plots.picture import save_figure
from gru_training.runs.directory import RunWriter
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.classifier import Results, TrainedClassifier
from gru_training.sentiment.evaluation.markdown import (
    beside_simple_models,
    cell,
    epoch_sentence,
    further_lines,
    what_the_network_adds,
)
from gru_training.sentiment.measures import number_measures

_ROWS_SHOWN = 10
_MEASURES = {"mae": "mean absolute error", "rmse": "root mean squared error", "r2": "R²"}
_BLUE, _GUIDE = "#0b63b5", "#333333"


def number_results(
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],  # noqa: ARG001
) -> Results:
    """Compute the figures of a run, and make the functions that draw its pictures.

    Arguments as in `class_results`.
    """
    logits, head = trained.answers.logits, trained.calibrated.head
    answers = {
        part: {name: value.numpy() for name, value in head.answers(of).items()}
        for part, of in logits.items()
    }
    values = {part: trained.texts.rows[part].labels for part in logits}
    bounds = answers["test"]["quantiles"]
    covered = {
        share: float(np.mean((values["test"] >= low) & (values["test"] <= high)))
        for share, low, high in (
            ("95 %", bounds[:, 0], bounds[:, 3]),
            ("80 %", bounds[:, 1], bounds[:, 2]),
        )
    }
    metrics: dict[str, Any] = {
        "model": {
            **{
                part: {
                    "loss": trained.target.mean_loss(values[part], logits[part]),
                    **number_measures(values[part], answers[part]["value"]),
                }
                for part in logits
            },
            "parameters": trained.model.count_params(),
        },
        "coverage": covered,
        **trained.shares_record(),
    }
    predictions: list[dict[str, Any]] = [
        {
            "text": text,
            "label": float(value),
            "predicted": float(estimate),
            "scores": [float(bound) for bound in row],
        }
        for text, value, estimate, row in zip(
            trained.data.test.texts, values["test"], answers["test"]["value"], bounds, strict=True
        )
    ]

    def draw(writer: RunWriter) -> dict[str, Any]:
        _draw(values["test"], answers["test"]["value"], writer.path / "estimates.png")
        return {}

    worst = sorted(predictions, key=lambda row: -abs(row["label"] - row["predicted"]))[:_ROWS_SHOWN]
    return Results(metrics, predictions, draw, partial(_markdown, mistakes=worst))


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
    data, model = metrics["data"], metrics["model"]
    rows, test = data["rows"], model["test"]
    adds = what_the_network_adds(metrics, "mae", "{:.3g}".format, -1)
    lines = [
        f"# Numbers: {data['name']}",
        "",
        f"**Estimates of new texts are off by {test['mae']:.3g} on average**; "
        f"{beside_simple_models(metrics, 'mae', '{:.3g}'.format, -1)}. They explain "
        f"{max(0.0, test['r2']):.0%} of the variance of the numbers (R²). {adds}".rstrip(),
        "",
        f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test "
        f"rows that share no text; {model['parameters']:,} weights.",
        "",
        "| test rows | " + " | ".join(_MEASURES.values()) + " |",
        "|---|" + "---:|" * len(_MEASURES),
        _row("**model**", test),
    ]
    for name, of in metrics["baselines"].items():
        lines.append(_row(name, {key: of[f"test_{key}"] for key in _MEASURES}))
    lines += [
        "",
        epoch_sentence(metrics).strip()
        + " Curves and `history.json` are in standard deviations of the training rows.",
        *further_lines(metrics),
        "",
        "![loss and error](curves.png)",
        "",
        "![estimates](estimates.png)",
        "",
        "## Intervals",
        "",
        "Each estimate has intervals that are fitted on the validation rows (split conformal). On "
        "the test rows the 95 % interval holds "
        f"{metrics['coverage']['95 %']:.1%} of the numbers and the 80 % interval "
        f"{metrics['coverage']['80 %']:.1%}.",
        "",
        "## The largest errors",
        "",
        "| number | estimate | text |",
        "|---:|---:|---|",
        *(
            f"| {row['label']:.4g} | {row['predicted']:.4g} | {cell(row['text'])} |"
            for row in mistakes
        ),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, measures: Mapping[str, float]) -> str:
    return f"| {name} | {' | '.join(f'{measures[key]:.4g}' for key in _MEASURES)} |"
