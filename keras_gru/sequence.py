"""The time loop over `step`, with hand-derived backpropagation through time.

Everything that does not depend on the previous state stays outside the loop: the input projection
before it, the weight gradients after it, each one large matrix product. Numbers in parentheses
are those of DERIVATION.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.step import Convention, Saved, masked_states, step, step_backward
from keras_gru.weights import Gates, StepWeights, merge_bias, split_gates, step_weights

Tensor = Any


class Recurrence(NamedTuple):
    """What stays the same at every step of one call."""

    weights: StepWeights
    convention: Convention
    recurrent_mask: Gates[Tensor] | None


class Trajectory(NamedTuple):
    """What a forward pass leaves: TensorArrays over time, (B, U) each.

    `states` holds the state after each step; `previous` and `saved` (a TensorArray per field of
    `Saved`) are what the backward pass reads. Each is empty where it was not asked for.
    """

    final: Tensor
    states: tuple[Tensor, ...]
    previous: tuple[Tensor, ...]
    saved: tuple[Tensor, ...]


def gru_sequence(
    inputs: Tensor,
    initial_state: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    convention: Convention,
    *,
    mask: Tensor | None = None,
    go_backwards: bool = False,
    recurrent_mask: Gates[Tensor] | None = None,
    return_sequences: bool = True,
    training: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Run a GRU over a sequence.

    Args:
        inputs: (B, T, D) with T >= 1; both B and T may be unknown.
        initial_state: (B, U).
        kernel: packed input kernel, (D, 3U).
        recurrent_kernel: packed recurrent kernel, (U, 3U).
        bias: packed bias, see `weights.bias_shape`, or None.
        convention: which GRU; its activations must be `differentiable_by_hand`.
        mask: bool (B, T) of any pattern. Where false the state is kept (5).
        go_backwards: run from the last step to the first; the states come in processing order.
        recurrent_mask: dropout masks on the state, one (B, U) per gate, the same at every step.
        return_sequences: whether the states of all steps are wanted.
        training: keep what the backward pass needs. Gradients are right without it as well; the
            forward pass then runs a second time when they are asked for.

    Returns:
        The states, (B, T, U), or None without `return_sequences`; and the final state, (B, U).
    """
    projection_bias, candidate_bias = merge_bias(bias, convention.reset_after)
    x = tf.transpose(inputs, [1, 0, 2])  # (T, B, D)
    time_mask = None if mask is None else tf.transpose(mask)[..., tf.newaxis]  # (T, B, 1)
    if go_backwards:
        x = tf.reverse(x, [0])
        time_mask = None if time_mask is None else tf.reverse(time_mask, [0])
    projected = tf.tensordot(x, kernel, 1)  # (T, B, 3U)
    if projection_bias is not None:
        projected += projection_bias
    states, final = _recur(
        split_gates(projected),
        initial_state,
        step_weights(recurrent_kernel, candidate_bias),
        convention,
        time_mask,
        recurrent_mask,
        return_sequences,
        training,
    )
    return (tf.transpose(states, [1, 0, 2]) if return_sequences else None), final


def _recur(
    x: Gates[Tensor],
    initial_state: Tensor,
    weights: StepWeights,
    convention: Convention,
    mask: Tensor | None,
    recurrent_mask: Gates[Tensor] | None,
    return_sequences: bool,
    training: bool,
) -> tuple[Tensor | None, Tensor]:
    """The recurrence alone, time-major: x (T, B, U) per gate, mask (T, B, 1)."""
    bias = [] if weights.candidate_bias is None else [weights.candidate_bias]

    @tf.custom_gradient
    def recur(*operands: Tensor) -> Any:
        x = Gates(*operands[:3])
        h0 = operands[3]
        weights = StepWeights(Gates(*operands[4:7]), operands[7] if bias else None)
        recurrence = Recurrence(weights, convention, recurrent_mask)
        run = _forward(x, h0, recurrence, mask, return_sequences or training, training)

        def gradient(*upstream: Tensor) -> list[Tensor]:
            kept = run if training else _forward(x, h0, recurrence, mask, True, True)
            d_states = upstream[0] if return_sequences else None
            return _backward(d_states, upstream[-1], kept, recurrence, mask, tf.shape(x.z))

        outputs = (run.states[0].stack(), run.final) if return_sequences else (run.final,)
        return outputs, gradient

    outputs = recur(*x, initial_state, *weights.recurrent, *bias)
    return (outputs[0] if return_sequences else None), outputs[-1]


