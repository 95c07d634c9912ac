"""Five recurrent cells trained side by side on three tasks: long memory, one word, a small corpus.

The comparison measures what texts assert about gates: every cell has the same loop, optimiser,
seeds and number of updates. All cells run in Keras' loop, followed by a linear layer.
"""

from __future__ import annotations

import importlib.resources
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from keras_gru.cell import GRUCell
from keras_gru.introspection import flow
from keras_gru.missing_extra import naming_extra
from keras_gru.variants import CoupledGRUCell, MGUCell

Tensor = Any
Batch = tuple[NDArray[np.float32], NDArray[Any]]
Progress = Callable[[str, int, int, float], None]
"""A function that receives a run's name, updates done, updates in all and the latest mean loss."""

WINDOW = 50
"""Updates over which a loss is averaged."""
SOLVED_LOSS = 0.01
"""Mean squared error at which the adding problem counts as solved; guessing 1 gives 1/6."""
WORD = "deep"
WORD_UNITS = 4
CORPUS_STEPS = 64

ARCHITECTURES: dict[str, Callable[[int], Any]] = {
    "vanilla RNN": keras.layers.SimpleRNNCell,
    "LSTM": keras.layers.LSTMCell,
    # (3b), as the texts have it: without the second bias, parameters are 3 : 4 : 1.
    "GRU": lambda units: GRUCell(units, reset_after=False),
    "MGU": MGUCell,
    "coupled GRU": CoupledGRUCell,
}
BLOCKS = {"vanilla RNN": 1, "LSTM": 4, "GRU": 3, "MGU": 2, "coupled GRU": 2}
"""Number of gates and candidates of each cell, (26)."""


def parameters(name: str, features: int, units: int) -> int:
    """Count the parameters of a cell, (26)."""
    return BLOCKS[name] * units * (features + units + 1)


def units_with(name: str, features: int, budget: int) -> int:
    """Find the most units whose cell has at most `budget` parameters; at least 1."""
    units = 1
    while parameters(name, features, units + 1) <= budget:
        units += 1
    return units


def build_model(name: str, features: int, units: int, outputs: int, sequences: bool) -> Any:
    """Build a cell of `ARCHITECTURES` in Keras' loop, and a linear layer.

    With `sequences` there is an output at every step, (B, T, O), else one, (B, O).
    """
    return keras.Sequential(
        [
            keras.Input((None, features)),
            keras.layers.RNN(ARCHITECTURES[name](units), return_sequences=sequences),
            keras.layers.Dense(outputs),
        ]
    )


@dataclass(frozen=True)
class ComparisonConfig:
    """Settings of a comparison."""

    lengths: tuple[int, ...] = (10, 30, 60)
    """Sequence lengths of the adding problem."""
    updates: int = 800
    """Greatest number of weight updates of each run."""
    units: int = 32
    """Size of the state; with `match="parameters"`, of the GRU's state."""
    match: str = "units"
    """`units`: all cells have as many units. `parameters`: about as many parameters as the GRU."""
    learning_rate: float = 0.005
    """Learning rate of Adam, with the global norm of the gradient clipped to 1."""
    batch_size: int = 64
    seeds: int = 1
    """Runs of each cell and task, with seeds 0, 1, …"""
    corpus: Path | None = None
    """A text file; None for the data set descriptions that come with scikit-learn."""

    def __post_init__(self) -> None:
        for name in ("updates", "units", "batch_size", "seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")
        if not self.lengths or min(self.lengths) < 2:
            raise ValueError(f"lengths: expected numbers of 2 or more, got {self.lengths}")
        if self.match not in ("units", "parameters"):
            raise ValueError(f"match: expected units or parameters, got {self.match!r}")
        if not 0 < self.learning_rate < 1:
            raise ValueError(f"learning_rate: expected 0 < rate < 1, got {self.learning_rate}")

    def units_of(self, architecture: str, features: int) -> int:
        """Choose the units of a cell under `match`."""
        if self.match == "units":
            return self.units
        return units_with(architecture, features, parameters("GRU", features, self.units))


