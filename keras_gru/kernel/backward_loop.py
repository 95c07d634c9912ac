"""The time loop over `step_backward`, of one block of rows.

Layouts and order are those of `recurrence`. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.loop import run_steps, share_reader, state_array, time_reader
from keras_gru.kernel.normalization import normalize_backward
from keras_gru.kernel.products import masked_states
from keras_gru.kernel.recurrence import (
    Mode,
    Rows,
    Shared,
    Trajectory,
    batch_major,
    recall,
    without_masked,
)
from keras_gru.kernel.step import Saved, step_backward
from keras_gru.kernel.weights import Gates, split_gates

Tensor = Any


class NormalizedDeltas(NamedTuple):
    """Gradients that there are with layer normalisation; zero where masked.

    Attributes:
        inputs: With respect to the products of the inputs and the centred kernel, (T, B, U) each.
        states: The same of the states and the centred recurrent kernel.
        input_gain: (3U,).
        recurrent_gain: (3U,).
    """

    inputs: Gates
    states: Gates
    input_gain: Tensor
    recurrent_gain: Tensor


class Deltas(NamedTuple):
    """Gradients of a loss with respect to what enters the steps; zero where masked.

    Attributes:
        x: δa_z, δa_r and δa_g, (T, B, U) each.
        q: δq with the reset gate after the matmul, (T, B, U), else None; with layer normalisation
            its sum over the steps, (1, B, U).
        initial_state: (B, U).
        reset_states: r ⊙ h with the reset gate before the matmul, (T, B, U), else None: what the
            candidate's recurrent kernel multiplied.
        normalized: With layer normalisation, else None.
    """

    x: Gates
    q: Tensor | None
    initial_state: Tensor
    reset_states: Tensor | None
    normalized: NormalizedDeltas | None = None

    def of_each_step(self, change: Callable[[Any], Any]) -> Deltas:
        """The same with what there is of each step, (T, …), changed by a function."""
        into = self.normalized
        if into is not None:
            into = into._replace(inputs=change(into.inputs), states=change(into.states))
        x, q, reset_states = (change(v) for v in (self.x, self.q, self.reset_states))
        return Deltas(x, q, self.initial_state, reset_states, into)


def backward(
    rows: Rows,
    shared: Shared,
    run: Trajectory,
    before: Tensor,
    d_outputs: Tensor | None,
    d_final: Tensor,
    mode: Mode,
) -> Deltas:
    """Carry gradients from the last step to the first.

    Args:
        rows: As given to `forward`; the inputs are not read.
        shared: As given to `forward`; the kernel is not read.
        run: What `forward` left, with `saved` or `projected`, or both with layer normalisation.
        before: States before the steps, (T, B, U).
        d_outputs: Gradient with respect to the states after the steps, (B, T, U), or None.
        d_final: Gradient with respect to `run.final`, (B, U).
        mode: As given to `forward`.
    """
    convention, transposed = mode.convention, shared.weights.transposed()
    kept = run.saved or recall(rows, shared, before, run.projected, mode)
    direction = mode.direction if shared.direction is None else shared.direction
    capacity = tf.shape(kept[0])[0]
    read_upstream = time_reader(d_outputs)
    read_mask = time_reader(rows.mask)
    read_share = share_reader(rows.zoneout)
    fields = shared.fields(convention)
    normalized = shared.input_gain is not None

    def take_step(t: Tensor, state: Any) -> Any:
        dh, arrays, sums = state
        # tf.gather, not v[t]: see `run_steps`.
        saved = Saved(**{name: tf.gather(v, t) for name, v in zip(fields, kept, strict=True)})
        h = tf.gather(before, t)
        if read_upstream is not None:
            dh += read_upstream(t)  # (6)
        dh_kept = None if read_share is None else dh * read_share(t)
        dh_step = dh if dh_kept is None else dh - dh_kept
        back = step_backward(dh_step, saved, h, transposed, convention, rows.recurrent_mask)
        dh_previous = back.h if dh_kept is None else back.h + dh_kept
        q = () if back.q is None else (back.q,)
        # Of δq only the sum is needed where the product has a gradient of its own.
        deltas = (*back.x, *(back.products or q))
        added = () if back.gain is None else (*back.gain, *q)
        if read_mask is not None:
            valid = read_mask(t)[:, tf.newaxis]
            dh_previous = tf.where(valid, dh_previous, dh)
            deltas, added = (
                tuple(tf.where(valid, delta, tf.zeros_like(delta)) for delta in some)
                for some in (deltas, added)
            )
        dh_previous.set_shape(d_final.shape)
        arrays = tuple(a.write(t, delta) for a, delta in zip(arrays, deltas, strict=True))
        sums = tuple(so_far + one for so_far, one in zip(sums, added, strict=True))
        return dh_previous, arrays, sums

    arrays = tuple(state_array(capacity, d_final) for _ in fields)
    sums = tuple(tf.zeros_like(d_final) for _ in range(3 + convention.reset_after))
    dh0, arrays, sums = run_steps(
        shared.steps,
        take_step,
        (d_final, arrays, sums if normalized else ()),
        mode.unroll,
        -direction,
    )
    stacked = [array.stack() for array in arrays]
    x, more = Gates(*stacked[:3]), stacked[3:]
    mask = None if rows.mask is None else tf.transpose(rows.mask)
    reset_states = None
    if not convention.reset_after:
        reset_states = without_masked(kept[1] * masked_states(before, rows.recurrent_mask).g, mask)
    if not normalized:
        return Deltas(x, more[0] if more else None, dh0, reset_states)
    d_inputs, d_gain = _through_normalized_inputs(x, run.projected, mask, shared.input_gain)
    d_recurrent_gain = tf.concat([tf.reduce_sum(gain, 0) for gain in sums[:3]], -1)
    q = sums[3][tf.newaxis] if convention.reset_after else None
    into = NormalizedDeltas(d_inputs, Gates(*more), d_gain, d_recurrent_gain)
    return Deltas(x, q, dh0, reset_states, into)


def _through_normalized_inputs(
    deltas: Gates, products: Tensor, mask: Tensor | None, gain: Tensor
) -> tuple[Gates, Tensor]:
    """Gradients of the inputs' products, (T, B, U) each, and of their gain, (3U,)."""
    parts = [
        normalize_backward(delta, without_masked(batch_major(a), mask), k)
        for delta, a, k in zip(deltas, split_gates(products), split_gates(gain), strict=True)
    ]
    return Gates(*(d for d, _ in parts)), tf.concat(
        [tf.reduce_sum(d_gain, [0, 1]) for _, d_gain in parts], -1
    )
