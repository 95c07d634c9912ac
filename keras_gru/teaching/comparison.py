"""Train recurrent cells side by side: one configuration, one loop, one record per run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from keras_gru.teaching.architectures import parameters, units_with

Tensor = Any
Batch = tuple[NDArray[np.float32], NDArray[Any]]
Progress = Callable[[str, int, int, float], None]
"""Called with a run's name, updates done, updates in all, and the latest mean loss."""

WINDOW = 50
"""Updates over which a loss is averaged."""


@dataclass(frozen=True)
class ComparisonConfig:
    """What to run, and for how long."""

    lengths: tuple[int, ...] = (10, 30, 60)
    """Sequence lengths of the adding problem."""
    updates: int = 800
    """Weight updates of each run, at most."""
    units: int = 32
    """Size of the state; with `match="parameters"`, of the GRU's."""
    match: str = "units"
    """`units`: all cells have as many units. `parameters`: about as many parameters as the GRU."""
    learning_rate: float = 0.005
    """Of Adam, with the global norm of the gradient clipped to 1."""
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
        """Units of a cell under `match`."""
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
    """Of the cell and its output layer."""
    updates: int
    seconds: float
    """Training time, without the first update, which builds the graph."""
    losses: list[float]
    """Of every update."""
    solved_after: int | None = None
    """Updates until the task counted as solved; None if it never did."""
    accuracy: float | None = None
    bits: float | None = None
    """Bits per character on held-out text."""
    gradient_before: list[float] = field(default_factory=list)
    """Norm of ∂L/∂(state) after each step, before training, divided by that of the last step."""
    gradient_after: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `json.dump`."""
        return asdict(self)


def train(
    model: Any,
    batches: Iterator[Batch],
    loss: Callable[[Tensor, Tensor], Tensor],
    config: ComparisonConfig,
    solved: Callable[[list[float]], bool],
    report: Callable[[int, float], None],
) -> tuple[list[float], float]:
    """Update until solved or spent.

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
    """How much of the loss's gradient reaches the state after each step.

    Args:
        model: Of `build_model`, with one output at the end.
        inputs: (B, T, D).
        targets: (B, 1).

    Returns:
        T norms of the gradient with respect to the whole state (h, and c of an LSTM), each
        averaged over the batch, divided by that of the last step.
    """
    cell, output = model.layers[0].cell, model.layers[-1]
    sequence = tf.constant(inputs)
    state = cell.get_initial_state(batch_size=len(inputs))
    states = []
    with tf.GradientTape() as tape:
        for t in range(inputs.shape[1]):
            state = state if isinstance(state, list | tuple) else [state]
            h, state = cell(sequence[:, t], state)
            states.append([tf.identity(part) for part in state])
            state = states[-1]
            h = state[0]
        value = squared_error(output(h), tf.constant(targets))
    gradients = tape.gradient(value, states)
    norms = []
    for parts in gradients:
        # Float64: the squares of what is left after a hundred steps underflow in float32.
        whole = np.concatenate([p.numpy().astype(np.float64) for p in parts if p is not None], 1)
        norms.append(float(np.mean(np.linalg.norm(whole, axis=1))))
    return [norm / norms[-1] for norm in norms]


def squared_error(predictions: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error, scalar."""
    return tf.reduce_mean(tf.square(predictions - targets))


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of class indices (B, T) in nats, scalar."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return tf.reduce_mean(losses)
