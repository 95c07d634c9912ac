"""A loop over time steps, several per iteration, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Tensor = Any


def run_steps(steps: Tensor, take_step: Callable[..., Any], state: Any, unroll: int) -> Any:
    """Take steps 0 … steps − 1, `unroll` of them per iteration, what remains one by one."""
    blocks = steps // unroll

    def block(b: Tensor, state: Any) -> Any:
        for k in range(unroll):
            state = take_step(b * unroll + k, state)
        return b + 1, state

    _, state = tf.while_loop(
        lambda b, _: b < blocks, block, (tf.constant(0), state), maximum_iterations=blocks
    )
    if unroll > 1:
        _, state = tf.while_loop(
            lambda t, _: t < steps,
            lambda t, state: (t + 1, take_step(t, state)),
            (blocks * unroll, state),
            maximum_iterations=steps,
        )
    return state


def time_reader(sequences: Tensor | None) -> Callable[[Tensor], Tensor] | None:
    """A batch-major sequence (B, T, …), or None, as a function of the step, (B, …)."""
    return None if sequences is None else lambda t: tf.gather(sequences, t, axis=1)


def share_reader(share: Tensor | None) -> Callable[[Tensor], Tensor] | None:
    """Zoneout as a function of the step."""
    if share is None or share.shape.rank:
        return time_reader(share)
    return lambda _: share


def state_array(size: Tensor, like: Tensor) -> tf.TensorArray:
    """An array of `size` tensors like one."""
    return tf.TensorArray(like.dtype, size=size, element_shape=like.shape, clear_after_read=False)
