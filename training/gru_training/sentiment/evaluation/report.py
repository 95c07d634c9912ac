"""Writes the report of a sentiment run: predictions, numbers, pictures, a summary."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

from gru_training import plots
from gru_training.data.digest import data_digest
from gru_training.runs.writer import TrainingRunWriter
from gru_training.sentiment.evaluation.baselines import BaselineResult
from gru_training.sentiment.evaluation.class_report import class_results
from gru_training.sentiment.evaluation.classifier import Results, TrainedClassifier
from gru_training.sentiment.evaluation.labels_report import labels_results
from gru_training.sentiment.evaluation.number_report import number_results

_RESULTS = {"class": class_results, "labels": labels_results, "number": number_results}


_SILENT_SECONDS = 5.0
"""Seconds after which a stage is logged if no terminal shows its name."""


class Stages:
    """The stages of a training, with their display and their seconds.

    Args:
        console: Console to write to.
    """

    def __init__(self, console: Console):
        self._console, self._seconds = console, dict[str, float]()

    @contextlib.contextmanager
    def of(self, name: str, work: str) -> Iterator[Any]:
        """Show a stage inside the context, and add its seconds.

        Args:
            name: Name of the stage.
            work: Text to show.

        Yields:
            Status display, whose text can be changed by `update`.
        """
        begun = time.perf_counter()
        line = threading.Timer(_SILENT_SECONDS, self._say, (f"{work} ...",))
        line.daemon = True
        if not self._console.is_terminal:
            line.start()
        try:
            with self._console.status(f"{work} ...") as status:
                yield status
        finally:
            line.cancel()
            seconds = time.perf_counter() - begun
            self.add(name, seconds)
            if seconds > _SILENT_SECONDS and not self._console.is_terminal:
                self._say(f"{work}: {seconds:,.0f} s")

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a stage."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def seconds(self) -> dict[str, float]:
        """Return the seconds of the finished stages, in their order."""
        return {name: round(seconds, 2) for name, seconds in self._seconds.items()}

    def _say(self, line: str) -> None:
        self._console.print(line)


def write_report(
    writer: TrainingRunWriter,
    trained: TrainedClassifier,
    floors: Sequence[BaselineResult],
    further: Mapping[str, Any],
    stages: Stages,
) -> None:
    """Test the model, and write the files of the run that describe it.

    Args:
        writer: Writer of the run.
        trained: The model, its data and its answers.
        floors: Simple models beside it: majority class, bag of words, and any further ones.
        further: Values of `metrics.json` on the training, such as those of `run_summary`.
        stages: Stages of the training, of which this is the last one.
    """
    with stages.of("report", "testing"):
        results: Results = _RESULTS[trained.target.kind](trained, floors)
    metrics = {
        "task": "sentiment",
        "target": trained.target.kind,
        "metric": trained.target.metric.name,
        "data": data_summary(trained),
        "model": {**results.model, "parameters": trained.model.count_params()},
        **results.metrics,
        **trained.shares_record(),
        "speed": trained.speed(),
        "baselines": baseline_summary(floors),
        **further,
        "stages": stages.seconds(),
    }
    if trained.answers.penalty is not None:
        metrics["ngram_penalty"] = trained.answers.penalty
        metrics["regression"] = floors[-1].name
    writer.write_text(
        "test_predictions.jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in results.predictions),
    )
    answered = {floor.name: np.asarray(floor.test_predictions).tolist() for floor in floors}
    writer.write_json("test_baselines.json", answered)
    writer.write_json("metrics.json", metrics)

    def report() -> None:
        with stages.of("report", "writing the report"):
            whole = {**metrics, **results.draw(writer)}
        whole["stages"] = stages.seconds()
        plots.draw_curves(
            trained.result.epochs,
            trained.result.best_epoch,
            ("loss", trained.target.objective().shown),
            writer.path / "curves.png",
        )
        writer.write_text("report.md", results.markdown(whole))
        writer.write_json("metrics.json", whole)

    writer.report(report)


def data_summary(trained: TrainedClassifier) -> dict[str, Any]:
    """Describe the data set, its split, its words, and the rows of each class or label by part."""
    data, target = trained.data, trained.target
    counts = {
        part: target.members(rows.labels).sum(axis=0).tolist()
        for part, rows in data.parts().items()
    }
    named = data.classes if data.kind != "number" else ()
    return {
        "name": data.name,
        "rows": {name: len(part) for name, part in data.parts().items()},
        "vocabulary": len(trained.texts.words.vocabulary),
        "notes": list(data.notes),
        "digest": data_digest(data.contents()),
        "balance": {
            name: {part: of[k] for part, of in counts.items()} for k, name in enumerate(named)
        },
    }


def baseline_summary(floors: Sequence[BaselineResult]) -> dict[str, dict[str, float]]:
    """Return the measures of the simple models by name, such as `validation_accuracy`."""
    return {
        floor.name: {
            f"{part}_{name}": value
            for part, measures in (("validation", floor.validation), ("test", floor.test))
            for name, value in measures.items()
        }
        for floor in floors
    }
