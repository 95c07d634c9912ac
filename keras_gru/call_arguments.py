"""Checks of what a layer's call is given beside its inputs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

Tensor = Any


def check_initial_state(name: str, initial_state: Any, batch: int | None, units: int) -> None:
    """ValueError naming the layer unless the state, if there is one, fits the batch."""
    if initial_state is None:
        return
    states = tf.nest.flatten(initial_state)
    shapes = [tuple(state.shape) if hasattr(state, "shape") else state for state in states]
    wanted = tf.TensorShape((batch, units))
    if len(states) != 1 or not (
        isinstance(shapes[0], tuple) and wanted.is_compatible_with(shapes[0])
    ):
        raise ValueError(
            f"Argument `initial_state` of layer {name!r} must be one state of shape "
            f"(batch, {units}), for a batch of {batch}. Received: shapes {shapes}"
        )


def checked_mask(name: str, mask: Any, shape: Any) -> Tensor | None:
    """The mask as bool (B, T), whatever its dtype, or (B, T, 1); Keras may put it in a list."""
    if isinstance(mask, list | tuple):
        mask = mask[0] if mask else None
    if mask is None:
        return None
    received = tuple(mask.shape) if hasattr(mask, "shape") else mask
    mask = tf.convert_to_tensor(mask)
    if mask.shape.rank == 3 and mask.shape[-1] == 1:
        mask = mask[..., 0]
    batch, steps = shape[:2]
    if not any(mask.shape.is_compatible_with((rows, steps)) for rows in (batch, 1)):
        raise ValueError(
            f"Argument `mask` of layer {name!r} must be a boolean tensor or array of "
            f"shape {(batch, steps)}. Received: {received}"
        )
    return tf.cast(mask, tf.bool)
