"""The states of a recurrent layer, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array: TypeAlias = npt.NDArray[Any]
Tensor = Any


@dataclass(frozen=True, eq=False)
class StateTrajectory:
    """A run of a layer in inference, in processing order (reversed with `go_backwards`).

    S is the size of the whole state: U, or 2U for an LSTM, whose h and c stand side by side.
    """

    inputs: Tensor
    """Input sequences, (B, T, D)."""

    previous: Tensor
    """The state before each step, (B, T, S)."""

    states: Tensor
    """The state after each step, (B, T, S); kept where the mask is False."""

    mask: Array
    """Mask of the steps, (B, T); all True if none was given."""

    state_sizes: tuple[int, ...]
    """Sizes of the state's parts, which add up to S."""


def run(layer: Any, inputs: Any, initial_state: Any = None, mask: Any = None) -> StateTrajectory:
    """Run the cell of a layer over a batch.

    Args:
        layer: A recurrent layer of Keras or keras_gru, or a cell.
        inputs: Input sequences, (B, T, D).
        initial_state: State before the first step, (B, S), or its parts; by default the cell's
            own.
        mask: Steps to compute, bool (B, T).

    Raises:
        ValueError: A shape or the dtype does not fit, or the layer has no cell.
    """
    cell = getattr(layer, "cell", layer)
    if not hasattr(cell, "state_size"):
        raise ValueError(
            "Argument `layer` must be a recurrent layer with one cell, or a cell. "
            f"Received: {layer!r}"
        )
    x = tf.convert_to_tensor(inputs)
    if x.shape.rank != 3 or not x.shape.num_elements():
        raise ValueError(
            "Argument `inputs` must have shape (B, T, D), none of them zero. "
            f"Received: {tuple(x.shape)}"
        )
    if not (x.dtype.is_floating or x.dtype.is_integer or x.dtype.is_bool):
        raise ValueError(f"Argument `inputs` must hold real numbers. Received: {x.dtype.name}")
    B, T, _ = x.shape
    valid = np.ones((B, T), bool) if mask is None else np.asarray(mask, bool)
    if valid.shape != (B, T):
        raise ValueError(f"Argument `mask` must have shape {(B, T)}. Received: {valid.shape}")
    if not layer.built:
        layer.build(x.shape if layer is not cell else (B, x.shape[-1]))
    features = _features(cell)
    if features not in (None, x.shape[-1]):
        raise ValueError(
            f"Argument `inputs` must have shape (B, T, {features}), with the features that the "
            f"layer was built for. Received: {tuple(x.shape)}"
        )
    x = tf.cast(x, cell.compute_dtype)
    sizes = tuple(int(size) for size in tf.nest.flatten(cell.state_size))
    if initial_state is None:
        initial_state = cell.get_initial_state(B)
    state = _joined(initial_state, B, sizes, cell.compute_dtype)
    if getattr(layer, "go_backwards", False):
        x, valid = tf.reverse(x, [1]), valid[:, ::-1]
    previous, states = [], []
    for t in range(T):
        previous.append(state)
        state = tf.where(valid[:, t, np.newaxis], advance(cell, x[:, t], state, sizes), state)
        states.append(state)
    return StateTrajectory(x, tf.stack(previous, 1), tf.stack(states, 1), valid, sizes)


def advance(cell: Any, inputs: Tensor, state: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Advance a cell by one step in inference: inputs (N, D), state (N, S) → new state (N, S)."""
    nested = cell.state_size if isinstance(cell.state_size, list | tuple) else [cell.state_size]
    parts = tf.nest.pack_sequence_as(nested, tf.split(state, sizes, axis=-1))
    _, new = cell(inputs, parts, training=False)
    return tf.concat(tf.nest.flatten(new), axis=-1)


def _features(cell: Any) -> int | None:
    """Return D of a built cell, or None for a foreign one that does not show it."""
    first = getattr(cell, "cells", [cell])[0]
    kernel = getattr(first, "kernel", None)
    return None if kernel is None else int(kernel.shape[0])


def _joined(initial_state: Any, batch: int, sizes: tuple[int, ...], dtype: Any) -> Tensor:
    parts = [tf.cast(part, dtype) for part in tf.nest.flatten(initial_state)]
    state = tf.concat(parts, axis=-1)
    if tuple(state.shape) != (batch, sum(sizes)):
        raise ValueError(
            f"Argument `initial_state` must have shape {(batch, sum(sizes))}, or parts of sizes "
            f"{sizes}. Received: shapes {[tuple(part.shape) for part in parts]}"
        )
    return state
