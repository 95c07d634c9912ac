"""The time loop over `step`, forward and backward, of one block of rows.

Public TensorFlow operations only, which run eagerly, in a graph and compiled by XLA. Sequences
come in batch-major, (B, T, …), and are read in place, in either direction; what the loop leaves is
time-major, (T, B, …), as it is written. Everything is in the order of the sequence, also where the
loop runs from its end to its start. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.convention import Convention
from keras_gru.kernel.loop import run_steps, share_reader, state_array, time_reader
from keras_gru.kernel.products import masked_states
from keras_gru.kernel.step import Saved, step, step_backward
from keras_gru.kernel.weights import GATE_COUNT, Gates, StepWeights, split_gates

Tensor = Any


class Rows(NamedTuple):
    """What belongs to the rows of a batch: every tensor but a scalar has the batch axis first.

    Attributes:
        inputs: (B, T, D) with `Shared.kernel`, else the projected inputs (B, T, 3U).
        initial_state: (B, U).
        mask: bool (B, T), or None. Where false the state is kept (5).
        zoneout: Share of the old state that each unit keeps, (B, T, U), a scalar for all, or None.
        recurrent_mask: Dropout masks of the state, one (B, U) per gate, or None.
    """

    inputs: Tensor
    initial_state: Tensor
    mask: Tensor | None
    zoneout: Tensor | None
    recurrent_mask: Gates | None


class Shared(NamedTuple):
    """What all rows share.

    Attributes:
        steps: Number of steps to take, a scalar; sequences may be longer.
        weights: Of a step.
        kernel: Packed input kernel (D, 3U), to project the inputs step by step, or None.
        projection_bias: (3U,), with `kernel`, or None.
    """

    steps: Tensor
    weights: StepWeights
    kernel: Tensor | None
    projection_bias: Tensor | None


class Mode(NamedTuple):
    """How to run; never a tensor.

    Attributes:
        convention: Which GRU.
        go_backwards: From the last step to the first.
        compiled: Written for XLA, which wants one slice per gate; else for TensorFlow's executor,
            which wants few operations.
        unroll: Steps per iteration of the loop.
    """

    convention: Convention
    go_backwards: bool
    compiled: bool
    unroll: int

    @property
    def before(self) -> int:
        """Where in `Trajectory.states` the states before the steps begin."""
        return 1 if self.go_backwards else 0

    @property
    def after(self) -> int:
        """Where in `Trajectory.states` the states after the steps begin."""
        return 1 - self.before


class Keep(NamedTuple):
    """What a forward pass is to leave beside the final state: fields of `Trajectory`."""

    outputs: bool
    states: bool
    saved: bool


class Trajectory(NamedTuple):
    """What a forward pass leaves.

    Attributes:
        final: (B, U).
        outputs: State after each step, (B, T, U), or None.
        states: States (T + 1, B, U), or None: before and after step t at t and t + 1, or, going
            backwards, at t + 1 and t.
        saved: The fields of `Saved` that are there, (T, B, U) each, or nothing.
        projected: The projected inputs (B, T, 3U) from which `recall` makes `saved`, or None.
    """

    final: Tensor | None
    outputs: Tensor | None
    states: Tensor | None
    saved: tuple[Tensor, ...]
    projected: Tensor | None = None


class Deltas(NamedTuple):
    """Gradients of a loss with respect to what enters the steps; zero where masked.

    Attributes:
        x: δa_z, δa_r and δa_g, (T, B, U) each.
        q: δq with the reset gate after the matmul, (T, B, U), else None.
        initial_state: (B, U).
        reset_states: r ⊙ h with the reset gate before the matmul, (T, B, U), else None: what the
            candidate's recurrent kernel multiplied.
    """

    x: Gates
    q: Tensor | None
    initial_state: Tensor
    reset_states: Tensor | None


def forward(rows: Rows, shared: Shared, mode: Mode, keep: Keep) -> Trajectory:
    """Run from the initial state over `shared.steps` steps."""
    h0, weights = rows.initial_state, shared.weights
    capacity = tf.shape(rows.inputs)[1]
    read_input = _input_reader(rows, shared, mode)
    read_mask = time_reader(rows.mask)
    read_share = share_reader(rows.zoneout)
    first = shared.steps if mode.go_backwards else 0
    fields = 4 if mode.convention.reset_after else 3

    def take_step(t: Tensor, run: Any) -> Any:
        h, states, saved = run
        h_new, values = step(read_input(t), h, weights, mode.convention, rows.recurrent_mask)
        h_new = kept_in_part(
            h,
            h_new,
            None if read_mask is None else read_mask(t)[:, tf.newaxis],
            None if read_share is None else read_share(t),
        )
        h_new.set_shape(h0.shape)
        states = tuple(array.write(t + mode.after, h_new) for array in states)
        saved = tuple(a.write(t, v) for a, v in zip(saved, values, strict=False))
        return h_new, states, saved

    if tf.get_static_value(shared.steps) == 1 and not (keep.states or keep.saved):  # streaming
        final, _, _ = take_step(tf.constant(0), (h0, (), ()))  # no loop, no arrays
        return Trajectory(final, final[:, tf.newaxis] if keep.outputs else None, None, ())
    states = (
        (state_array(capacity + 1, h0).write(first, h0),) if keep.outputs or keep.states else ()
    )
    saved = tuple(state_array(capacity, h0) for _ in range(fields)) if keep.saved else ()
    final, states, saved = run_steps(
        shared.steps, take_step, (h0, states, saved), mode.unroll, mode.go_backwards
    )
    stacked = states[0].stack() if states else None
    return Trajectory(
        final=final,
        outputs=batch_major(states_of(stacked, mode.after)) if keep.outputs else None,
        states=stacked if keep.states else None,
        saved=tuple(array.stack() for array in saved),
    )


def backward(
    rows: Rows,
    shared: Shared,
    run: Trajectory,
    d_outputs: Tensor | None,
    d_final: Tensor,
    mode: Mode,
) -> Deltas:
    """Carry gradients from the last step to the first.

    Args:
        rows: As given to `forward`; the inputs are not read.
        shared: As given to `forward`; the kernel is not read.
        run: What `forward` left, with `states`, and with `saved` or `projected`.
        d_outputs: Gradient with respect to the states after the steps, (B, T, U), or None.
        d_final: Gradient with respect to `run.final`, (B, U).
        mode: As given to `forward`.
    """
    convention, transposed = mode.convention, shared.weights.transposed()
    kept = run.saved or recall(rows, shared, run, mode)
    capacity = tf.shape(kept[0])[0]
    read_upstream = time_reader(d_outputs)
    read_mask = time_reader(rows.mask)
    read_share = share_reader(rows.zoneout)
    states: Any = run.states

    def take_step(t: Tensor, state: Any) -> Any:
        dh, arrays = state
        # tf.gather, not v[t]: see `run_steps`.
        q = () if convention.reset_after else (None,)
        saved = Saved(*(tf.gather(v, t) for v in kept), *q)
        h = tf.gather(states, t + mode.before)
        if read_upstream is not None:
            dh += read_upstream(t)  # (6)
        dh_kept = None if read_share is None else dh * read_share(t)
        dh_step = dh if dh_kept is None else dh - dh_kept
        back = step_backward(dh_step, saved, h, transposed, convention, rows.recurrent_mask)
        dh_previous = back.h if dh_kept is None else back.h + dh_kept
        deltas = (*back.x, back.q)[: len(arrays)]
        if read_mask is not None:
            valid = read_mask(t)[:, tf.newaxis]
            dh_previous = tf.where(valid, dh_previous, dh)
            deltas = tuple(tf.where(valid, delta, tf.zeros_like(delta)) for delta in deltas)
        dh_previous.set_shape(d_final.shape)
        arrays = tuple(a.write(t, delta) for a, delta in zip(arrays, deltas, strict=True))
        return dh_previous, arrays

    arrays = tuple(state_array(capacity, d_final) for _ in kept)
    dh0, arrays = run_steps(
        shared.steps, take_step, (d_final, arrays), mode.unroll, not mode.go_backwards
    )
    *x, q = (*(array.stack() for array in arrays), None)[:4]
    reset_states = None
    if not convention.reset_after:
        reset_states = kept[1] * multiplied_states(rows, run, mode).g
        mask = None if rows.mask is None else tf.transpose(rows.mask)
        reset_states = without_masked(reset_states, mask)
    return Deltas(Gates(*x), q, dh0, reset_states)


def multiplied_states(rows: Rows, run: Trajectory, mode: Mode) -> Gates:
    """The states before each step, as each gate's matmul sees them, (T, B, U)."""
    return masked_states(states_of(run.states, mode.before), rows.recurrent_mask)


