"""From labelled texts to a run directory: the sentiment pipeline."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from rich.console import Console

from gru_training.data.digest import data_digest
from gru_training.runs.writer import TrainingRunWriter, run_name, run_summary
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData, load_data
from gru_training.sentiment.evaluation import baselines
from gru_training.sentiment.evaluation.report import write_report
from gru_training.sentiment.evaluation.trained import Alone, TrainedClassifier
from gru_training.sentiment.fitting import fit_network, fitted_shares, read_texts, with_ngrams
from gru_training.sentiment.initial_weights import initial_weights
from gru_training.sentiment.network.combination import combine
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.run import TEXT_RULES, SentimentRun
from gru_training.sentiment.served.graph import write_graph
from gru_training.sentiment.targets.made import make_target
from gru_training.sentiment.targets.target import Target
from gru_training.sentiment.targets.unequal import for_unequal_classes
from gru_training.sentiment.teaching.lessons import taught
from gru_training.sentiment.training_texts import learned_digests, text_digests, write_digests
from gru_training.tracking.tracked import Tracked
from gru_training.tracking.tracker import TrackedData
from gru_training.words.ngram_model import NgramModel
from gru_training.words.token_rows import TokenRows


def train_sentiment(
    config: SentimentConfig,
    console: Console | None = None,
    resume: bool = False,
    data: SentimentData | None = None,
    given: Mapping[str, Any] | None = None,
    report_later: bool = False,
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
        report_later: Whether the report is written only by the run's `write_report`.

    Returns:
        The run, complete on disk. After SIGINT it holds the best epoch until then and
        `metrics["interrupted"]` is true.

    Raises:
        TrainingError: Settings, data or run directory cannot be used; no run is left behind.

    Killed at any moment, it leaves hidden files at most: a checkpoint, from which `resume` leads
    to the same weights, and what the next training of this name removes.
    """
    console = console or Console(quiet=True)
    started, asked = time.perf_counter(), config
    built_in = "grammar" if given is None or data is None else data.name
    name = run_name(config, "sentiment", config.data.data or built_in)
    initial = initial_weights(config)
    if initial is not None:
        config = initial.config
    with (
        Tracked(config, "sentiment", console, resume) as tracked,
        TrainingRunWriter(config, "sentiment", name, resume, given, asked, report_later) as writer,
    ):
        keras.utils.set_random_seed(config.training.seed)
        shown = () if data is None else data.notes
        if data is None:
            with console.status("reading the data ..."):
                data = load_data(config)
        with console.status("learning words ...") as status:
            read = read_texts(data, config, writer.path.parent, status.update, initial=initial)
        vocabulary, parts = read.words.vocabulary, read.rows
        config, unequal = for_unequal_classes(config, data)
        if unequal is not None:
            data = replace(data, notes=(*data.notes, unequal))
        target = make_target(data, config, None if initial is None else initial.scale)
        _describe(data, shown, console)
        digest = data_digest([*data.contents(), *vocabulary.tokens])
        learned = target
        told = None
        if config.teaching.teach is not None:
            with console.status("asking the teacher ..."):
                told = taught(config, data, read.preprocessor, target)
            learned = told.target
        model, result = fit_network(
            data,
            read,
            learned,
            config,
            console,
            checkpoint=lambda variables: writer.checkpoint(variables, digest),
            followers=tracked.begin(writer.final, _tracked(data)),
            initial=initial,
        )
        ngrams, combined = None, with_ngrams(config, data)
        if combined or config.run.ngram_baseline:
            with console.status("fitting the n-gram regression ..."):
                ngrams = target.fit_ngrams(
                    parts["train"],
                    parts["validation"],
                    len(vocabulary),
                    config.model.ngram_order,
                )
        floors = fit_baselines(target, parts, ngrams, console)
        alone = None
        if combined and ngrams is not None:
            with console.status("combining ..."):
                alone = _alone(model, target, ngrams, parts, config)
            model = combine(model, ngrams, alone.shares)
        writer.write_json(
            TEXT_RULES, {"cleaned": read.cleaned, "reading": read.preprocessor.reading}
        )
        vocabulary.save(writer.path / "vocabulary.txt")
        writer.write_json("classes.json", list(data.classes))
        learned_from = text_digests(data.train.texts)
        if initial is not None:
            learned_from = np.concatenate([learned_from, learned_digests(initial.run)])
        write_digests(writer.path, learned_from)
        writer.write_model(model, result)
        with console.status("writing the report ..."):
            write_report(
                writer,
                TrainedClassifier(
                    data,
                    target,
                    parts,
                    read.preprocessor,
                    len(vocabulary),
                    model,
                    alone,
                    result,
                    config,
                    None if initial is None else initial.record(len(vocabulary), data.classes),
                    None if told is None else told.figures,
                ),
                floors,
                run_summary(result, config.training.seed, started),
            )
        if given is None:  # an estimator keeps its model loaded
            write_graph(writer, model)
        run = SentimentRun.open(writer.publish(), writer.write_report if report_later else None)
        tracked.complete(run.path)
        return run


def _tracked(data: SentimentData) -> TrackedData:
    sizes = {part: len(rows) for part, rows in data.parts().items()}
    return TrackedData(data.name, data_digest(data.contents()), sizes)


def _alone(
    model: keras.Model,
    target: Target,
    ngrams: NgramModel,
    parts: Mapping[str, TokenRows],
    config: SentimentConfig,
) -> Alone:
    """What the GRU answers by itself, and its share in a combined answer."""
    held_out = {part: parts[part] for part in ("validation", "test")}
    logits = {part: predict_logits(model, rows.ids) for part, rows in held_out.items()}
    counted = {part: ngrams.logits(rows.ids) for part, rows in held_out.items()}
    shares = fitted_shares(
        parts["validation"], logits["validation"], counted["validation"], target, config
    )
    both = {
        part: np.float32(shares[0]) * logits[part] + np.float32(shares[1]) * counted[part]
        for part in held_out
    }
    return Alone(logits, shares, both, ngrams.penalty)


def fit_baselines(
    target: Target, parts: Mapping[str, TokenRows], ngrams: NgramModel | None, console: Console
) -> list[baselines.BaselineResult]:
    """The simple models beside a network; those of n-grams where these were fitted."""
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
