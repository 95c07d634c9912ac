"""A GRU over a sequence, with hand-derived backpropagation through time.

The loop (`recurrence`) holds nothing but the recurrence. Around it are the large matrix products:
the input projection before it, the gradients of weights and inputs after it. The batch may be cut
into blocks of rows that run side by side, each in an XLA function of its own (`execution` says
when). Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru import execution
from keras_gru.blocks import Extent, run_block
from keras_gru.execution import Plan
from keras_gru.recurrence import (
    Deltas,
    Mode,
    Rows,
    Shared,
    Trajectory,
    backward,
    forward,
    multiplied_states,
)
from keras_gru.step import Convention, step
from keras_gru.weights import (
    Gates,
    StepWeights,
    joint_recurrent,
    merge_bias,
    split_gates,
    step_weights,
    unmerge_bias,
)

Tensor = Any


class Sequence(NamedTuple):
    """Result of `gru_sequence`.

    Attributes:
        states: state after each step, (B, T, U), or None if not asked for.
        final: final state, (B, U).
        gates: update gate, reset gate and candidate of each step, one (B, T, U) each and zero at
            masked steps, or None if not asked for.
        path: how it ran, `"xla"` or `"plain"`.
    """

    states: Tensor | None
    final: Tensor
    gates: Gates | None
    path: str


class Operands(NamedTuple):
    """What `gru_sequence` has gradients for; shapes as there."""

    inputs: Tensor
    initial_state: Tensor
    kernel: Tensor
    recurrent_kernel: Tensor
    bias: Tensor | None


class Constants(NamedTuple):
    """What it has none for: tensors per row, and how to run."""

    mask: Tensor | None
    zoneout: Tensor | None
    recurrent_mask: Gates | None
    mode: Mode
    plan: Plan


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
    processing_order: bool = True,
    recurrent_mask: Gates | None = None,
    zoneout: Tensor | None = None,
    return_sequences: bool = True,
    return_gates: bool = False,
    training: bool = True,
    path: str = "auto",
) -> Sequence:
    """Run a GRU over a sequence.

    In bfloat16 or float16 the matrix products outside the loop are taken in that precision, and
    the recurrence in float32.

    Args:
        inputs: (B, T, D) with T >= 1; both B and T may be unknown.
        initial_state: (B, U).
        kernel: packed input kernel, (D, 3U).
        recurrent_kernel: packed recurrent kernel, (U, 3U).
        bias: packed bias, see `weights.bias_shape`, or None.
        convention: which GRU; its activations must be `differentiable_by_hand`.
        mask: bool (B, T) of any pattern. Where false the state is kept (5).
        go_backwards: run from the last step to the first.
        processing_order: with `go_backwards`, give states and gates in the order in which they
            were computed, as Keras does, and not in that of the sequence.
        recurrent_mask: dropout masks on the state, one (B, U) per gate, the same at every step.
        zoneout: share of the old state that each unit keeps at each step, (B, T, U) or a scalar:
            h′ becomes k ⊙ h + (1 − k) ⊙ h′ (Krueger et al. 2017, arXiv:1606.01305, equation (2)).
        return_sequences: whether the states of all steps are wanted.
        return_gates: whether the gates of all steps are wanted.
        training: keep what the backward pass needs. Gradients are right without it as well; the
            forward pass then runs a second time when they are asked for.
        path: see `execution.plan`.

    Returns:
        States, final state, gates, path.
    """
    inputs, initial_state, kernel, recurrent_kernel = (
        tf.convert_to_tensor(v) for v in (inputs, initial_state, kernel, recurrent_kernel)
    )
    bias = None if bias is None else tf.convert_to_tensor(bias)
    operands = Operands(inputs, initial_state, kernel, recurrent_kernel, bias)
    plan = execution.plan(
        path, inputs.shape[0], inputs.shape[-1], initial_state.shape[-1], inputs.dtype.size
    )
    compiled = plan.path == "xla"
    constants = Constants(
        mask=None if mask is None else tf.broadcast_to(mask, tf.shape(inputs)[:2]),
        zoneout=None if zoneout is None else tf.convert_to_tensor(zoneout),
        recurrent_mask=recurrent_mask and Gates(*map(tf.convert_to_tensor, recurrent_mask)),
        mode=Mode(convention, go_backwards, compiled, plan.unroll),
        plan=plan,
    )
    keep_outputs = return_sequences or return_gates
    states, final = _recur(operands, constants, keep_outputs, training)
    gates = _gates(operands, constants, states) if return_gates else None
    if go_backwards and processing_order:
        states = None if states is None else tf.reverse(states, [1])
        gates = None if gates is None else Gates(*(tf.reverse(gate, [1]) for gate in gates))
    return Sequence(states if return_sequences else None, final, gates, plan.path)


def _recur(
    operands: Operands, constants: Constants, keep_outputs: bool, training: bool
) -> tuple[Tensor | None, Tensor]:
    """The states after each step, (B, T, U), if wanted, and the final one."""
    extent = Extent.of(operands.inputs, constants.plan)

    def infer(operands: Operands) -> tuple[Tensor, ...]:
        if _may_be_small(constants, extent):
            return _by_size(operands, constants, keep_outputs)
        runs = _forward(operands, constants, extent, keep_outputs, False)
        return _joined(runs, extent, keep_outputs, operands.inputs.dtype)

    @tf.custom_gradient
    def recur(*present: Tensor) -> Any:
        operands = Operands(*(*present, None)[:5])
        # In eager code a tape would otherwise follow the loop, step by step.
        still = Operands(*(None if v is None else tf.stop_gradient(v) for v in operands))
        runs = _forward(still, constants, extent, keep_outputs, True) if training else None
        dtype = operands.inputs.dtype
        outputs = infer(still) if runs is None else _joined(runs, extent, keep_outputs, dtype)

        def gradient(*upstream: Tensor) -> list[Tensor]:
            return _gradients(operands, constants, extent, runs, keep_outputs, upstream)

        return outputs, gradient

    if constants.plan.exported and not training:  # a SavedModel would hold the gradients too
        outputs = infer(operands)
    else:
        outputs = recur(*(v for v in operands if v is not None))
    return (outputs[0] if keep_outputs else None), outputs[-1]


def _may_be_small(constants: Constants, extent: Extent) -> bool:
    plan = constants.plan
    return plan.path == "plain" and plan.blocks > 1 and not isinstance(extent.rows, int)


def _by_size(operands: Operands, constants: Constants, keep_outputs: bool) -> tuple[Tensor, ...]:
    """Run a batch of unknown size in blocks or, if it turns out to be small, as one."""

    def run(constants: Constants) -> tuple[Tensor, ...]:
        extent = Extent.of(operands.inputs, constants.plan)
        runs = _forward(operands, constants, extent, keep_outputs, False)
        return _joined(runs, extent, keep_outputs, operands.inputs.dtype)

    outputs: tuple[Tensor, ...] = tf.cond(
        tf.size(operands.initial_state) < execution.SMALL_STATE,
        lambda: run(constants._replace(plan=constants.plan.for_small_state())),
        lambda: run(constants),
    )
    return outputs


def _forward(
    operands: Operands,
    constants: Constants,
    extent: Extent,
    keep_outputs: bool,
    keep_saved: bool,
) -> list[Trajectory]:
    """Run each block of rows."""
    shared = _shared(operands, constants, extent)
    run = run_block if constants.plan.nested else _run_inline
    rows = _blocks(operands, constants, extent)
    if shared.kernel is None:
        bias, _ = merge_bias(operands.bias, constants.mode.convention.reset_after)
        rows = [row._replace(inputs=_project(row.inputs, operands.kernel, bias)) for row in rows]
    return [run(forward, (row, shared), constants.mode, keep_outputs, keep_saved) for row in rows]


def _run_inline(function: Callable[..., Any], tensors: tuple[Any, ...], *options: Any) -> Any:
    return function(*tensors, *options)


def _blocks(operands: Operands, constants: Constants, extent: Extent) -> list[Rows]:
    """The rows of each block, inputs not projected."""
    masks = constants.recurrent_mask
    columns = (
        extent.cut(operands.inputs, timed=True),
        extent.cut(_wide(operands.initial_state)),
        extent.cut(constants.mask, timed=True),
        extent.cut(None if constants.zoneout is None else _wide(constants.zoneout), timed=True),
        extent.cut(masks and Gates(*(_wide(mask) for mask in masks))),
    )
    return [Rows(*values) for values in zip(*columns, strict=True)]


def _shared(operands: Operands, constants: Constants, extent: Extent) -> Shared:
    reset_after = constants.mode.convention.reset_after
    projection_bias, candidate_bias = merge_bias(operands.bias, reset_after)
    recurrent_kernel = _wide(operands.recurrent_kernel)
    joint = constants.recurrent_mask is None
    kernels = (
        joint_recurrent(recurrent_kernel, reset_after) if joint else split_gates(recurrent_kernel)
    )
    in_loop = constants.plan.project_in_loop and not _is_narrow(operands.inputs.dtype)
    return Shared(
        steps=tf.convert_to_tensor(extent.steps),
        weights=StepWeights(
            tuple(kernels), None if candidate_bias is None else _wide(candidate_bias)
        ),
        kernel=operands.kernel if in_loop else None,
        projection_bias=projection_bias if in_loop else None,
    )


def _joined(
    runs: list[Trajectory], extent: Extent, keep_outputs: bool, dtype: tf.DType
) -> tuple[Tensor, ...]:
    """Outputs, if wanted, and final state of all rows."""
    final = tf.cast(extent.join([run.final for run in runs]), dtype)
    if not keep_outputs:
        return (final,)
    outputs = extent.join([run.outputs for run in runs], timed=True)
    return tf.cast(outputs, dtype), final


def _gradients(
    operands: Operands,
    constants: Constants,
    extent: Extent,
    runs: list[Trajectory] | None,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    """Gradients in the order of the operands that are there."""
    blocks = _deltas(operands, constants, extent, runs, keep_outputs, upstream)
    narrow = operands.inputs.dtype
    inputs = [tf.transpose(rows.inputs, [1, 0, 2]) for rows in _blocks(operands, constants, extent)]
    kernels = [tf.transpose(kernel) for kernel in split_gates(operands.kernel)]
    d_kernel, d_recurrent, d_projected, d_candidate, d_inputs, d_initial = [], [], [], [], [], []
    for x, (deltas, multiplied) in zip(inputs, blocks, strict=True):
        into_states = Gates(*deltas.x) if deltas.q is None else deltas.x._replace(g=deltas.q)
        narrow_x = [tf.cast(delta, narrow) for delta in deltas.x]
        d_kernel.append(tf.concat([_outer_sum(x, delta) for delta in narrow_x], -1))
        d_recurrent.append(  # (15)
            tf.concat(
                [
                    _outer_sum(tf.cast(h, narrow), tf.cast(delta, narrow))
                    for h, delta in zip(multiplied, into_states, strict=True)
                ],
                -1,
            )
        )
        d_projected.append(tf.concat([_row_sum(delta) for delta in deltas.x], -1))
        if deltas.q is not None:
            d_candidate.append(_row_sum(deltas.q))
        d_x = tf.add_n([_project(d, kernel) for d, kernel in zip(narrow_x, kernels, strict=True)])
        d_inputs.append(tf.transpose(d_x, [1, 0, 2]))
        d_initial.append(deltas.initial_state)
    gradients = [
        tf.cast(extent.join(d_inputs, timed=True), narrow),
        tf.cast(extent.join(d_initial), operands.initial_state.dtype),
        tf.cast(tf.add_n(d_kernel), operands.kernel.dtype),
        tf.cast(tf.add_n(d_recurrent), operands.recurrent_kernel.dtype),
    ]
    if operands.bias is None:
        return gradients
    d_bias = unmerge_bias(tf.add_n(d_projected), tf.add_n(d_candidate) if d_candidate else None)
    return [*gradients, tf.cast(d_bias, operands.bias.dtype)]


def _deltas(
    operands: Operands,
    constants: Constants,
    extent: Extent,
    runs: list[Trajectory] | None,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[tuple[Deltas, Gates]]:
    """Per block of rows, what `backward` gives and what `multiplied_states` gives.

    Differentiable in turn, through the same loops in plain operations.
    """
    present = [v for v in operands if v is not None]

    def compute(
        values: tuple[Tensor, ...], constants: Constants, runs: list[Trajectory] | None
    ) -> list[Any]:
        operands = Operands(*(*values[: len(present)], None)[:5])
        upstream = values[len(present) :]
        runs = runs or _forward(operands, constants, extent, False, True)
        shared = _shared(operands, constants, extent)
        shared = shared._replace(
            weights=shared.weights.transposed(), kernel=None, projection_bias=None
        )
        d_outputs = extent.cut(_wide(upstream[0]) if keep_outputs else None, timed=True)
        d_final = extent.cut(_wide(upstream[-1]))
        run = run_block if constants.plan.nested else _run_inline
        results = []
        for rows, kept, d_out, d_last in zip(
            _blocks(operands, constants, extent), runs, d_outputs, d_final, strict=True
        ):
            kept = kept._replace(final=None, outputs=None)
            tensors = (rows._replace(inputs=None), shared, kept, d_out, d_last)
            deltas = run(backward, tensors, constants.mode)
            results.append((deltas, multiplied_states(rows, kept, constants.mode)))
        return results

    structure: list[Any] = []

    @tf.custom_gradient
    def flat(*values: Tensor) -> Any:
        still = tuple(tf.stop_gradient(v) for v in values)
        results = compute(still, constants, runs)
        structure[:] = results

        def second(*upstream: Tensor) -> list[Tensor]:
            inline = constants._replace(plan=constants.plan.inline())
            with tf.GradientTape() as tape:
                tape.watch(values)
                again = tf.nest.flatten(compute(values, inline, None))
                again = [v for v in again if v is not None]
            return tape.gradient(
                again, values, upstream, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )

        return [v for v in tf.nest.flatten(results) if v is not None], second

    leaves = iter(flat(*present, *upstream))
    filled = [None if v is None else next(leaves) for v in tf.nest.flatten(structure)]
    result: list[Any] = tf.nest.pack_sequence_as(structure, filled)
    return result


def _gates(operands: Operands, constants: Constants, states: Tensor) -> Gates:
    """All steps at once: given the states, no gate waits for another."""
    bias, candidate_bias = merge_bias(operands.bias, constants.mode.convention.reset_after)
    x = split_gates(_project(operands.inputs, operands.kernel, bias))
    h0 = operands.initial_state[:, tf.newaxis]
    before = [states[:, 1:], h0] if constants.mode.go_backwards else [h0, states[:, :-1]]
    masks = constants.recurrent_mask
    recurrent_mask = masks and Gates(*(mask[:, tf.newaxis] for mask in masks))
    weights = step_weights(operands.recurrent_kernel, candidate_bias)
    before = tf.concat(before, 1)
    _, saved = step(x, before, weights, constants.mode.convention, recurrent_mask)
    if constants.mask is None:
        return Gates(*saved[:3])
    valid = constants.mask[..., tf.newaxis]
    return Gates(*(tf.where(valid, gate, tf.zeros_like(gate)) for gate in saved[:3]))


def _is_narrow(dtype: tf.DType) -> bool:
    return dtype in (tf.bfloat16, tf.float16)


def _wide(values: Tensor) -> Tensor:
    """In the precision of the recurrence."""
    return tf.cast(values, tf.float32) if _is_narrow(values.dtype) else values


def _project(x: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """One large matrix product: (…, …, D), (D, V) → (…, …, V), wide."""
    flat = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel)
    if bias is not None:
        flat = tf.nn.bias_add(flat, bias)
    sizes = tf.unstack(tf.shape(x)[:2])
    out = tf.reshape(_wide(flat), [*sizes, kernel.shape[-1]])
    return tf.ensure_shape(out, [*x.shape[:2], kernel.shape[-1]])


def _outer_sum(a: Tensor, b: Tensor) -> Tensor:
    """Σ over time and batch of aᵀb: (T, B, U), (T, B, V) → (U, V), wide."""
    rows_a, rows_b = (tf.reshape(v, [-1, v.shape[-1]]) for v in (a, b))
    return _wide(tf.matmul(rows_a, rows_b, transpose_a=True))


def _row_sum(values: Tensor) -> Tensor:
    return tf.reduce_sum(values, [0, 1])