def recall(rows: Rows, shared: Shared, run: Trajectory, mode: Mode) -> tuple[Tensor, ...]:
    """`Trajectory.saved` of all steps at once.

    Given the states, no step waits for another.
    """
    before = states_of(run.states, mode.before)
    steps, batch, units = (tf.shape(before)[0], tf.shape(before)[1], before.shape[-1])
    x = tf.reshape(tf.transpose(run.projected, [1, 0, 2]), [-1, GATE_COUNT * units])
    masks = rows.recurrent_mask and Gates(*(tf.tile(m, [steps, 1]) for m in rows.recurrent_mask))
    h = tf.reshape(before, [-1, units])
    _, saved = step(split_gates(x), h, shared.weights, mode.convention, masks)
    return tuple(tf.reshape(v, [steps, batch, units]) for v in saved if v is not None)


def kept_in_part(h: Tensor, h_new: Tensor, valid: Tensor | None, share: Tensor | None) -> Tensor:
    """The new state (B, U) as mask and zoneout leave it.

    Args:
        h: State before the step.
        h_new: State after it.
        valid: bool (B, 1): where false the state is kept, or None.
        share: Share of the old state that each unit keeps, (B, U), a scalar, or None.
    """
    if share is not None:
        h_new = share * h + (1 - share) * h_new
    return h_new if valid is None else tf.where(valid, h_new, h)  # (5)


