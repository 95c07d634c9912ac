"""From labelled texts to a run directory: the sentiment pipeline."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from training.data.digest import data_digest
from training.loop.batches import LengthBucketedBatches
from training.loop.fit import FitResult
from training.loop.train import train
from training.runs.summary import run_summary
from training.runs.writer import TrainingRunWriter, run_name
from training.sentiment.config import SentimentConfig
from training.sentiment.data import SentimentData, load_sentiment_data
from training.sentiment.evaluation import baselines
from training.sentiment.evaluation.report import write_report
from training.sentiment.evaluation.trained import Alone, TrainedClassifier
from training.sentiment.network.combination import combine, fit_shares
from training.sentiment.network.logits import EVALUATION_BATCH, predict_logits
from training.sentiment.network.model import build_sentiment_model, initialise_words
from training.sentiment.run import TEXT_RULES, SentimentRun
from training.sentiment.targets.made import make_target
from training.sentiment.targets.target import Target
from training.sentiment.targets.unequal import for_unequal_classes
from training.sentiment.vocabulary.words import sentiment_words, text_reading
from training.words.count_ratios import word_ratios
from training.words.ngram_model import NgramModel
from training.words.token_rows import TokenRows
from training.words.vocabulary import TextPreprocessor, token_ids


def train_sentiment(
    config: SentimentConfig,
    console: Console | None = None,
    resume: bool = False,
    data: SentimentData | None = None,
    given: Mapping[str, Any] | None = None,
) -> SentimentRun:
    """Train a classifier and write its run directory.

    Seeds Python's, NumPy's and Keras' global random numbers. On one machine's CPU the same
    settings give the same weights; on a GPU, or on other processors, they may differ in the last
    digits, and training magnifies that.

    Args:
        config: Every setting.
        console: Where to show progress; none is shown by default.
        resume: Go on from the checkpoint of a run of this name that was cut short, if there is one.
        data: Of these settings where they have been read, and their notes shown.
        given: Of data that no setting names, what `config.json` is to say of them.

    Returns:
        The run, complete on disk. After SIGINT it holds the best epoch until then and
        `metrics["interrupted"]` is true.

    Raises:
        TrainingError: Settings, data or run directory cannot be used; no run is left behind.

    Killed at any moment, it leaves hidden files at most: a checkpoint, from which `resume` leads
    to the same weights, and what the next training of this name removes.
    """
    console = console or Console(quiet=True)
    started = time.perf_counter()
    built_in = "grammar" if given is None or data is None else data.name
    name = run_name(config, "sentiment", config.data.data or built_in)
    with TrainingRunWriter(config, "sentiment", name, resume, given) as writer:
        keras.utils.set_random_seed(config.training.seed)
        shown = () if data is None else data.notes
        if data is None:
            with console.status("reading the data ..."):
                data = load_sentiment_data(config.data, config.training.seed)
        with console.status("learning words ...") as status:
            cleaned = config.data.cleaning
            if cleaned is None:
                cleaned = data.own
            reading = text_reading(data, config)
            words = sentiment_words(
                data, config, writer.path.parent, status.update, cleaned, reading
            )
            vocabulary = words.vocabulary
            preprocessor = TextPreprocessor(vocabulary, config.data.max_tokens, cleaned, reading)
            parts = {
                name: TokenRows(token_ids(preprocessor, part.texts), part.labels)
                for name, part in data.parts().items()
            }
        config, unequal = for_unequal_classes(config, data)
        target = make_target(data, config)
        if unequal is not None:
            data = replace(data, notes=(*data.notes, unequal))
        _describe(data, shown, console)
        model = build_sentiment_model(
            config.model,
            len(vocabulary),
            target.outputs,
            words.vectors,
            words.trained,
            words.pieces,
            config.pretraining.vectors_use if config.pretraining.vectors else "both",
        )
        if config.model.word_ratios:
            ratios = word_ratios(parts["train"], len(data.classes), words.trained)
            initialise_words(model, ratios)
        digest = data_digest([*data.contents(), *vocabulary.tokens])
        result = _train(model, target, parts, digest, config, writer, console)
        ngrams, combined = None, with_ngrams(config, data)
        if combined or config.run.ngram_baseline:
            with console.status("fitting the n-gram regression ..."):
                ngrams = target.fit_ngrams(parts["train"], parts["validation"], len(vocabulary))
        floors = _baselines(target, parts, ngrams, console)
        alone = None
        if combined and ngrams is not None:
            with console.status("combining ..."):
                alone = _alone(model, target, ngrams, parts, config.training.metric is not None)
            model = combine(model, ngrams, alone.shares)
        writer.write_json(TEXT_RULES, {"cleaned": cleaned, "reading": reading})
        vocabulary.save(writer.path / "vocabulary.txt")
        writer.write_json("classes.json", list(data.classes))
        writer.write_model(model, result)
        with console.status("writing the report ..."):
            write_report(
                writer,
                TrainedClassifier(
                    data, target, parts, preprocessor, len(vocabulary), model, alone, result, config
                ),
                floors,
                run_summary(result, config.training.seed, started),
            )
        return SentimentRun.open(writer.publish())


def with_ngrams(config: SentimentConfig, data: SentimentData) -> bool:
    """Whether an n-gram regression answers with the GRU; by default for data of one's own.

    A model that reads in one direction is left alone, as it would no longer stream.
    """
    if config.model.ngrams is not None:
        return config.model.ngrams
    return not data.made_up and config.model.bidirectional


def _train(
    model: keras.Model,
    target: Target,
    parts: dict[str, TokenRows],
    digest: str,
    config: SentimentConfig,
    writer: TrainingRunWriter,
    console: Console,
) -> FitResult:
    settings = config.training
    batches = {
        name: LengthBucketedBatches(
            rows.ids,
            rows.labels,
            settings.batch_size if name == "train" else EVALUATION_BATCH,
            settings.seed,
            shares=_shares(rows) if name == "train" and settings.balanced_batches else None,
        )
        for name, rows in parts.items()
        if name != "test"
    }
    return train(
        model,
        batches["train"],
        batches["validation"].in_length_order,
        target.objective(),
        settings,
        signature=(tf.TensorSpec((None, None), tf.int32), target.signature),
        console=console,
        checkpoint=lambda variables: writer.checkpoint(variables, digest),
    )


def _shares(rows: TokenRows) -> np.ndarray:
    """How often each row is drawn so that all classes are equally frequent, (N,)."""
    return np.asarray(1 / np.bincount(rows.labels)[rows.labels])


def _alone(
    model: keras.Model,
    target: Target,
    ngrams: NgramModel,
    parts: dict[str, TokenRows],
    by_metric: bool,
) -> Alone:
    """What the GRU answers by itself, and its share in a combined answer."""
    logits = {part: predict_logits(model, parts[part].ids) for part in ("validation", "test")}
    rows = parts["validation"]
    shares = fit_shares(
        rows.labels,
        logits["validation"],
        ngrams.logits(rows.ids),
        target.mean_loss,
        target.metric.score if by_metric else None,
    )
    return Alone(logits, shares)


def _baselines(
    target: Target, parts: dict[str, TokenRows], ngrams: NgramModel | None, console: Console
) -> list[baselines.BaselineResult]:
    rows = parts["train"], parts["validation"], parts["test"]
    with console.status("fitting the baselines ..."):
        if target.kind == "labels":
            return [baselines.labels_bag_of_words(*rows, target)]
        if target.kind == "number":
            return [baselines.mean_number(*rows), baselines.numbers_bag_of_words(*rows)]
        floors = [baselines.majority_class(*rows), baselines.bag_of_words(*rows, target)]
        if ngrams is not None:
            floors.append(baselines.naive_bayes(ngrams, *rows))
            floors.append(baselines.nb_weighted_ngrams(ngrams, *rows[1:]))
    return floors


def _describe(data: SentimentData, shown: Collection[str], console: Console) -> None:
    rows = ", ".join(f"{len(part):,} {name}" for name, part in data.parts().items())
    console.print(f"data {data.name}: {rows} rows", markup=False, highlight=False)
    for note in data.notes:
        if note in shown:
            continue
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)
