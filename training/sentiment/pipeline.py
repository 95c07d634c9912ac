"""From labelled texts to a run directory: the sentiment pipeline."""

import time
from collections.abc import Collection, Mapping
from typing import Any

import keras
import tensorflow as tf
from rich.console import Console

from training.data.digest import data_digest
from training.loop.batches import LengthBucketedBatches
from training.loop.fit import FitResult
from training.loop.train import Objective, train
from training.runs.summary import run_summary
from training.runs.writer import TrainingRunWriter, run_name
from training.sentiment.config import SentimentConfig
from training.sentiment.data import SentimentData, load_sentiment_data
from training.sentiment.evaluation import baselines
from training.sentiment.evaluation.report import Alone, TrainedClassifier, write_report
from training.sentiment.network.combination import combine, fit_shares
from training.sentiment.network.logits import EVALUATION_BATCH, predict_logits
from training.sentiment.network.model import build_sentiment_model, initialise_words
from training.sentiment.run import SentimentRun
from training.sentiment.vocabulary.words import sentiment_words
from training.words.count_ratios import word_ratios
from training.words.ngram_model import NgramModel, fit_ngrams
from training.words.token_rows import TokenRows
from training.words.vocabulary import TextPreprocessor, token_ids

BATCH_SIGNATURE = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))
"""Word ids (B, T) and class numbers (B,)."""


def cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Negative log-probability of the right class, (B,), of labels (B,) and logits (B, C)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def accuracy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Whether the likeliest class is the right one, (B,) bool."""
    return tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)


OBJECTIVE = Objective(
    cross_entropy,
    {"accuracy": accuracy},
    score=lambda means: (means["accuracy"], -means["loss"]),
    shown="accuracy",
)


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
            words = sentiment_words(data, config, writer.path.parent, status.update)
            vocabulary = words.vocabulary
            preprocessor = TextPreprocessor(vocabulary, config.data.max_tokens)
            parts = {
                name: TokenRows(token_ids(preprocessor, part.texts), part.labels)
                for name, part in data.parts().items()
            }
        _describe(data, shown, console)
        model = build_sentiment_model(
            config.model,
            len(vocabulary),
            len(data.classes),
            words.vectors,
            words.trained,
            words.pieces,
        )
        if config.model.word_ratios:
            ratios = word_ratios(parts["train"], len(data.classes), words.trained)
            initialise_words(model, ratios)
        digest = data_digest([*data.contents(), *vocabulary.tokens])
        result = _train(model, parts, digest, config, writer, console)
        ngrams = None
        if config.model.ngrams or config.run.ngram_baseline:
            with console.status("fitting the n-gram regression ..."):
                ngrams = fit_ngrams(
                    parts["train"], parts["validation"], len(data.classes), len(vocabulary)
                )
        floors = _baselines(parts, ngrams, console)
        alone = None
        if config.model.ngrams and ngrams is not None:
            with console.status("combining ..."):
                alone = _alone(model, ngrams, parts)
            model = combine(model, ngrams, alone.shares)
        vocabulary.save(writer.path / "vocabulary.txt")
        writer.write_json("classes.json", list(data.classes))
        writer.write_model(model, result)
        with console.status("writing the report ..."):
            write_report(
                writer,
                TrainedClassifier(data, parts, preprocessor, len(vocabulary), model, alone, result),
                floors,
                run_summary(result, config.training.seed, started),
            )
        return SentimentRun.open(writer.publish())


def _train(
    model: keras.Model,
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
        )
        for name, rows in parts.items()
        if name != "test"
    }
    return train(
        model,
        batches["train"],
        batches["validation"].in_length_order,
        OBJECTIVE,
        settings,
        signature=BATCH_SIGNATURE,
        console=console,
        checkpoint=lambda variables: writer.checkpoint(variables, digest),
    )


def _alone(model: keras.Model, ngrams: NgramModel, parts: dict[str, TokenRows]) -> Alone:
    """What the GRU answers by itself, and its share in a combined answer."""
    logits = {part: predict_logits(model, parts[part].ids) for part in ("validation", "test")}
    rows = parts["validation"]
    return Alone(logits, fit_shares(rows.labels, logits["validation"], ngrams.logits(rows.ids)))


def _baselines(
    parts: dict[str, TokenRows], ngrams: NgramModel | None, console: Console
) -> list[baselines.BaselineResult]:
    rows = parts["train"], parts["validation"], parts["test"]
    with console.status("fitting the baselines ..."):
        floors = [baselines.majority_class(*rows), baselines.bag_of_words(*rows)]
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
