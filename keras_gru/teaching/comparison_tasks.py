"""Three tasks for recurrent cells: long memory, one word, a small corpus.

What texts assert about gates is measured here: the same loop, optimiser, seeds and number of
updates for each cell.
"""

from __future__ import annotations

import importlib.resources
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_gru.missing_extra import naming_extra
from keras_gru.teaching.architectures import ARCHITECTURES, build_model
from keras_gru.teaching.comparison import (
    WINDOW,
    Batch,
    ComparisonConfig,
    Progress,
    Run,
    cross_entropy,
    gradient_flow,
    squared_error,
    train,
)

TASKS = ("adding", "word", "corpus")
SOLVED = 0.01
"""Mean squared error of the adding problem that counts as solved; guessing 1 gives 1/6."""
WORD = "deep"
WORD_UNITS = 4
CORPUS_STEPS = 64


def run_comparison(
    config: ComparisonConfig, tasks: tuple[str, ...], progress: Progress
) -> Iterator[Run]:
    """Train every cell on every task; yields each run as it ends.

    Args:
        config: What to run.
        tasks: Of `adding`, `word`, `corpus`.
        progress: Told about every few updates.
    """
    if "adding" in tasks:
        for length in config.lengths:
            for name, seed in _each(config):
                yield adding_run(config, name, seed, length, progress)
    if "word" in tasks:
        for name, seed in _each(config):
            yield word_run(config, name, seed, progress)
    if "corpus" in tasks:
        text = read_corpus(config.corpus)
        for name, seed in _each(config):
            yield corpus_run(config, name, seed, text, progress)


def _each(config: ComparisonConfig) -> Iterator[tuple[str, int]]:
    for name in ARCHITECTURES:
        for seed in range(config.seeds):
            yield name, seed


