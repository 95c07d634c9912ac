"""The loop over the steps of one block of rows, forward and backward.

It contains only the recurrence: whatever can be computed for all steps at once is done before or
after it, in `passes`. It uses public TensorFlow operations that run eagerly, in a graph, and
compiled by XLA. Sequences are batch-major, (B, T, …), and are read in place in either direction;
results are time-major, (T, B, …), as they are written. Everything is in the order of the sequence,
also if the loop runs from its end to its start. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.equations import (
    Convention,
    normalize_backward,
    normalize_gates,
    step,
    step_backward,
)
from keras_gru.kernel.weights import GATE_COUNT, Gates, Pieces, StepWeights, in_pieces, split_gates

Tensor = Any


class Rows(NamedTuple):
    """Tensors that belong to the rows of a batch; all but scalars have the batch axis first."""

    inputs: Tensor
    """Inputs (B, T, D) with `Shared.kernel`, else the projected inputs (B, T, 3U); with
    `Shared.input_gain` those without gain and bias."""
    initial_state: Tensor
    """State before the first step, (B, U)."""
    mask: Tensor | None
    """bool (B, T), or None. Where false the state is kept (5)."""
    zoneout: Tensor | None
    """Share of the old state that each unit keeps, (B, T, U), a scalar for all, or None."""
    recurrent_mask: Gates | None
    """Dropout masks of the state, one (B, U) per gate, or None."""


class Order(NamedTuple):
    """The order of the steps, for both directions in one function: scalars computed by the caller.

    XLA compiles each scalar that a loop computes as a kernel of its own, which takes it 10 to 20
    ms.
    """

    first: Tensor
    """Step taken first."""
    previous: Tensor
    """The step before it in this direction, which is outside of the sequence."""
    after: Tensor
    """Offset in `Trajectory.states` of the state after a step: 1 or, going backwards, 0."""


class Shared(NamedTuple):
    """Tensors that all rows share."""

    steps: Tensor
    """Number of steps to take, a scalar; sequences may be longer."""
    order: int | Order
    """1, or -1 from the last step to the first; or an `Order`."""
    weights: StepWeights
    """Weights of a step."""
    kernel: Tensor | None
    """Packed input kernel (D, 3U), to project the inputs step by step, or None."""
    projection_bias: Tensor | None
    """Bias (3U,) of the projection, with `kernel` or `input_gain`, or None."""
    input_gain: Tensor | None
    """Gain (3U,) of layer normalisation, of inputs projected by a centred kernel."""


class Trajectory(NamedTuple):
    """Results of a forward pass."""

    final: Tensor | None
    """State after the last step, (B, U)."""
    outputs: Tensor | None
    """State after each step, (B, T, U), or None."""
    states: Tensor | None
    """States (T + 1, B, U), or None: before and after step t at t and t + 1 or, going backwards,
    at t + 1 and t."""
    saved: tuple[Tensor, ...]
    """Second result of `step` for all steps, (T, B, U) each; or none."""
    projected: Tensor | None = None
    """`Rows.inputs` (B, T, 3U) of a backward pass that needs them, or None."""


def forward(
    rows: Rows,
    shared: Shared,
    convention: Convention,
    compiled: bool,
    unroll: int,
    keep_outputs: bool,
    keep_states: bool,
    keep_saved: bool,
) -> Trajectory:
    """Run one block of rows from the initial state over `shared.steps` steps.

    `compiled` tells whether the loop is written for XLA, which wants one slice per gate, or for
    TensorFlow's executor, which wants few operations. The last three arguments tell which fields
    of the trajectory to leave.
    """
    h0, order = rows.initial_state, shared.order
    capacity = tf.shape(rows.inputs)[1]
    read_input = _input_reader(rows, shared, compiled)
    # The initial state is left out if only the states after the steps are wanted.
    after: Any = 0
    if keep_states:
        after = order.after if isinstance(order, Order) else (order + 1) // 2

    def take_step(t: Tensor, run: Any) -> Any:
        h, states, saved = run
        h_new, values = step(read_input(t), h, shared.weights, convention, rows.recurrent_mask)
        valid = None if rows.mask is None else tf.gather(rows.mask, t, axis=1)[:, tf.newaxis]
        share = None if rows.zoneout is None else share_at(rows.zoneout, t)
        h_new = kept_in_part(h, h_new, valid, share)
        h_new.set_shape(h0.shape)
        if states:
            states = (states[0].write(t + after, h_new),)
        if keep_saved:
            saved = tuple(map(tf.TensorArray.write, saved, itertools.repeat(t), values))
        return h_new, states, saved

    if tf.get_static_value(shared.steps) == 1 and not (keep_states or keep_saved):  # streaming
        final, _, _ = take_step(tf.constant(0), (h0, (), ()))  # no loop, no arrays
        return Trajectory(final, final[:, tf.newaxis] if keep_outputs else None, None, ())
    states: Any = ()
    if keep_states:
        if isinstance(order, Order):
            first = order.previous + after
        else:
            first = shared.steps if order < 0 else 0
        states = (state_arrays(1, capacity + 1, h0)[0].write(first, h0),)
    elif keep_outputs:
        states = state_arrays(1, capacity, h0)
    count = 3 + (3 if shared.input_gain is not None else convention.reset_after)  # as `step` saves
    saved = state_arrays(count if keep_saved else 0, capacity, h0)
    final, states, saved = run_steps(shared.steps, take_step, (h0, states, saved), unroll, order)
    stacked: Any = states[0].stack() if states else None
    outputs = stacked
    if keep_outputs and keep_states:
        if isinstance(order, Order):  # no slice from a place that the data decide: see `run_steps`
            outputs = tf.where(order.after > 0, stacked[1:], stacked[:-1])
        else:
            outputs = states_after(stacked, order < 0)
    return Trajectory(
        final=final,
        outputs=batch_major(outputs) if keep_outputs else None,
        states=stacked if keep_states else None,
        saved=tuple(map(tf.TensorArray.stack, saved)),
    )


class Deltas(NamedTuple):
    """Gradients of a loss with respect to the inputs of the steps; zero where masked."""

    x: Gates
    """δa_z, δa_r and δa_g, (T, B, U) each."""
    q: Tensor | None
    """δq with the reset gate after the matmul, (T, B, U), else None; with layer normalisation its
    sum over the steps, (1, B, U)."""
    initial_state: Tensor
    """Gradient with respect to the state before the steps, (B, U)."""
    reset_states: Tensor | None
    """r ⊙ h with the reset gate before the matmul, (T, B, U), else None: what the candidate's
    recurrent kernel multiplied."""
    normalized_inputs: Gates | None = None
    """Gradients with respect to the products of the inputs and the centred kernel, (T, B, U) each,
    with layer normalisation; else None."""
    normalized_states: Gates | None = None
    """Gradients with respect to the products of the states and the centred recurrent kernel,
    (T, B, U) each, with layer normalisation; else None."""
    gain: Tensor | None = None
    """Gradient of the gains, (2, 3U), with layer normalisation; else None."""


def backward(
    rows: Rows,
    shared: Shared,
    run: Trajectory,
    before: Tensor,
    d_outputs: Tensor | None,
    d_final: Tensor,
    convention: Convention,
    unroll: int,
) -> Deltas:
    """Carry gradients from the last step to the first.

    Args:
        rows: Rows of the forward pass; the inputs are not read.
        shared: Shared tensors of the forward pass in the opposite order; the kernel is not read.
        run: Result of `forward`, with `saved` or `projected`, or both with layer normalisation.
        before: States before the steps, (T, B, U).
        d_outputs: Gradient with respect to the states after the steps, (B, T, U), or None.
        d_final: Gradient with respect to `run.final`, (B, U).
        convention: Variant of the GRU, the same as for `forward`.
        unroll: Steps per iteration of the loop.
    """
    normalized = shared.input_gain is not None
    kernels = tuple(map(tf.transpose, shared.weights.recurrent))
    transposed = shared.weights._replace(recurrent=kernels)
    kept = run.saved or recall(rows, shared, before, run.projected, convention)

    def take_step(t: Tensor, state: Any) -> Any:
        dh, arrays, sums = state
        # tf.gather, not v[t]: see `run_steps`.
        saved, h = tuple(map(tf.gather, kept, itertools.repeat(t))), tf.gather(before, t)
        if d_outputs is not None:
            dh += tf.gather(d_outputs, t, axis=1)  # (6)
        dh_kept = None if rows.zoneout is None else dh * share_at(rows.zoneout, t)
        dh_step = dh if dh_kept is None else dh - dh_kept
        back = step_backward(dh_step, saved, h, transposed, convention, rows.recurrent_mask)
        dh_previous = back.h if dh_kept is None else back.h + dh_kept
        q = () if back.q is None else (back.q,)
        # Only the sum of δq is needed if the product has a gradient of its own.
        deltas = (*back.x, *(back.products or q))
        added = () if back.gain is None else (*back.gain, *q)
        if rows.mask is not None:
            valid = tf.gather(rows.mask, t, axis=1)[:, tf.newaxis]
            dh_previous = tf.where(valid, dh_previous, dh)
            deltas, added = (
                tuple([tf.where(valid, delta, tf.zeros_like(delta)) for delta in some])
                for some in (deltas, added)
            )
        dh_previous.set_shape(d_final.shape)
        arrays = tuple(map(tf.TensorArray.write, arrays, itertools.repeat(t), deltas))
        return dh_previous, arrays, tuple(map(operator.add, sums, added))

    capacity = tf.shape(kept[0])[0]
    arrays = state_arrays(len(kept), capacity, d_final)
    sums = (tf.zeros_like(d_final),) * (3 + convention.reset_after) if normalized else ()
    dh0, arrays, sums = run_steps(
        shared.steps, take_step, (d_final, arrays, sums), unroll, shared.order
    )
    stacked = list(map(tf.TensorArray.stack, arrays))
    x, more = Gates(*stacked[:GATE_COUNT]), stacked[GATE_COUNT:]
    mask = None if rows.mask is None else tf.transpose(rows.mask)
    reset_states = None
    if not convention.reset_after:
        seen = before if rows.recurrent_mask is None else before * rows.recurrent_mask.g
        reset_states = without_masked(kept[1] * seen, mask)
    if not normalized:
        return Deltas(x, more[0] if more else None, dh0, reset_states)
    projected = without_masked(batch_major(run.projected), mask)
    gates = zip(x, split_gates(projected), split_gates(shared.input_gain), strict=True)
    d_inputs, d_gains = zip(*(normalize_backward(*gate) for gate in gates), strict=True)
    d_input_gain = tf.concat([tf.reduce_sum(gain, [0, 1]) for gain in d_gains], -1)
    d_recurrent_gain = tf.concat([tf.reduce_sum(gain, 0) for gain in sums[:GATE_COUNT]], -1)
    q = sums[GATE_COUNT][tf.newaxis] if convention.reset_after else None
    gain = tf.stack([d_input_gain, d_recurrent_gain])
    return Deltas(x, q, dh0, reset_states, Gates(*d_inputs), Gates(*more), gain)


def recall(
    rows: Rows, shared: Shared, before: Tensor, inputs: Tensor, convention: Convention
) -> tuple[Tensor, ...]:
    """Compute `Trajectory.saved` of all steps at once.

    Given the states before them (T, B, U), no step waits for another.
    """
    steps, batch, units = (tf.shape(before)[0], tf.shape(before)[1], before.shape[-1])
    inputs = inputs if shared.input_gain is None else normalized_inputs(inputs, shared)
    x = tf.reshape(batch_major(inputs), [-1, GATE_COUNT * units])
    masks = rows.recurrent_mask and Gates(*(tf.tile(m, [steps, 1]) for m in rows.recurrent_mask))
    h = tf.reshape(before, [-1, units])
    _, saved = step(split_gates(x), h, shared.weights, convention, masks)
    return tuple(map(tf.reshape, saved, itertools.repeat([steps, batch, units])))


def run_steps(
    steps: Tensor, take_step: Callable[..., Any], state: Any, unroll: int, order: int | Order
) -> Any:
    """Take all steps in either direction, `unroll` of them per iteration, the others singly.

    If the loop computed an index from the number of steps or from the direction, XLA would treat
    those as constants wherever the index begins a slice, and compile again for each value. For the
    same reason `tf.gather` is used in place of slices. With an `Order`, the next step follows from
    the last two.

    `take_step` is a function from the step t and the state before it to the state after it.
    """
    counts = (unroll, 1) if unroll > 1 else (1,)
    if isinstance(order, Order):
        previous, t = order.previous, order.first
        for count in counts:

            def more(previous: Tensor, t: Tensor, _: Any, count: int = count) -> Tensor:
                last = t + (count - 1) * (t - previous) if count > 1 else t
                return tf.logical_and(last >= 0, last < steps)

            def forth(previous: Tensor, t: Tensor, state: Any, count: int = count) -> Any:
                for _ in range(count):
                    state = take_step(t, state)
                    previous, t = t, 2 * t - previous
                return previous, t, state

            previous, t, state = tf.while_loop(more, forth, (previous, t, state))
        return state
    at = steps - 1 if order < 0 else tf.zeros_like(steps)
    left = steps
    for count in counts:

        def iteration(at: Tensor, state: Any, count: int = count) -> Any:
            for k in range(count):
                state = take_step(at + order * k, state)
            return at + order * count, state

        at, state = tf.while_loop(
            lambda *_: True, iteration, (at, state), maximum_iterations=left // count
        )
        left %= count
    return state


def kept_in_part(h: Tensor, h_new: Tensor, valid: Tensor | None, share: Tensor | None) -> Tensor:
    """Keep a share of the old state (B, U), and all of it where `valid`, bool (B, 1), is False."""
    if share is not None:
        h_new = share * h + (1 - share) * h_new
    return h_new if valid is None else tf.where(valid, h_new, h)  # (5)


def without_masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """Put zeros into values (…, …, V) where the mask (…, …) is False: 0 · NaN would be NaN."""
    if mask is None:
        return values
    return tf.where(tf.expand_dims(mask, -1), values, tf.zeros_like(values))


def states_after(states: Tensor, backwards: bool) -> Tensor:
    """Take the states after the steps (T, B, U) from `Trajectory.states`."""
    return states[:-1] if backwards else states[1:]


def batch_major(states: Tensor) -> Tensor:
    """Transpose (T, B, U) to (B, T, U), or back."""
    return tf.transpose(states, [1, 0, 2])


def share_at(zoneout: Tensor, t: Tensor) -> Tensor:
    """Return the zoneout share of a step: (B, U) of (B, T, U), or the scalar."""
    return tf.gather(zoneout, t, axis=1) if zoneout.shape.rank else zoneout


def state_arrays(count: int, size: Tensor, like: Tensor) -> tuple[tf.TensorArray, ...]:
    """Make some arrays of `size` tensors like the given one."""
    return tuple(
        [
            tf.TensorArray(like.dtype, size, element_shape=like.shape, clear_after_read=False)
            for _ in range(count)
        ]
    )


def normalized_inputs(inputs: Tensor, shared: Shared) -> Tensor:
    """Normalise projected inputs (B, T, 3U) for the steps, from `Rows.inputs` before its gain."""
    x = normalize_gates(inputs, shared.input_gain)
    return x if shared.projection_bias is None else x + shared.projection_bias


def _input_reader(rows: Rows, shared: Shared, compiled: bool) -> Callable[[Tensor], Pieces]:
    """Make the function that returns a step's projected input, in pieces."""
    kernel, bias = shared.kernel, shared.projection_bias
    if kernel is not None:

        def read_and_project(t: Tensor) -> Pieces:
            x = tf.matmul(tf.gather(rows.inputs, t, axis=1), kernel)
            return split_gates(x if bias is None else x + bias)

        return read_and_project
    inputs = rows.inputs if shared.input_gain is None else normalized_inputs(rows.inputs, shared)
    if not compiled:
        pieces = 2 if rows.recurrent_mask is None else GATE_COUNT
        return lambda t: in_pieces(tf.gather(inputs, t, axis=1), pieces)
    # XLA compiles a gate's arithmetic to scalar code if it reads from a slice that other gates
    # share.
    batch, units = tf.shape(inputs)[0], inputs.shape[-1] // GATE_COUNT
    size = tf.stack([batch, 1, units])

    def read_slices(t: Tensor) -> Pieces:
        z = tf.slice(inputs, tf.stack([0, t, 0]), size)
        r = tf.slice(inputs, tf.stack([0, t, units]), size)
        g = tf.slice(inputs, tf.stack([0, t, 2 * units]), size)
        return tf.squeeze(z, 1), tf.squeeze(r, 1), tf.squeeze(g, 1)

    return read_slices
