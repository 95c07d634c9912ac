"""The states of a recurrent layer, and the gates of a GRU, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_gru import functional
from keras_gru.arguments import real
from keras_gru.cell import cell_of
from keras_gru.missing_extra import naming_extra

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
    x = real("inputs", x, cell.compute_dtype)
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


# The gates of a GRU ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GateActivity:
    """Gates and state of a GRU for a batch; arrays (B, T, U), step t belonging to input t.

    Where the mask is False the layer computes no gates: there z, r and g are NaN.
    """

    z: Array
    """Update gate (1)."""

    r: Array
    """Reset gate (2)."""

    g: Array
    """Candidate (3)."""

    state: Array
    """State after the step (4); kept where the mask is False."""

    update_gate: str
    """Effect of z = 1 on the state: `"keep"` or `"replace"`."""


def gates_over_time(
    layer: Any, inputs: Any, initial_state: Any = None, mask: Any = None
) -> GateActivity:
    """Compute gates, candidate and state at every step of a batch, in inference.

    >>> layer = GRU(4, **recommended(max_period=20, seed=1))
    >>> inputs = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
    >>> activity = gates_over_time(layer, inputs, mask=[[1, 1, 1, 1, 0, 0], [1] * 6])
    >>> activity.z.shape, bool(np.isnan(activity.z[0, 4:]).all())
    ((2, 6, 4), True)
    >>> kept = np.nanmean(activity.z)                   # on average, a step keeps most of the state
    >>> bool(kept > 0.7)
    True

    Args:
        layer: A GRU or GRUCell of keras_gru or keras.layers; for a `GRUEncoder`, one of its
            `layers`, with that layer's inputs.
        inputs: Input sequences, (B, T, D).
        initial_state: State before the first step, (B, U); by default zeros or the learned state.
        mask: Steps to compute, bool (B, T).

    Raises:
        ValueError: The layer is no GRU, or a shape does not fit.
    """
    cell = cell_of(layer)
    trajectory = run(layer, inputs, initial_state, mask)
    convention = functional.Convention(
        cell.reset_after,
        getattr(cell, "update_gate", "keep"),
        cell.activation,
        cell.recurrent_activation,
    )
    dtype = trajectory.states.dtype
    bias = tf.cast(cell.bias, dtype) if cell.use_bias else None
    gain = getattr(cell, "layer_norm_gain", None)
    # The states are known, so all steps of all rows pass through the equations as one batch.
    gates = functional.gates(
        trajectory.inputs,
        trajectory.previous,
        tf.cast(cell.kernel, dtype),
        tf.cast(cell.recurrent_kernel, dtype),
        bias,
        convention,
        layer_norm_gain=None if gain is None else tf.cast(gain, dtype),
    )
    order = slice(None, None, -1 if getattr(layer, "go_backwards", False) else 1)
    z, r, g = (np.where(trajectory.mask[..., np.newaxis], gate, np.nan)[:, order] for gate in gates)
    return GateActivity(z, r, g, trajectory.states.numpy()[:, order], convention.update_gate)


def plot_gates(activity: GateActivity, row: int = 0, labels: Sequence[str] | None = None) -> Any:
    """Plot heat maps of the gates, the candidate and the state of one row: units over steps.

    Masked steps are grey in the gates. The colours of candidate and state span the largest
    magnitude in the picture.

    Args:
        activity: Result of `gates_over_time`.
        row: Index of the row in the batch.
        labels: One label per step, such as the tokens of a sentence.

    Returns:
        A `matplotlib.figure.Figure`; `figure.savefig("gates.png")` writes it.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: There are more or fewer labels than steps.
    """
    with naming_extra("plot", "matplotlib"):
        from matplotlib.figure import Figure

    steps = activity.z.shape[1]
    if labels is not None and len(labels) != steps:
        raise ValueError(
            f"Argument `labels` must have one label per step, {steps}. Received: {len(labels)}"
        )
    one_does = {"keep": "keeps the state", "replace": "takes the candidate"}
    panels = (
        (f"update gate z (1 {one_does[activity.update_gate]})", activity.z, True),
        ("reset gate r (1 lets the state into the candidate)", activity.r, True),
        ("candidate g", activity.g, False),
        ("state h", activity.state, False),
    )
    figure = Figure(figsize=(min(max(6.0, 0.3 * steps + 2), 16), 9), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True)
    for ax, (title, values, is_gate) in zip(axes, panels, strict=True):
        largest = 1.0 if is_gate else float(np.nanmax(np.abs(values[row]), initial=1e-6))
        ax.set_facecolor("0.8")
        image = ax.imshow(
            np.ma.masked_invalid(values[row].T),
            aspect="auto",
            cmap="viridis" if is_gate else "RdBu_r",
            vmin=0 if is_gate else -largest,
            vmax=largest,
            interpolation="nearest",
        )
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_ylabel("unit")
        for axis in (ax.xaxis, ax.yaxis):  # there is no step 2.5
            axis.get_major_locator().set_params(integer=True)
        figure.colorbar(image, ax=ax)
    if labels is None:
        axes[-1].set_xlabel("step")
    else:
        axes[-1].set_xticks(range(steps), labels, rotation=90)
    return figure
