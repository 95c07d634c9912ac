"""The sentiment pipeline, from labelled texts to a run directory or one trial of a search.

The pipeline has two points of extension: the weights with which a training begins
(`gru_training.sentiment.initial_weights`) and the targets of its rows
(`gru_training.sentiment.targets.training_rows`). They are independent of each other.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from gru_training.criterion import Judged, judged
from gru_training.data.digest import data_digest
from gru_training.loop.batches import LengthBucketedBatches
from gru_training.loop.checkpoint import Checkpoint, EpochRecord
from gru_training.loop.fit import EpochFollower, FitResult
from gru_training.loop.train import train
from gru_training.loop.workers import Workers, join_workers
from gru_training.runs.writer import TrainingRunWriter, run_name, run_summary
from gru_training.sentiment.class_weights import for_unequal_classes
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData, load_data
from gru_training.sentiment.decision import fit_temperature
from gru_training.sentiment.evaluation.baselines import fit_baselines
from gru_training.sentiment.evaluation.calibration import calibrate
from gru_training.sentiment.evaluation.classifier import Answers, TrainedClassifier
from gru_training.sentiment.evaluation.report import Stages, write_report
from gru_training.sentiment.initial_weights import InitialWeights, initial_weights
from gru_training.sentiment.measures import LOG_LOSS
from gru_training.sentiment.network.model import (
    EVALUATION_BATCH,
    build_sentiment_model,
    combine,
    fit_shares,
    predict_logits,
)
from gru_training.sentiment.run import TEXT_RULES, SentimentRun
from gru_training.sentiment.served.onnx import write_graph
from gru_training.sentiment.targets import Target, TrainingRows, make_target, training_rows
from gru_training.sentiment.texts import PreparedTexts, prepare_texts
from gru_training.sentiment.warm_start import text_digests, write_digests
from gru_training.tracking.tracked_training import Tracked
from gru_training.tracking.tracker import TrackedData
from gru_training.words.ngrams import FittedNgrams, require_keys
from gru_training.words.vocabulary import TokenRows


def train_sentiment(
    config: SentimentConfig,
    console: Console | None = None,
    resume: bool = False,
    data: SentimentData | None = None,
    given: Mapping[str, Any] | None = None,
    report_later: bool = False,
) -> SentimentRun | None:
    """Train a classifier and write its run directory.

    `gru_training.task.Task.train` says what it seeds, and what is left where it is broken off.

    Args:
        config: Settings of the training.
        console: Console for progress; none is shown by default.
        resume: Whether to go on from the checkpoint of a run of this name that was cut short.
        data: Rows of these settings that were read already, and their notes shown.
        given: Values for `config.json` that describe data which no setting names.
        report_later: Whether the report is written only by the run's `write_report`.

    Returns:
        Complete run; None for all workers but the first.

    Raises:
        TrainingError: Settings, data or run directory cannot be used; no run is left behind.
    """
    started, asked, workers = time.perf_counter(), config, join_workers()
    console = console if console is not None and workers.first else Console(quiet=True)
    initial, stages = initial_weights(config), Stages(console)
    if not workers.first:
        learned = read_rows(data, initial, workers, console, stages)
        fit_network(learned.rows, learned.texts, learned.config, initial, console, workers)
        return None
    name = run_name(config, "sentiment", config.data.data or _source_name(data, given))
    with (
        Tracked(initial.config, "sentiment", console, resume) as tracked,
        TrainingRunWriter(
            initial.config, "sentiment", name, resume, given, asked, report_later
        ) as writer,
    ):
        config, data, texts, target, rows, digest = read_rows(
            data, initial, workers, console, stages
        )
        writer.write_settings(data.columns)
        begun = time.perf_counter()
        network, result = fit_network(
            rows,
            texts,
            config,
            initial,
            console,
            workers,
            partial(writer.checkpoint, data=digest),
            tracked.begin(writer.final, _tracked(data)),
        )
        stages.add("network", result.earlier_seconds + time.perf_counter() - begun)
        ngrams = fit_regression(target, texts, config, data, stages)
        with stages.of("simple models", "fitting the simple models"):
            floors = fit_baselines(target, texts.rows, ngrams)
        with stages.of("combination", "combining"):
            model, answers = answer(network, ngrams, target, texts, config, data)
        calibrated = calibrate(
            target, config.decision, texts.rows["validation"].labels, answers.logits["validation"]
        )
        _write_words(writer, texts, data, initial, ngrams)
        calibrated.write(writer)
        writer.write_model(model, result)
        write_report(
            writer,
            TrainedClassifier(data, target, texts, model, answers, calibrated, result, config),
            floors,
            {
                **run_summary(result, config.training.seed, started),
                **initial.record(len(texts.words.vocabulary), data.classes),
                **_soft_record(data, config),
            },
            stages,
        )
        if given is None:  # an estimator keeps its model loaded
            write_graph(writer, model)
        run = SentimentRun.open(writer.publish(), writer.write_report if report_later else None)
        tracked.complete(run.path)
        return run


class LearnedRows(NamedTuple):
    """Rows of a training, in the form that a network learns."""

    config: SentimentConfig
    """Settings of the training, with those that follow from the data."""
    data: SentimentData
    texts: PreparedTexts
    """Words, and the rows of the data."""
    target: Target
    rows: TrainingRows
    """Rows with their targets."""
    digest: str
    """Digest of the data and the words."""


def read_rows(
    data: SentimentData | None,
    initial: InitialWeights,
    workers: Workers,
    console: Console,
    stages: Stages,
) -> LearnedRows:
    """Read the rows of a training, and learn their words.

    Args:
        data: Rows that were read already, and their notes shown; None: those of the settings.
        initial: Point from which the training begins.
        workers: Workers that train together.
        console: Console for progress.
        stages: Stages of the training.

    Raises:
        TrainingError: Settings or data cannot be used, or differ between workers.
    """
    keras.utils.set_random_seed(initial.config.training.seed)
    shown = () if data is None else data.notes
    config, data = for_unequal_classes(initial.config, data or load_data(initial.config))
    with stages.of("words", "learning words") as status:
        texts = prepare(data, config, initial, config.run.runs_dir, status.update)
    target = make_target(data, config, initial.scale)
    _describe(data, shown, console)
    rows = training_rows(
        target, texts.rows["train"], texts.rows["validation"], texts.soft, config.soft
    )
    digest = data_digest([*data.contents(), *texts.words.vocabulary.tokens])
    workers.require_same(config, digest)
    return LearnedRows(config, data, texts, target, rows, digest)


def prepare(
    data: SentimentData,
    config: SentimentConfig,
    initial: InitialWeights,
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
    parts: Sequence[str] = ("train", "validation", "test"),
) -> PreparedTexts:
    """Learn words, and convert texts to word ids.

    Args:
        data: Rows of the training.
        config: Settings of the training.
        initial: Point from which the training begins.
        folder: Folder of the pre-trained vectors.
        progress: Function that is given a line on what is being done.
        parts: Names of the parts to read.

    Raises:
        DataError: No word is left, or the texts to pre-train on cannot be used.
        ConfigError: There are too many words for n-grams of the length asked for.
    """
    learn_words = partial(initial.words, folder=folder, progress=progress)
    texts = prepare_texts(data, config, learn_words, parts)
    if with_ngrams(config, data) or config.run.ngram_baseline:
        # It is fitted only after the network has been trained.
        require_keys(len(texts.words.vocabulary), config.model.ngram_order)
    return texts


def fit_network(
    rows: TrainingRows,
    texts: PreparedTexts,
    config: SentimentConfig,
    initial: InitialWeights,
    console: Console,
    workers: Workers | None = None,
    checkpoint: Callable[[Sequence[Any]], Checkpoint] | None = None,
    followers: Sequence[EpochFollower] = (),
) -> tuple[keras.Model, FitResult]:
    """Train the GRU from word ids (B, T) to logits (B, C).

    It ends with the weights of its best epoch.

    Args:
        rows: Rows with their targets.
        texts: Words, and the rows of the data.
        config: Settings of the training.
        initial: Point from which the training begins.
        console: Console for progress.
        workers: Workers that train together; one by default. None needs the others afterwards.
        checkpoint: Function that makes the checkpoint of variables; none is written by default.
        followers: Functions called after each epoch.

    Raises:
        DivergenceError: A loss became infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
        LostWorkerError: Another worker has ended.
    """
    vocabulary, vectors, trained, pieces = texts.words
    target, settings, workers = rows.target, config.training, workers or Workers()
    model = build_sentiment_model(
        config.model,
        len(vocabulary),
        target.outputs,
        vectors,
        trained,
        pieces,
    )
    initial.set_weights(model, vocabulary, target, texts.rows["train"])
    batches = LengthBucketedBatches(
        rows.train.ids,
        rows.train.labels,
        settings.batch_size,
        settings.seed,
        drawn=rows.drawn,
    )
    validation = LengthBucketedBatches(
        rows.validation.ids, rows.validation.labels, EVALUATION_BATCH, settings.seed
    )
    result = train(
        model,
        batches,
        validation.in_length_order,
        target.objective(),
        settings,
        signature=(tf.TensorSpec((None, None), tf.int32), target.signature),
        console=console,
        checkpoint=checkpoint,
        workers=workers,
        followers=followers,
    )
    workers.finish()
    return model, result


def with_ngrams(config: SentimentConfig, data: SentimentData) -> bool:
    """Tell whether an n-gram regression answers with the GRU; by default for the user's own data.

    A model that reads in one direction is used alone, as it could no longer stream otherwise.
    """
    if config.model.ngrams is not None:
        return config.model.ngrams
    return not data.made_up and config.model.bidirectional


def fit_regression(
    target: Target,
    texts: PreparedTexts,
    config: SentimentConfig,
    data: SentimentData,
    stages: Stages,
) -> FittedNgrams | None:
    """Fit a linear model on n-grams if it answers with the GRU or is a baseline."""
    if not (with_ngrams(config, data) or config.run.ngram_baseline):
        return None
    with stages.of("n-grams", "fitting the n-grams"):
        return target.fit_ngrams(
            texts.rows["train"],
            texts.rows["validation"],
            texts.words.vocabulary.tokens,
            config.model.ngram_order,
        )


def answer(
    network: keras.Model,
    ngrams: FittedNgrams | None,
    target: Target,
    texts: PreparedTexts,
    config: SentimentConfig,
    data: SentimentData,
) -> tuple[keras.Model, Answers]:
    """Answer the held-out rows by the network alone, or together with the n-gram regression.

    Returns:
        Complete model from word ids (B, T) to logits (B, C), and its answers.
    """
    held_out = {part: texts.rows[part].ids for part in ("validation", "test")}
    logits = {part: predict_logits(network, ids) for part, ids in held_out.items()}
    if ngrams is None or not with_ngrams(config, data):
        return network, Answers(logits)
    counted = {
        part: of.logits(held_out[part])
        for part, of in (("validation", ngrams.trained), ("test", ngrams.final))
    }
    shares = fitted_shares(
        texts.rows["validation"], logits["validation"], counted["validation"], target, config
    )
    both = {
        part: np.float32(shares[0]) * logits[part] + np.float32(shares[1]) * counted[part]
        for part in held_out
    }
    model = ngrams.final
    return combine(network, model, shares), Answers(both, logits, shares, model.penalty)


def fitted_shares(
    rows: TokenRows,
    gru_logits: np.ndarray,
    ngram_logits: np.ndarray,
    target: Target,
    config: SentimentConfig,
) -> tuple[float, float]:
    """Find the shares of the GRU and of an n-gram regression in an answer of both.

    Args:
        rows: Rows that neither was trained on.
        gru_logits: Logits (N, C) of the GRU.
        ngram_logits: Logits (N, C) of the regression.
        target: Target of the data.
        config: Settings of the training; a metric that it names chooses the shares.
    """
    by = None if config.training.metric is None else target.metric.score
    return fit_shares(rows.labels, gru_logits, ngram_logits, target.mean_loss, by)


def _source_name(data: SentimentData | None, given: Mapping[str, Any] | None) -> str:
    """Return the name of rows that the settings do not name."""
    return "grammar" if given is None or data is None else data.name


def _tracked(data: SentimentData) -> TrackedData:
    sizes = {part: len(rows) for part, rows in data.parts().items()}
    return TrackedData(data.name, data_digest(data.contents()), sizes)


def _describe(data: SentimentData, shown: Collection[str], console: Console) -> None:
    rows = ", ".join(f"{len(part):,} {name}" for name, part in data.parts().items())
    console.print(f"data {data.name}: {rows} rows", markup=False, highlight=False)
    for note in data.notes:
        if note in shown:
            continue
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


def _write_words(
    writer: TrainingRunWriter,
    texts: PreparedTexts,
    data: SentimentData,
    initial: InitialWeights,
    ngrams: FittedNgrams | None,
) -> None:
    """Write how texts are read, the classes, and the texts that were learned from."""
    read = texts.preprocessor
    rules = {"cleaned": read.cleaned, "reading": read.reading, "backoff": read.backoff}
    writer.write_json(TEXT_RULES, rules)
    texts.words.vocabulary.save(writer.path / "vocabulary.txt")
    writer.write_json("classes.json", list(data.classes))
    learned = data.learned_texts
    if ngrams is not None and ngrams.final is not ngrams.trained:
        learned += data.validation.texts
    write_digests(writer.path, np.concatenate([text_digests(learned), initial.learned_digests]))


def _soft_record(data: SentimentData, config: SentimentConfig) -> dict[str, Any]:
    """Describe the rows with probabilities for `metrics.json`."""
    if data.soft is None:
        return {}
    read = min(len(data.soft), config.soft.read_rows(len(data.train)))
    return {"soft": {"rows": len(data.soft), "read": read}}


def try_settings(
    config: SentimentConfig,
    data: SentimentData,
    measure: str,
    after_epoch: Callable[[int, float], None],
) -> Judged:
    """Train with some settings, and measure on the validation rows; test rows are not read.

    Args:
        config: Settings of the training.
        data: Rows of the training.
        measure: Name of the metric that the settings choose by, or `log_loss`, of answers that are
            as sure as they may be (`gru_training.sentiment.decision`).
        after_epoch: Function that takes the number of each epoch and the measure of the network
            after it; may end the trial by an error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    keras.utils.set_random_seed(config.training.seed)
    config, data = for_unequal_classes(config, data)
    initial = InitialWeights(config)
    texts = prepare(data, config, initial, config.run.runs_dir, parts=("train", "validation"))
    target = make_target(data, config)
    by_loss = measure == LOG_LOSS
    shown = "loss" if by_loss else target.metric.name

    def follow(record: EpochRecord) -> None:
        after_epoch(record.epoch, record.validation[shown])

    held_out = texts.rows["validation"]
    rows = training_rows(target, texts.rows["train"], held_out, texts.soft, config.soft)
    model, _ = fit_network(rows, texts, config, initial, Console(quiet=True), followers=(follow,))
    logits = predict_logits(model, held_out.ids)
    if with_ngrams(config, data):
        counted = _counted(texts, target, config)
        gru, regression = fitted_shares(held_out, logits, counted, target, config)
        logits = gru * logits + regression * counted
    if by_loss:
        sure = logits / fit_temperature(held_out.labels, logits, target.mean_loss).value
        return judged(lambda kept: target.mean_loss(held_out.labels[kept], sure[kept]), len(logits))
    labels = target.in_units(held_out.labels)
    return judged(lambda kept: target.metric.of(labels[kept], logits[kept]), len(logits))


_NGRAM_CACHE: dict[str, np.ndarray] = {}
"""Answers of the last trial's n-gram regression to the validation rows."""


def _counted(texts: PreparedTexts, target: Target, config: SentimentConfig) -> np.ndarray:
    """Compute the n-grams' logits (N, C) of the validation rows.

    The regression depends on words, rows, their weights and the order, which few searches vary, so
    most trials of a process share it.
    """
    train, held_out = texts.rows["train"], texts.rows["validation"]
    order = config.model.ngram_order
    contents: list[str | np.ndarray] = [str(config.training.class_weight), str(order)]
    contents += [target.metric.name, *texts.words.vocabulary.tokens]
    for part in (train, held_out):
        contents += [np.concatenate(part.ids), np.array(list(map(len, part.ids))), part.labels]
        if part.weights is not None:
            contents.append(part.weights)
    key = data_digest(contents)
    if key not in _NGRAM_CACHE:
        _NGRAM_CACHE.clear()
        ngrams = target.fit_ngrams(train, held_out, texts.words.vocabulary.tokens, order)
        _NGRAM_CACHE[key] = ngrams.trained.logits(held_out.ids)
    return _NGRAM_CACHE[key]
