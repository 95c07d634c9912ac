"""A loop over time steps, several per iteration, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Tensor = Any


def run_steps(
    steps: Tensor, take_step: Callable[..., Any], state: Any, unroll: int, direction: Any
) -> Any:
    """Take all steps in either direction, `unroll` of them per iteration, then one by one.

    The loop counts in the direction it runs. If it computed an index from the number of steps or
    from the direction, XLA would take those for constants wherever the index begins a slice, and
    compile anew for each of them; hence also `tf.gather` in place of slices.

    Args:
        steps: Number of steps, a scalar.
        take_step: From the step t and the state before it to the state after it.
        state: Before the first step taken.
        unroll: Steps per iteration.
        direction: 1, or -1 from the last step to the first; an int or a scalar.
    """
    if not isinstance(direction, int):
        return _run_steps_either_way(steps, take_step, state, unroll, direction)
    sign, backwards = direction, direction < 0

    def several(count: int) -> Callable[..., Any]:
        def iteration(t: Tensor, state: Any) -> Any:
            for k in range(count):
                state = take_step(t + sign * k, state)
            return t + sign * count, state

        return iteration

    def left(count: int) -> Callable[..., Any]:
        return lambda t, _: t >= count - 1 if backwards else t <= steps - count

    first = steps - 1 if backwards else tf.zeros_like(steps)
    t, state = tf.while_loop(
        left(unroll), several(unroll), (first, state), maximum_iterations=steps // unroll
    )
    if unroll > 1:
        _, state = tf.while_loop(left(1), several(1), (t, state), maximum_iterations=unroll - 1)
    return state


def _run_steps_either_way(
    steps: Tensor, take_step: Callable[..., Any], state: Any, unroll: int, direction: Tensor
) -> Any:
    """As `run_steps`. The last step and the one before it tell the next."""

    def several(count: int) -> Callable[..., Any]:
        def iteration(taken: Tensor, before: Tensor, t: Tensor, state: Any) -> Any:
            for _ in range(count):
                state = take_step(t, state)
                before, t = t, 2 * t - before
            return taken + count, before, t, state

        return iteration

    first = tf.where(direction > 0, tf.zeros_like(steps), steps - 1)
    run: Any = (tf.zeros_like(steps), first - direction, first, state)
    for count in (unroll, 1) if unroll > 1 else (1,):
        run = tf.while_loop(
            lambda taken, *_, count=count: taken <= steps - count, several(count), run
        )
    return run[-1]


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