def adding_batch(rng: np.random.Generator, batch_size: int, length: int) -> Batch:
    """The adding problem (Hochreiter & Schmidhuber 1997): the sum of the two marked numbers.

    Returns:
        Inputs (B, T, 2): a number in [0, 1) and a mark, which is 1 once in each half of the
        sequence; targets (B, 1).
    """
    inputs = np.zeros((batch_size, length, 2), np.float32)
    inputs[:, :, 0] = rng.random((batch_size, length))
    rows = np.arange(batch_size)
    first = rng.integers(0, length // 2, batch_size)
    second = rng.integers(length // 2, length, batch_size)
    inputs[rows, first, 1] = inputs[rows, second, 1] = 1
    return inputs, (inputs[rows, first, 0] + inputs[rows, second, 0])[:, None]


def adding_run(
    config: ComparisonConfig, name: str, seed: int, length: int, progress: Progress
) -> Run:
    """Train one cell on the adding problem until it is solved or the updates are spent."""
    keras.utils.set_random_seed(seed)
    units = config.units_of(name, 2)
    model = build_model(name, 2, units, 1, sequences=False)
    rng = np.random.default_rng(seed)
    probe = adding_batch(np.random.default_rng(10_000 + seed), 32, length)
    before = gradient_flow(model, *probe)

    def batches() -> Iterator[Batch]:
        while True:
            yield adding_batch(rng, config.batch_size, length)

    def solved(losses: list[float]) -> bool:
        return len(losses) >= WINDOW and float(np.mean(losses[-WINDOW:])) < SOLVED

    def report(done: int, loss: float) -> None:
        progress(f"adding, {length} steps: {name}", done, config.updates, loss)

    losses, seconds = train(model, batches(), squared_error, config, solved, report)
    return Run(
        "adding",
        name,
        seed,
        length,
        units,
        model.count_params(),
        len(losses),
        seconds,
        losses,
        solved_after=len(losses) if solved(losses) else None,
        gradient_before=before,
        gradient_after=gradient_flow(model, *probe),
    )


def word_run(config: ComparisonConfig, name: str, seed: int, progress: Progress) -> Run:
    """Auto-complete one word, character by character, with four units.

    The letter e is followed by e once and by p once: without memory at most three of the four
    next characters can be right.
    """
    keras.utils.set_random_seed(seed)
    alphabet = [*sorted(set(WORD)), "<stop>"]
    codes = [alphabet.index(letter) for letter in WORD]
    inputs = np.eye(len(alphabet), dtype=np.float32)[codes][None]
    targets = np.array([[*codes[1:], alphabet.index("<stop>")]])
    model = build_model(name, len(alphabet), WORD_UNITS, len(alphabet), sequences=True)

    def batches() -> Iterator[Batch]:
        while True:
            yield inputs, targets

    predict = tf.function(model, autograph=False)

    def right() -> float:
        return float(np.mean(np.argmax(predict(inputs), axis=-1) == targets))

    def solved(_: list[float]) -> bool:
        return right() == 1.0

    def report(done: int, loss: float) -> None:
        progress(f'"{WORD}": {name}', done, config.updates, loss)

    losses, seconds = train(model, batches(), cross_entropy, config, solved, report)
    accuracy = right()
    return Run(
        "word",
        name,
        seed,
        len(WORD),
        WORD_UNITS,
        model.count_params(),
        len(losses),
        seconds,
        losses,
        solved_after=len(losses) if accuracy == 1.0 else None,
        accuracy=accuracy,
    )


def read_corpus(path: Path | None) -> str:
    """The text to learn: a file, or the data set descriptions that come with scikit-learn.

    Raises:
        ValueError: The file is no UTF-8 text, or too short to hold out a part.
        OSError: The file cannot be read.
        ModuleNotFoundError: No file is given and scikit-learn is not installed.
    """
    if path is None:
        with naming_extra("train", "sklearn"):
            folder = importlib.resources.files("sklearn.datasets.descr")
        files = sorted(folder.iterdir(), key=lambda file: file.name)
        texts = [f.read_text(encoding="utf-8") for f in files if f.name.endswith(".rst")]
        text = "\n".join(texts)
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"corpus: expected UTF-8 text in {path}, got {error}") from error
    if len(text) < 5000:
        raise ValueError(f"corpus: expected 5,000 characters or more, got {len(text)}")
    return text


def corpus_run(
    config: ComparisonConfig, name: str, seed: int, text: str, progress: Progress
) -> Run:
    """Predict the next character; judged on the last tenth of the text."""
    keras.utils.set_random_seed(seed)
    alphabet, codes = np.unique(np.array(list(text)), return_inverse=True)
    cut = len(codes) * 9 // 10
    units = config.units_of(name, len(alphabet))
    model = build_model(name, len(alphabet), units, len(alphabet), sequences=True)
    rng = np.random.default_rng(seed)

    def batches() -> Iterator[Batch]:
        while True:
            starts = rng.integers(0, cut - CORPUS_STEPS - 1, config.batch_size)
            rows = codes[starts[:, None] + np.arange(CORPUS_STEPS + 1)]
            yield np.eye(len(alphabet), dtype=np.float32)[rows[:, :-1]], rows[:, 1:]

    def report(done: int, loss: float) -> None:
        progress(f"corpus: {name}", done, config.updates, loss)

    losses, seconds = train(model, batches(), cross_entropy, config, lambda _: False, report)
    inputs = np.eye(len(alphabet), dtype=np.float32)[codes[None, cut:-1]]
    logits, targets = tf.function(model, autograph=False)(inputs), codes[None, cut + 1 :]
    return Run(
        "corpus",
        name,
        seed,
        CORPUS_STEPS,
        units,
        model.count_params(),
        len(losses),
        seconds,
        losses,
        accuracy=float(np.mean(np.argmax(logits, axis=-1) == targets)),
        bits=float(cross_entropy(logits, targets)) / float(np.log(2)),
    )


def context_baseline(text: str, order: int) -> tuple[float, float]:
    """Counting: accuracy and bits per character of the next one, given `order` characters.

    Contexts not seen in training fall back to shorter ones, down to single characters; each
    order adds its counts to the probabilities of the order below it.
    """
    cut = len(text) * 9 // 10
    counts: list[dict[str, Counter[str]]] = [{} for _ in range(order + 1)]
    for i in range(cut):
        for n in range(min(order, i) + 1):
            counts[n].setdefault(text[i - n : i], Counter())[text[i]] += 1
    size = len(set(text))
    right, bits = 0, 0.0
    for i in range(cut + 1, len(text)):
        probability, guess = 1 / size, ""
        for n in range(order + 1):
            seen = counts[n].get(text[i - n : i])
            if seen is None:
                break
            total = seen.total()
            probability = (seen[text[i]] + 2 * probability) / (total + 2)
            guess = seen.most_common(1)[0][0]
        right += guess == text[i]
        bits -= np.log2(probability)
    return right / (len(text) - cut - 1), bits / (len(text) - cut - 1)
