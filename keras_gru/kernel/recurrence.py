"""The time loop over `step`, forward, of one block of rows; `backward_loop` is the way back.

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
from keras_gru.kernel.normalization import normalize_gates
from keras_gru.kernel.step import Saved, step
from keras_gru.kernel.weights import GATE_COUNT, Gates, StepWeights, split_gates

Tensor = Any


class Rows(NamedTuple):
    """What belongs to the rows of a batch: every tensor but a scalar has the batch axis first.

    Attributes:
        inputs: (B, T, D) with `Shared.kernel`, else the projected inputs (B, T, 3U); with
            `Shared.input_gain` those without gain and bias.
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
        projection_bias: (3U,), with `kernel` or `input_gain`, or None.
        input_gain: (3U,), with layer normalisation of inputs projected by a centred kernel.
        direction: 1, or -1 from the last step to the first, a scalar: so that both share what XLA
            compiles. None if `Mode` says it.
    """

    steps: Tensor
    weights: StepWeights
    kernel: Tensor | None
    projection_bias: Tensor | None
    input_gain: Tensor | None = None
    direction: Tensor | None = None

    def fields(self, convention: Convention) -> tuple[str, ...]:
        """Of `Saved`, those that a backward pass needs."""
        return Saved.needed(convention.reset_after, self.input_gain is not None)


class Mode(NamedTuple):
    """How to run; never a tensor.

    Attributes:
        convention: Which GRU.
        go_backwards: From the last step to the first; not read where `Shared.direction` is given.
        compiled: Written for XLA, which wants one slice per gate; else for TensorFlow's executor,
            which wants few operations.
        unroll: Steps per iteration of the loop.
    """

    convention: Convention
    go_backwards: bool
    compiled: bool
    unroll: int

    @property
    def direction(self) -> int:
        """1, or -1 from the last step to the first."""
        return -1 if self.go_backwards else 1

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
        saved: `Shared.fields`, (T, B, U) each, or nothing.
        projected: `Rows.inputs` (B, T, 3U) of a backward pass that needs them, or None.
    """

    final: Tensor | None
    outputs: Tensor | None
    states: Tensor | None
    saved: tuple[Tensor, ...]
    projected: Tensor | None = None


def forward(rows: Rows, shared: Shared, mode: Mode, keep: Keep) -> Trajectory:
    """Run from the initial state over `shared.steps` steps."""
    h0, weights = rows.initial_state, shared.weights
    capacity = tf.shape(rows.inputs)[1]
    read_input = _input_reader(rows, shared, mode)
    read_mask = time_reader(rows.mask)
    read_share = share_reader(rows.zoneout)
    direction = mode.direction if shared.direction is None else shared.direction
    # Without the initial state where only the states after the steps are wanted.
    after = (direction + 1) // 2 if keep.states else 0
    fields = shared.fields(mode.convention) if keep.saved else ()

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
        states = tuple(array.write(t + after, h_new) for array in states)
        saved = tuple(
            array.write(t, getattr(values, name)) for array, name in zip(saved, fields, strict=True)
        )
        return h_new, states, saved

    if tf.get_static_value(shared.steps) == 1 and not (keep.states or keep.saved):  # streaming
        final, _, _ = take_step(tf.constant(0), (h0, (), ()))  # no loop, no arrays
        return Trajectory(final, final[:, tf.newaxis] if keep.outputs else None, None, ())
    states: tuple[Any, ...] = ()
    if keep.states:
        first = (1 - direction) // 2 * shared.steps
        states = (state_array(capacity + 1, h0).write(first, h0),)
    elif keep.outputs:
        states = (state_array(capacity, h0),)
    saved = tuple(state_array(capacity, h0) for _ in fields)
    final, states, saved = run_steps(
        shared.steps, take_step, (h0, states, saved), mode.unroll, direction
    )
    stacked: Any = states[0].stack() if states else None
    outputs = stacked
    if keep.outputs and keep.states:
        outputs = states_of(stacked, mode.after)
        if shared.direction is not None:  # not a slice from there on: XLA would compile each
            outputs = tf.where(shared.direction > 0, stacked[1:], stacked[:-1])
    return Trajectory(
        final=final,
        outputs=batch_major(outputs) if keep.outputs else None,
        states=stacked if keep.states else None,
        saved=tuple(array.stack() for array in saved),
    )


def recall(
    rows: Rows, shared: Shared, before: Tensor, inputs: Tensor, mode: Mode
) -> tuple[Tensor, ...]:
    """`Trajectory.saved` of all steps at once.

    Given the states before them (T, B, U), no step waits for another.
    """
    steps, batch, units = (tf.shape(before)[0], tf.shape(before)[1], before.shape[-1])
    x = tf.reshape(batch_major(projected(inputs, shared)), [-1, GATE_COUNT * units])
    masks = rows.recurrent_mask and Gates(*(tf.tile(m, [steps, 1]) for m in rows.recurrent_mask))
    h = tf.reshape(before, [-1, units])
    _, saved = step(split_gates(x), h, shared.weights, mode.convention, masks)
    wanted = (getattr(saved, name) for name in shared.fields(mode.convention))
    return tuple(tf.reshape(v, [steps, batch, units]) for v in wanted)


def projected(inputs: Tensor, shared: Shared) -> Tensor:
    """Projected inputs (B, T, 3U) as the steps add them, from `Rows.inputs`."""
    if shared.input_gain is None:
        return inputs
    x = normalize_gates(inputs, shared.input_gain)
    return x if shared.projection_bias is None else x + shared.projection_bias


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
    inputs, kernel, bias = projected(rows.inputs, shared), shared.kernel, shared.projection_bias
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
