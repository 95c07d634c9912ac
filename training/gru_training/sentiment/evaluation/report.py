"""Writes the report of a sentiment run: predictions, numbers, pictures, a summary."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gru_training.plots import learning_curves
from gru_training.runs.writer import TrainingRunWriter
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.calibrated import calibrate
from gru_training.sentiment.evaluation.class_report import class_results
from gru_training.sentiment.evaluation.labels_report import labels_results
from gru_training.sentiment.evaluation.measured import measured
from gru_training.sentiment.evaluation.metrics import baseline_summary, data_summary
from gru_training.sentiment.evaluation.number_report import number_results
from gru_training.sentiment.evaluation.results import Results
from gru_training.sentiment.evaluation.trained import TrainedClassifier
from gru_training.sentiment.network.logits import predict_logits

_RESULTS = {"class": class_results, "labels": labels_results, "number": number_results}


def write_report(
    writer: TrainingRunWriter,
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],
    summary: Mapping[str, Any],
) -> None:
    """Calibrate and test the model, and write the files of the run that describe it.

    Args:
        writer: Of the run.
        trained: The model and its data.
        floors: Majority class, bag of words, and any further simple models.
        summary: Of the training, from `gru_training.runs.writer.run_summary`.
    """
    target = trained.target
    labels = {part: trained.rows[part].labels for part in ("validation", "test")}
    if trained.alone is not None:
        logits = trained.alone.combined
    else:
        logits = {part: predict_logits(trained.model, trained.rows[part].ids) for part in labels}
    calibrated = calibrate(
        target, trained.config.decision, labels["validation"], logits["validation"]
    )
    calibrated.write(writer)
    results: Results = _RESULTS[target.kind](trained, calibrated, floors, logits)
    shared = {
        "task": "sentiment",
        "target": target.kind,
        "metric": target.metric.name,
        "data": data_summary(trained.data, trained.vocabulary_size),
    }
    own = {
        "speed": trained.speed(),
        "baselines": baseline_summary(floors),
        **summary,
    }
    if trained.alone is not None:
        own["ngram_penalty"] = trained.alone.penalty
    metrics = {**shared, **results.metrics, **own}
    if trained.warm_start is not None:
        metrics["warm_start"] = trained.warm_start
    if trained.taught is not None:
        metrics["taught"] = {**trained.taught, "model": measured(metrics)}
    writer.write_text(
        "test_predictions.jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in results.predictions),
    )
    answered = {floor.name: np.asarray(floor.test_predictions).tolist() for floor in floors}
    writer.write_json("test_baselines.json", answered)
    writer.write_json("metrics.json", metrics)

    def report() -> None:
        whole = {**metrics, **results.draw(writer)}
        learning_curves.draw_curves(
            trained.result.epochs,
            trained.result.best_epoch,
            ("loss", trained.target.objective().shown),
            writer.path / "curves.png",
        )
        writer.write_text("report.md", results.markdown(whole))
        writer.write_json("metrics.json", whole)

    writer.report(report)