def without_masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """Values (…, …, V) with zeros where the mask (…, …) is False: 0 · NaN would be NaN."""
    if mask is None:
        return values
    return tf.where(tf.expand_dims(mask, -1), values, tf.zeros_like(values))


def states_of(states: Tensor, first: int) -> Tensor:
    """T of the T + 1 states of a `Trajectory`, from `Mode.before` or `Mode.after`."""
    return states[1:] if first else states[:-1]


def batch_major(states: Tensor) -> Tensor:
    """(T, B, U) → (B, T, U)."""
    return tf.transpose(states, [1, 0, 2])


def _input_reader(rows: Rows, shared: Shared, mode: Mode) -> Callable[[Tensor], Gates]:
    inputs, kernel, bias = rows.inputs, shared.kernel, shared.projection_bias
    if kernel is not None:

        def project(t: Tensor) -> Gates:
            projected = tf.matmul(tf.gather(inputs, t, axis=1), kernel)
            return split_gates(projected if bias is None else projected + bias)

        return project
    if not mode.compiled:
        return lambda t: split_gates(tf.gather(inputs, t, axis=1))
    # XLA compiles a gate's arithmetic to scalar code where it reads from a slice that others share.
    batch, units = tf.shape(inputs)[0], inputs.shape[-1] // GATE_COUNT
    size = tf.stack([batch, 1, units])
    return lambda t: Gates(
        *(tf.slice(inputs, tf.stack([0, t, k * units]), size)[:, 0] for k in range(GATE_COUNT))
    )
