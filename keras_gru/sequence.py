"""The time loop over `step`, with hand-derived backpropagation through time.

Everything that does not depend on the previous state stays outside the loop: the input projection
before it, the weight gradients after it, each one large matrix product. Numbers in parentheses
are those of DERIVATION.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.step import Convention, Saved, masked_states, step, step_backward
from keras_gru.weights import Gates, StepWeights, merge_bias, split_gates, step_weights

Tensor = Any


class Recurrence(NamedTuple):
    """What stays the same at every step of one call."""

    weights: StepWeights
    convention: Convention
    recurrent_mask: Gates | None


class Sequence(NamedTuple):
    """Result of `gru_sequence`.

    Attributes:
        states: state after each step in processing order, (B, T, U), or None if not asked for.
        final: final state, (B, U).
        gates: update gate, reset gate and candidate of each step in processing order, one
            (B, T, U) each and zero at masked steps, or None if not asked for.
    """

    states: Tensor | None
    final: Tensor
    gates: Gates | None


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
    recurrent_mask: Gates | None = None,
    zoneout: Tensor | None = None,
    return_sequences: bool = True,
    return_gates: bool = False,
    training: bool = True,
) -> Sequence:
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
        zoneout: share of the old state that each unit keeps at each step, (T, B, U) in
            processing order or a scalar: h′ becomes k ⊙ h + (1 − k) ⊙ h′ (Krueger et al. 2017,
            arXiv:1606.01305, equation (2)).
        return_sequences: whether the states of all steps are wanted.
        return_gates: whether the gates of all steps are wanted.
        training: keep what the backward pass needs. Gradients are right without it as well; the
            forward pass then runs a second time when they are asked for.

    Returns:
        States, final state, gates.
    """
    projection_bias, candidate_bias = merge_bias(bias, convention.reset_after)
    x = tf.transpose(inputs, [1, 0, 2])  # (T, B, D)
    time_mask = None if mask is None else tf.transpose(mask)[..., tf.newaxis]  # (T, B, 1)
    if go_backwards:
        x = tf.reverse(x, [0])
        time_mask = None if time_mask is None else tf.reverse(time_mask, [0])
    projected = _project(x, kernel)  # (T, B, 3U)
    if projection_bias is not None:
        projected += projection_bias
    gates_in = split_gates(projected)
    weights = step_weights(recurrent_kernel, candidate_bias)
    recurrence = Recurrence(weights, convention, recurrent_mask)
    keep_states = return_sequences or return_gates
    states, final = _recur(
        gates_in, initial_state, recurrence, time_mask, zoneout, keep_states, training
    )
    gates = None
    if return_gates and states is not None:
        previous = tf.concat([initial_state[tf.newaxis], states[:-1]], 0)
        # All steps at once: given the states, no gate waits for another.
        _, saved = step(gates_in, previous, *recurrence)
        gates = Gates(*(_batch_major(_at_valid(gate, time_mask)) for gate in saved[:3]))
    return Sequence(_batch_major(states) if return_sequences else None, final, gates)


def _recur(
    x: Gates,
    initial_state: Tensor,
    recurrence: Recurrence,
    mask: Tensor | None,
    zoneout: Tensor | None,
    keep_states: bool,
    training: bool,
) -> tuple[Tensor | None, Tensor]:
    """The recurrence alone, time-major: x (T, B, U) per gate, mask (T, B, 1)."""
    weights = recurrence.weights
    bias = [] if weights.candidate_bias is None else [weights.candidate_bias]

    @tf.custom_gradient
    def recur(*operands: Tensor) -> Any:
        x = Gates(*operands[:3])
        h0 = operands[3]
        weights = StepWeights(Gates(*operands[4:7]), operands[7] if bias else None)
        here = recurrence._replace(weights=weights)
        run = _forward(x, h0, here, mask, zoneout, keep_states, training)

        def gradient(*upstream: Tensor) -> list[Tensor]:
            kept = run if training else _forward(x, h0, here, mask, zoneout, False, True)
            d_states = upstream[0] if keep_states else None
            return _backward(d_states, upstream[-1], kept, here, mask, zoneout)

        return ((run.states[0].stack(),) if keep_states else ()) + (run.final,), gradient

    outputs = recur(*x, initial_state, *weights.recurrent, *bias)
    return (outputs[0] if keep_states else None), outputs[-1]


