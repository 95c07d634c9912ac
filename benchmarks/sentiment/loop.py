"""Speed of this project's training loop, compared with `model.fit` on the same classifier.

    python -m benchmarks.sentiment.loop --data ../shared/data/mr

One model each, with the same first weights, dropout, optimizer and clipping, is fed the same padded
batches, a `tf.data` pipeline in the case of `fit`. After an epoch of warm-up they train an epoch in
turn, in every other round in reverse order. An epoch is all training rows once, then loss and
accuracy of the validation rows. `fit` runs as Keras compiles by default (`jit_compile="auto"`,
which means XLA here, and a compilation for every shape of a batch) and without XLA. Both clip by
the global norm; Keras' counts the gradients of a word that occurs twice in a batch apart, that of
the loop counts their sum.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from rich.console import Console

from gru_training.config import require_at_least
from gru_training.errors import TrainingError
from gru_training.loop.batches import Batch, LengthBucketedBatches
from gru_training.loop.fit import fit, make_eval_step, make_train_step
from gru_training.loop.progress import TrainingProgress
from gru_training.sentiment.config import (
    ClassifierConfig,
    SentimentConfig,
    SentimentDataConfig,
    SentimentTrainingConfig,
)
from gru_training.sentiment.data import load_data
from gru_training.sentiment.network.model import EVALUATION_BATCH, build_sentiment_model
from gru_training.sentiment.targets import accuracy, cross_entropy
from gru_training.words.vocabulary import (
    TextPreprocessor,
    TokenRows,
    build_vocabulary,
    index_tokens,
    token_ids,
)

BATCH_SIGNATURE = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))
"""Word ids (B, T) and class numbers (B,)."""
LOOP = "GradientTape loop"
FITS = {"fit, jit_compile=False": False, "fit, as Keras compiles": "auto"}
Epoch = Callable[[int], float]
"""Trains on the epoch of this number; returns its mean training loss."""


@dataclass(frozen=True)
class Contest:
    """The classifier to train and its data."""

    train: TokenRows
    validation: TokenRows
    vocabulary_size: int
    class_count: int
    model: ClassifierConfig
    training: SentimentTrainingConfig

    def train_batches(self) -> LengthBucketedBatches:
        """The same for every contender."""
        rows, settings = self.train, self.training
        return LengthBucketedBatches(rows.ids, rows.labels, settings.batch_size, settings.seed)

    def validation_batches(self) -> LengthBucketedBatches:
        """Batch the validation rows as the training of a run does."""
        return LengthBucketedBatches(self.validation.ids, self.validation.labels, EVALUATION_BATCH)

    def build(self) -> keras.Model:
        """A model with the same first weights and the same dropout draws as every other."""
        keras.utils.set_random_seed(self.training.seed)
        return build_sentiment_model(self.model, self.vocabulary_size, self.class_count)


@dataclass
class Result:
    """The results of a contender in the rounds that count."""

    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, write the figures; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sentiment.loop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="as of gru-train; default: made-up reviews")
    parser.add_argument("--reviews", type=int, default=6000, help="how many to make up")
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--embedding-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5, help="epochs that count")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures")
    arguments = parser.parse_args(argv)
    try:
        require_at_least("--rounds", arguments.rounds, 1)
        contest = prepare(
            SentimentDataConfig(data=arguments.data, reviews=arguments.reviews),
            ClassifierConfig(arguments.embedding_size, arguments.units),
            SentimentTrainingConfig(batch_size=arguments.batch_size),
        )
    except TrainingError as error:
        parser.error(str(error))
    results = run(contenders(contest), arguments.rounds)
    tokens = sum(map(len, contest.train.ids))
    print(markdown(results, tokens))
    if arguments.json is not None:
        figures = {name: vars(result) for name, result in results.items()}
        arguments.json.write_text(
            json.dumps({"tokens": tokens, "contenders": figures}, indent=1) + "\n", "utf-8"
        )
    return 0


def prepare(
    data: SentimentDataConfig, model: ClassifierConfig, training: SentimentTrainingConfig
) -> Contest:
    """Read the data as a training run does."""
    read = load_data(SentimentConfig(data=data, training=training))
    index = index_tokens(read.train.texts)
    vocabulary = build_vocabulary(index, data.max_vocabulary, data.min_count)
    preprocessor = TextPreprocessor(vocabulary, data.max_tokens)
    train, validation = (
        TokenRows(token_ids(preprocessor, part.texts), part.labels)
        for part in (read.train, read.validation)
    )
    return Contest(train, validation, len(vocabulary), len(read.classes), model, training)


def contenders(contest: Contest) -> dict[str, Epoch]:
    """The contenders, each with its own model: the loop and `fit`."""
    loop = _tape_loop(contest, contest.build())
    fits = {name: _keras_fit(contest, contest.build(), jit) for name, jit in FITS.items()}
    return {LOOP: loop, **fits}


def run(epochs: Mapping[str, Epoch], rounds: int) -> dict[str, Result]:
    """Time all contenders in turn, after one epoch that does not count."""
    results = {name: Result() for name in epochs}
    for train in epochs.values():
        train(0)
    for number in range(1, rounds + 1):
        for name in list(epochs)[:: 1 if number % 2 else -1]:
            started = time.perf_counter()
            loss = epochs[name](number)
            results[name].seconds.append(time.perf_counter() - started)
            results[name].losses.append(loss)
    return results


def markdown(results: Mapping[str, Result], tokens: int) -> str:
    """The results as a table, and how the loop compares with the faster `fit`."""
    medians = {name: statistics.median(result.seconds) for name, result in results.items()}
    lines = [
        "| one epoch | median | fastest to slowest | tokens per second | last loss |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, result in results.items():
        lines.append(
            f"| {name} | {medians[name]:.2f} s | {min(result.seconds):.2f} to "
            f"{max(result.seconds):.2f} s | {tokens / medians[name]:,.0f} | "
            f"{result.losses[-1]:.4f} |"
        )
    best = min((name for name in results if name != LOOP), key=lambda name: medians[name])
    share = medians[LOOP] / medians[best]
    return "\n".join([*lines, "", f"The loop takes {share:.2f} times as long as {best}."])


def _tape_loop(contest: Contest, model: keras.Model) -> Epoch:
    batches, settings = contest.train_batches(), contest.training
    optimizer = keras.optimizers.Adam(settings.learning_rate)
    metrics = {"accuracy": accuracy}
    train_step = make_train_step(
        model, optimizer, cross_entropy, metrics, BATCH_SIGNATURE, settings.clip_norm
    )
    eval_step = make_eval_step(model, cross_entropy, metrics, BATCH_SIGNATURE)

    def epoch(number: int) -> float:
        with TrainingProgress(Console(quiet=True), 1, len(batches)) as progress:
            result = fit(
                model,
                train_step,
                eval_step,
                _OneEpoch(batches, number),
                contest.validation_batches().in_length_order,
                epochs=1,
                patience=1,
                score=lambda means: (means["accuracy"],),
                learning_rate=lambda: float(optimizer.learning_rate),
                progress=progress,
            )
        return result.epochs[0].train["loss"]

    return epoch


def _keras_fit(contest: Contest, model: keras.Model, jit_compile: Any) -> Epoch:
    batches, settings = contest.train_batches(), contest.training
    model.compile(
        keras.optimizers.Adam(settings.learning_rate, global_clipnorm=settings.clip_norm),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=jit_compile,
    )
    validation = _pipeline(
        contest.validation_batches().in_length_order, len(contest.validation_batches())
    )

    def epoch(number: int) -> float:
        train = _pipeline(lambda: batches.epoch(number), len(batches))
        told = model.fit(train, validation_data=validation, shuffle=False, verbose=0)
        return float(told.history["loss"][0])

    return epoch


@dataclass(frozen=True)
class _OneEpoch:
    """Batches whose first epoch has a given number."""

    batches: LengthBucketedBatches
    number: int

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, _: int) -> Iterator[Batch]:
        """The batches of the given number, whichever is requested."""
        return self.batches.epoch(self.number)


def _pipeline(batches: Callable[[], Iterator[Batch]], count: int) -> tf.data.Dataset:
    made = tf.data.Dataset.from_generator(
        lambda: map(tuple, batches()), output_signature=BATCH_SIGNATURE
    )
    return made.apply(tf.data.experimental.assert_cardinality(count)).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    raise SystemExit(main())
