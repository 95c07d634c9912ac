"""Writes the report of a sentiment run: predictions, numbers, pictures, a summary."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gru_training.plots import learning_curves
from gru_training.runs.writer import TrainingRunWriter
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.class_report import class_results
from gru_training.sentiment.evaluation.classifier import Results, TrainedClassifier
from gru_training.sentiment.evaluation.labels_report import labels_results
from gru_training.sentiment.evaluation.metrics import baseline_summary, data_summary
from gru_training.sentiment.evaluation.number_report import number_results

_RESULTS = {"class": class_results, "labels": labels_results, "number": number_results}


def write_report(
    writer: TrainingRunWriter,
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],
    further: Mapping[str, Any],
) -> None:
    """Test the model, and write the files of the run that describe it.

    Args:
        writer: Writer of the run.
        trained: The model, its data and its answers.
        floors: Simple models beside it: majority class, bag of words, and any further ones.
        further: Values of `metrics.json` on the training, such as those of `run_summary`.
    """
    results: Results = _RESULTS[trained.target.kind](trained, floors)
    metrics = {
        "task": "sentiment",
        "target": trained.target.kind,
        "metric": trained.target.metric.name,
        "data": data_summary(trained.data, len(trained.texts.words.vocabulary)),
        **results.metrics,
        "speed": trained.speed(),
        "baselines": baseline_summary(floors),
        **further,
    }
    if trained.answers.penalty is not None:
        metrics["ngram_penalty"] = trained.answers.penalty
    writer.write_text(
        "test_predictions.jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in results.predictions),
    )
    answered = {floor.name: np.asarray(floor.test_predictions).tolist() for floor in floors}
    writer.write_json("test_baselines.json", answered)
    writer.write_json("metrics.json", metrics)

    def report() -> None:
        begun = time.perf_counter()
        whole = {**metrics, **results.draw(writer)}
        stages = {**metrics["stages"], "report": time.perf_counter() - begun}
        whole["stages"] = {name: round(seconds, 2) for name, seconds in stages.items()}
        learning_curves.draw_curves(
            trained.result.epochs,
            trained.result.best_epoch,
            ("loss", trained.target.objective().shown),
            writer.path / "curves.png",
        )
        writer.write_text("report.md", results.markdown(whole))
        writer.write_json("metrics.json", whole)

    writer.report(report)