def _forward(
    x: Gates,
    h0: Tensor,
    recurrence: Recurrence,
    mask: Tensor | None,
    zoneout: Tensor | None,
    keep_states: bool,
    keep_saved: bool,
) -> Trajectory:
    steps = tf.shape(x.z)[0]
    inputs = [_unstack(gate) for gate in x]
    masks = None if mask is None else _unstack(mask)
    kept_share = _per_step(zoneout)
    fields = 4 if recurrence.convention.reset_after else 3

    def empty() -> Tensor:
        return tf.TensorArray(h0.dtype, size=steps, element_shape=h0.shape, clear_after_read=False)

    def body(t: Tensor, run: Trajectory) -> tuple[Tensor, Trajectory]:
        h = run.final
        h_new, saved = step(Gates(*(a.read(t) for a in inputs)), h, *recurrence)
        if kept_share is not None:
            share = kept_share(t)
            h_new = share * h + (1 - share) * h_new
        if masks is not None:
            h_new = tf.where(masks.read(t), h_new, h)  # (5)
        h_new.set_shape(h0.shape)
        run = Trajectory(
            final=h_new,
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
    zoneout: Tensor | None,
) -> list[Tensor]:
    """Gradients in the order of `recur`'s operands; d_states (T, B, U), d_final (B, U)."""
    (previous,) = run.previous
    steps = previous.size()
    weights, convention, recurrent_mask = recurrence
    upstream = None if d_states is None else _unstack(d_states)
    masks = None if mask is None else _unstack(mask)
    kept_share = _per_step(zoneout)

    def empty() -> Tensor:
        return tf.TensorArray(d_final.dtype, size=steps, element_shape=d_final.shape)

    def body(t: Tensor, dh: Tensor, grads: tuple[Tensor, ...]) -> Any:
        saved = Saved(*(a.read(t) for a in run.saved), *(() if convention.reset_after else (None,)))
        if upstream is not None:
            dh += upstream.read(t)  # (6)
        dh_kept = None if kept_share is None else dh * kept_share(t)
        dh_step = dh if dh_kept is None else dh - dh_kept
        back = step_backward(dh_step, saved, previous.read(t), *recurrence)
        dh_previous = back.h if dh_kept is None else back.h + dh_kept
        parts = (*back.x, back.q)[: len(grads)]
        if masks is None:
            dh = dh_previous
        else:
            valid = masks.read(t)
            dh = tf.where(valid, dh_previous, dh)
            parts = tuple(tf.where(valid, part, tf.zeros_like(part)) for part in parts)
        grads = tuple(a.write(t, part) for a, part in zip(grads, parts, strict=True))
        dh.set_shape(d_final.shape)
        return t - 1, dh, grads

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


def _per_step(share: Tensor | None) -> Callable[[Tensor], Tensor] | None:
    """Zoneout as a function of the step: read from (T, B, U), or one scalar for all."""
    if share is None:
        return None
    share = tf.convert_to_tensor(share)
    return _unstack(share).read if share.shape.rank else lambda _: share


def _at_valid(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else tf.where(mask, values, tf.zeros_like(values))


def _batch_major(time_major: Tensor) -> Tensor:
    return tf.transpose(time_major, [1, 0, 2])


def _unstack(stacked: Tensor) -> Tensor:
    """A TensorArray over the first axis."""
    array = tf.TensorArray(
        stacked.dtype,
        size=tf.shape(stacked)[0],
        element_shape=stacked.shape[1:],
        clear_after_read=False,
    )
    return array.unstack(stacked)


def _project(x: Tensor, kernel: Tensor) -> Tensor:
    """One large matrix product: (T, B, D), (D, V) → (T, B, V)."""
    steps, batch = tf.unstack(tf.shape(x)[:2])
    flat = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel)
    out = tf.reshape(flat, [steps, batch, kernel.shape[-1]])
    return tf.ensure_shape(out, [*x.shape[:2], kernel.shape[-1]])


def _outer_sum(a: Tensor, b: Tensor) -> Tensor:
    """Σ over time and batch of aᵀb: (T, B, U), (T, B, V) → (U, V)."""
    rows_a, rows_b = (tf.reshape(v, [-1, v.shape[-1]]) for v in (a, b))
    return tf.matmul(rows_a, rows_b, transpose_a=True)
