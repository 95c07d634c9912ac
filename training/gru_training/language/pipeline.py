"""The language pipeline, which turns documents into a run directory."""

import time
from collections.abc import Callable
from functools import partial

import keras
from rich.console import Console

from gru_training.criterion import Judged
from gru_training.data.digest import data_digest
from gru_training.language.config import LanguageConfig
from gru_training.language.data import LanguageData, load_language_data, source_of
from gru_training.language.evaluation import Reported, baseline_figures, write_report
from gru_training.language.reading import ReadDocuments, read_tokens
from gru_training.language.run import LanguageRun
from gru_training.language.training import METRIC_SHOWN, train_model
from gru_training.loop.checkpoint import EpochRecord
from gru_training.loop.workers import Workers, join_workers
from gru_training.runs.writer import TrainingRunWriter, run_name, run_summary
from gru_training.tracking.tracked_training import Tracked
from gru_training.tracking.tracker import TrackedData


def train_language(
    config: LanguageConfig,
    console: Console | None = None,
    resume: bool = False,
    data: LanguageData | None = None,
) -> LanguageRun | None:
    """Train a language model and write its run directory.

    `gru_training.task.Task.train` says what it seeds, and what is left where it is broken off.

    Args:
        config: Settings of the training.
        console: Console for progress; none is shown by default.
        resume: Whether to go on from the checkpoint of a broken run of this name, if there is one.
        data: Documents of these settings that were read already, and their notes shown.

    Returns:
        Complete run; None for all workers but the first.

    Raises:
        TrainingError: Settings, data or run directory cannot be used; no run is left behind.
    """
    started, workers = time.perf_counter(), join_workers()
    console = console if console is not None and workers.first else Console(quiet=True)
    if not workers.first:
        data, read, digest = _read(config, data, workers, console)
        train_model(read, config, console, workers=workers)
        return None
    name = run_name(config, "language", source_of(config.data))
    with (
        Tracked(config, "language", console, resume) as tracked,
        TrainingRunWriter(config, "language", name, resume) as writer,
    ):
        data, read, digest = _read(config, data, workers, console)
        writer.write_settings(data.columns)
        sizes = {part: len(rows) for part, rows in data.parts().items()}
        trained = train_model(
            read,
            config,
            console,
            workers=workers,
            checkpoint=partial(writer.checkpoint, data=digest),
            followers=tracked.begin(
                writer.final, TrackedData(data.name, data_digest(data.contents()), sizes)
            ),
        )
        with console.status("counting n-grams ..."):
            baselines = baseline_figures(read)
        read.vocabulary.save(writer.path / "vocabulary.txt")
        writer.write_model(trained.model, trained.result)
        with console.status("writing the report ..."):
            write_report(
                writer,
                Reported(data, read, trained, baselines, config),
                run_summary(trained.result, config.training.seed, started),
            )
        run = LanguageRun.open(writer.publish())
        tracked.complete(run.path)
        return run


def _read(
    config: LanguageConfig, data: LanguageData | None, workers: Workers, console: Console
) -> tuple[LanguageData, ReadDocuments, str]:
    """Read the documents and their tokens; returns them with their digest."""
    keras.utils.set_random_seed(config.training.seed)
    if data is None:
        with console.status("reading the data ..."):
            data = load_language_data(config.data, config.training.seed)
    with console.status(f"learning {config.data.reads} ..."):
        read = read_tokens(data, config.data)
    counts = ", ".join(f"{part.tokens:,} {name}" for name, part in read.parts().items())
    console.print(
        f"data {data.name}: {counts} {read.unit}; {len(read.vocabulary) - 2:,} different ones"
    )
    digest = data_digest([*data.contents(), *read.vocabulary.tokens])
    workers.require_same(config, digest)
    return data, read, digest


def try_settings(
    config: LanguageConfig, data: LanguageData, after_epoch: Callable[[int, float], None]
) -> Judged:
    """Bits per token of the validation documents; no test document is measured.

    Args:
        config: Settings of the training.
        data: Documents to learn.
        after_epoch: Function called after each epoch with its number and the bits; it may end the
            trial by an error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    keras.utils.set_random_seed(config.training.seed)
    read = read_tokens(data, config.data)

    def follow(record: EpochRecord) -> None:
        after_epoch(record.epoch, record.validation[METRIC_SHOWN])

    _, result, _ = train_model(read, config, Console(quiet=True), followers=(follow,))
    return Judged(result.epochs[result.best_epoch - 1].validation[METRIC_SHOWN])