def _forward(
    x: Gates[Tensor],
    h0: Tensor,
    recurrence: Recurrence,
    mask: Tensor | None,
    keep_states: bool,
    keep_saved: bool,
) -> Trajectory:
    steps = tf.shape(x.z)[0]
    inputs = [_unstack(gate) for gate in x]
    masks = None if mask is None else _unstack(mask)
    fields = 4 if recurrence.convention.reset_after else 3

    def empty() -> Tensor:
        return tf.TensorArray(h0.dtype, size=steps, element_shape=h0.shape, clear_after_read=False)

    def body(t: Tensor, run: Trajectory) -> tuple[Tensor, Trajectory]:
        h = run.final
        h_new, saved = step(Gates(*(a.read(t) for a in inputs)), h, *recurrence)
        if masks is not None:
            h_new = tf.where(masks.read(t), h_new, h)  # (5)
        run = Trajectory(
            final=tf.ensure_shape(h_new, h0.shape),
            states=tuple(a.write(t, h_new) for a in run.states),
            previous=tuple(a.write(t, h) for a in run.previous),
            saved=tuple(a.write(t, v) for a, v in zip(run.saved, saved, strict=False)),
        )
        return t + 1, run

    start = Trajectory(
        final=h0,
        states=(empty(),) if keep_states else (),
        previous=(empty(),) if keep_saved else (),
        saved=tuple(empty() for _ in range(fields)) if keep_saved else (),
    )
    run: Trajectory
    _, run = tf.while_loop(
        lambda t, _: t < steps, body, (tf.constant(0), start), maximum_iterations=steps
    )
    return run


def _backward(
    d_states: Tensor | None,
    d_final: Tensor,
    run: Trajectory,
    recurrence: Recurrence,
    mask: Tensor | None,
    shape: Tensor,
) -> list[Tensor]:
    """Gradients in the order of `recur`'s operands; d_states (T, B, U), d_final (B, U)."""
    steps = shape[0]
    weights, convention, recurrent_mask = recurrence
    upstream = None if d_states is None else _unstack(d_states)
    masks = None if mask is None else _unstack(mask)
    (previous,) = run.previous

    def empty() -> Tensor:
        return tf.TensorArray(d_final.dtype, size=steps, element_shape=d_final.shape)

    def body(t: Tensor, dh: Tensor, grads: tuple[Tensor, ...]) -> Any:
        saved = Saved(*(a.read(t) for a in run.saved), *(() if convention.reset_after else (None,)))
        if upstream is not None:
            dh += upstream.read(t)  # (6)
        back = step_backward(dh, saved, previous.read(t), *recurrence)
        parts = (*back.x, back.q)[: len(grads)]
        if masks is None:
            dh = back.h
        else:
            valid = masks.read(t)
            dh = tf.where(valid, back.h, dh)
            parts = tuple(tf.where(valid, part, tf.zeros_like(part)) for part in parts)
        grads = tuple(a.write(t, part) for a, part in zip(grads, parts, strict=True))
        return t - 1, tf.ensure_shape(dh, d_final.shape), grads

    _, dh0, arrays = tf.while_loop(
        lambda t, *_: t >= 0,
        body,
        (steps - 1, d_final, tuple(empty() for _ in run.saved)),
        maximum_iterations=steps,
    )
    grads = [a.stack() for a in arrays]  # δa_z, δa_r, δa_g and, with reset_after, δq; (T, B, U)
    h_z, h_r, h_g = masked_states(previous.stack(), recurrent_mask)
    into_candidate = h_g if convention.reset_after else run.saved[1].stack() * h_g
    d_recurrent = [  # (15)
        _outer_sum(h_z, grads[0]),
        _outer_sum(h_r, grads[1]),
        _outer_sum(into_candidate, grads[-1]),
    ]
    d_bias = [] if weights.candidate_bias is None else [tf.reduce_sum(grads[-1], [0, 1])]
    return [*grads[:3], dh0, *d_recurrent, *d_bias]


def _unstack(stacked: Tensor) -> Tensor:
    """A TensorArray over the first axis."""
    array = tf.TensorArray(
        stacked.dtype,
        size=tf.shape(stacked)[0],
        element_shape=stacked.shape[1:],
        clear_after_read=False,
    )
    return array.unstack(stacked)


def _outer_sum(a: Tensor, b: Tensor) -> Tensor:
    """Σ over time and batch of aᵀb: (T, B, U), (T, B, V) → (U, V)."""
    return tf.tensordot(a, b, [[0, 1], [0, 1]])