@dataclass
class Run:
    """One cell trained once on one task."""

    task: str
    architecture: str
    seed: int
    length: int
    units: int
    parameters: int
    """Parameters of the cell and its output layer."""
    updates: int
    seconds: float
    """Training time, without the first update, which builds the graph."""
    losses: list[float]
    """Loss before every update."""
    solved_after: int | None = None
    """Updates until the task counted as solved; None if it never did."""
    accuracy: float | None = None
    bits: float | None = None
    """Bits per character on held-out text."""
    gradient_before: list[float] = field(default_factory=list)
    """Norm of ∂L/∂(state) after each step, before training, divided by that of the last step."""
    gradient_after: list[float] = field(default_factory=list)


def train(
    model: Any,
    batches: Iterator[Batch],
    loss: Callable[[Tensor, Tensor], Tensor],
    config: ComparisonConfig,
    solved: Callable[[list[float]], bool],
    report: Callable[[int, float], None],
) -> tuple[list[float], float]:
    """Update a built model until its task is solved or the updates are spent.

    `solved` judges all losses so far, and `report` receives the updates done and the latest mean.

    Returns:
        The loss before each update, and the seconds of all updates but the first, which builds
        the graph.
    """
    optimizer = keras.optimizers.Adam(config.learning_rate, global_clipnorm=1.0)
    optimizer.build(model.trainable_variables)

    @tf.function(reduce_retracing=True, autograph=False)
    def update(inputs: Tensor, targets: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            value = loss(model(inputs, training=True), targets)
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    losses: list[float] = []
    seconds = 0.0
    while len(losses) < config.updates and not (losses and solved(losses)):
        inputs, targets = next(batches)
        started = time.perf_counter()
        losses.append(float(update(tf.constant(inputs), tf.constant(targets))))
        if len(losses) > 1:
            seconds += time.perf_counter() - started
        if len(losses) % 10 == 0:
            report(len(losses), float(np.mean(losses[-WINDOW:])))
    return losses, seconds


def gradient_flow(model: Any, inputs: NDArray[Any], targets: NDArray[Any]) -> list[float]:
    """Measure how much of the loss's gradient reaches the state after each step.

    Args:
        model: A model of `build_model` with one output at the end.
        inputs: Inputs, (B, T, D).
        targets: Targets, (B, 1).

    Returns:
        T norms of the gradient with respect to the whole state (h, and c of an LSTM), each
        averaged over the batch, divided by that of the last step.
    """
    layer, output = model.layers

    def loss(states: Tensor) -> Tensor:
        return squared_error(output(states[:, -1]), tf.constant(targets))

    found = flow.gradient_flow(layer, inputs, loss).loss
    assert found is not None
    norms = np.mean(found, axis=0)[1:]
    return list(norms / norms[-1])


def squared_error(predictions: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean squared error, scalar."""
    return tf.reduce_mean(tf.square(predictions - targets))


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean cross-entropy of class indices (B, T) in nats, scalar."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return tf.reduce_mean(losses)


def run_comparison(
    config: ComparisonConfig, tasks: tuple[str, ...], progress: Progress
) -> Iterator[Run]:
    """Train every cell on the tasks `adding`, `word` and `corpus`; yields each run as it ends."""
    each = list(itertools.product(ARCHITECTURES, range(config.seeds)))
    if "adding" in tasks:
        for length in config.lengths:
            yield from (adding_run(config, name, seed, length, progress) for name, seed in each)
    if "word" in tasks:
        yield from (word_run(config, name, seed, progress) for name, seed in each)
    if "corpus" in tasks:
        text = read_corpus(config.corpus)
        yield from (corpus_run(config, name, seed, text, progress) for name, seed in each)


def adding_batch(rng: np.random.Generator, batch_size: int, length: int) -> Batch:
    """Draw the adding problem with numbers in [0, 1): inputs (B, T, 2) and targets (B, 1)."""
    inputs, targets = flow.adding_problem(batch_size, length, rng)
    inputs[..., 0] = (inputs[..., 0] + 1) / 2
    return inputs, targets / 2 + 1


def _run(
    config: ComparisonConfig,
    progress: Progress,
    labels: tuple[str, str, int, int],
    model: Any,
    batches: Iterator[Batch],
    loss: Callable[[Tensor, Tensor], Tensor],
    solved: Callable[[list[float]], bool],
) -> Run:
    """Train a model; `labels` are the first four fields of the run, the others as for `train`."""
    task, name, _, length = labels
    title = {"adding": f"adding, {length} steps", "word": f'"{WORD}"'}.get(task, task)

    def report(done: int, latest: float) -> None:
        progress(f"{title}: {name}", done, config.updates, latest)

    losses, seconds = train(model, batches, loss, config, solved, report)
    return Run(
        *labels,
        units=model.layers[0].cell.units,
        parameters=model.count_params(),
        updates=len(losses),
        seconds=seconds,
        losses=losses,
        solved_after=len(losses) if solved(losses) else None,
    )


def adding_run(
    config: ComparisonConfig, name: str, seed: int, length: int, progress: Progress
) -> Run:
    """Train one cell on the adding problem until it is solved or the updates are spent."""
    keras.utils.set_random_seed(seed)
    model = build_model(name, 2, config.units_of(name, 2), 1, sequences=False)
    rng = np.random.default_rng(seed)
    probe = adding_batch(np.random.default_rng(10_000 + seed), 32, length)
    before = gradient_flow(model, *probe)

    def solved(losses: list[float]) -> bool:
        return len(losses) >= WINDOW and float(np.mean(losses[-WINDOW:])) < SOLVED_LOSS

    batches = (adding_batch(rng, config.batch_size, length) for _ in itertools.count())
    labels = "adding", name, seed, length
    run = _run(config, progress, labels, model, batches, squared_error, solved)
    run.gradient_before, run.gradient_after = before, gradient_flow(model, *probe)
    return run


def word_run(config: ComparisonConfig, name: str, seed: int, progress: Progress) -> Run:
    """Train one cell to complete one word, character by character, with four units.

    The letter e is followed by e once and by p once: without memory at most three of the four
    next characters can be right.
    """
    keras.utils.set_random_seed(seed)
    alphabet = [*sorted(set(WORD)), "<stop>"]
    codes = [alphabet.index(letter) for letter in WORD]
    inputs = np.eye(len(alphabet), dtype=np.float32)[codes][None]
    targets = np.array([[*codes[1:], alphabet.index("<stop>")]])
    model = build_model(name, len(alphabet), WORD_UNITS, len(alphabet), sequences=True)
    predict = tf.function(model, autograph=False)

    def accuracy() -> float:
        return float(np.mean(np.argmax(predict(inputs), axis=-1) == targets))

    labels = "word", name, seed, len(WORD)
    batches = itertools.repeat((inputs, targets))
    run = _run(config, progress, labels, model, batches, cross_entropy, lambda _: accuracy() == 1.0)
    run.accuracy = accuracy()
    return run


def corpus_run(
    config: ComparisonConfig, name: str, seed: int, text: str, progress: Progress
) -> Run:
    """Train one cell to predict the next character, and evaluate it on the text's last tenth."""
    keras.utils.set_random_seed(seed)
    alphabet, codes = np.unique(np.array(list(text)), return_inverse=True)
    cut = len(codes) * 9 // 10
    size = len(alphabet)
    model = build_model(name, size, config.units_of(name, size), size, sequences=True)
    rng = np.random.default_rng(seed)
    one_hot = np.eye(size, dtype=np.float32)

    def batch() -> Batch:
        starts = rng.integers(0, cut - CORPUS_STEPS - 1, config.batch_size)
        rows = codes[starts[:, None] + np.arange(CORPUS_STEPS + 1)]
        return one_hot[rows[:, :-1]], rows[:, 1:]

    labels = "corpus", name, seed, CORPUS_STEPS
    batches = (batch() for _ in itertools.count())
    run = _run(config, progress, labels, model, batches, cross_entropy, lambda _: False)
    logits = tf.function(model, autograph=False)(one_hot[codes[None, cut:-1]])
    targets = codes[None, cut + 1 :]
    run.accuracy = float(np.mean(np.argmax(logits, axis=-1) == targets))
    run.bits = float(cross_entropy(logits, targets)) / float(np.log(2))
    return run


def read_corpus(path: Path | None) -> str:
    """Read the text to learn: a file, or the data set descriptions that come with scikit-learn.

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


def context_baseline(text: str, order: int) -> tuple[float, float]:
    """Predict the next character by counts after the `order` characters before it.

    Contexts not seen in training fall back to shorter ones, down to single characters; each
    order adds its counts to the probabilities of the order below it.

    Returns:
        The accuracy, and the bits per character, both on the last tenth of the text.
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
