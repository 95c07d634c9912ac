"""From runs of one split to their average, and to a network that is distilled from it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
from rich.console import Console

from gru_training.classification.temperature import fit_temperature
from gru_training.runs.summary import run_summary
from gru_training.runs.writer import TrainingRunWriter
from gru_training.sentiment.config import SentimentRunConfig, TeachingConfig
from gru_training.sentiment.ensembles.members import Members
from gru_training.sentiment.evaluation.report import write_report
from gru_training.sentiment.evaluation.trained import TrainedClassifier
from gru_training.sentiment.network.average import average, networks_of
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.pipeline import fit_baselines, train_sentiment
from gru_training.sentiment.run import TEXT_RULES, SentimentRun
from gru_training.sentiment.served.graph import write_graph
from gru_training.sentiment.targets.distilled import Teacher
from gru_training.sentiment.targets.made import make_target
from gru_training.sentiment.targets.unequal import for_unequal_classes
from gru_training.task import EnsembleNames
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import token_ids


def average_runs(
    runs: Sequence[SentimentRun], names: EnsembleNames, console: Console
) -> list[SentimentRun]:
    """As of `gru_training.task.Task.average`."""
    with console.status("reading the data and the runs ..."):
        members = Members(runs)
        model = average(members.models, members.weights)
    whole = _write_average(members, model, names, console)
    if names.distilled is None:
        return [whole]
    console.print("\ndistilling the average into one network", highlight=False)
    return [whole, _distil(members, model, whole, names.distilled, console)]


def _write_average(
    members: Members, model: keras.Model, names: EnsembleNames, console: Console
) -> SentimentRun:
    started = time.perf_counter()
    first, data = members.first, members.data
    config = replace(first.config, run=_placed(first.config.run, names.runs_dir, names.average))
    given, _ = for_unequal_classes(config, data)
    target, preprocessor = make_target(data, given), first.preprocessor()
    with TrainingRunWriter(config, "sentiment", names.average, resume=False) as writer:
        rows = {
            name: TokenRows(token_ids(preprocessor, part.texts), part.labels)
            for name, part in data.parts().items()
        }
        floors = fit_baselines(target, rows, None, console)
        writer.write_json(TEXT_RULES, {"cleaned": first.cleaned, "reading": first.reading})
        first.vocabulary.save(writer.path / "vocabulary.txt")
        writer.write_json("classes.json", list(data.classes))
        writer.write_model(model, None)
        with console.status("writing the report ..."):
            write_report(
                writer,
                TrainedClassifier(
                    data, target, rows, preprocessor, len(first.vocabulary), model,
                    None, None, given, members.lineage(),
                ),
                floors,
                run_summary(None, config.training.seed, started),
            )  # fmt: skip
        write_graph(writer, model)
        return SentimentRun.open(writer.publish())


def _placed(settings: SentimentRunConfig, runs_dir: Path, name: str) -> SentimentRunConfig:
    """The place of a run that is made of others; nobody follows it."""
    return SentimentRunConfig(
        runs_dir, name, settings.debug, ngram_baseline=settings.ngram_baseline
    )


def _distil(
    members: Members, model: keras.Model, whole: SentimentRun, name: str, console: Console
) -> SentimentRun:
    """A network of the first run's settings that learns what the average's networks answer.

    An n-gram regression has no part in the lesson: beside a network that had learned what it says
    it would add little, and the student gets one of its own.
    """
    settings = members.first.config
    config = replace(
        settings,
        teaching=TeachingConfig(),
        # Its targets are answers of all classes at once, which no row is drawn by.
        training=replace(settings.training, balanced_batches=False),
        run=_placed(settings.run, whole.path.parent, name),
    )
    teacher = Teacher(
        _calibrated(members, networks_of(model)),
        members.first.vocabulary.tokens,
        members.lineage(whole.metrics),
    )
    return train_sentiment(config, console, data=members.data, teacher=teacher)


def _calibrated(
    members: Members, model: keras.Model
) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
    """What a model answers to rows of word ids, as sure as it is right on the validation rows."""
    temperature = 1.0
    if members.data.kind != "number":
        rows = members.data.validation
        logits = predict_logits(model, token_ids(members.first.preprocessor(), rows.texts))
        target = make_target(members.data, members.first.config)
        temperature = fit_temperature(rows.labels, logits, target.mean_loss).value
    return lambda rows: predict_logits(model, rows) / np.float32(temperature)
