"""The forward pass: what is around the loop, and the loop over each block of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel import execution
from keras_gru.kernel.blocks import Extent, run_block
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.execution import Plan
from keras_gru.kernel.exported_loop import infer_exported
from keras_gru.kernel.foreign_loop import scan_rows
from keras_gru.kernel.plain_loop import infer_rows, plain_weights
from keras_gru.kernel.projection import is_narrow, project, wide
from keras_gru.kernel.recurrence import (
    Keep,
    Mode,
    Rows,
    Shared,
    Trajectory,
    batch_major,
    forward,
    states_of,
)
from keras_gru.kernel.weights import (
    Gates,
    StepWeights,
    joint_gain,
    joint_recurrent,
    merge_bias,
    split_gates,
)

Tensor = Any


class Operands(NamedTuple):
    """What `gru_sequence` has gradients for; shapes as there."""

    inputs: Tensor
    initial_state: Tensor
    kernel: Tensor
    recurrent_kernel: Tensor
    bias: Tensor | None
    layer_norm_gain: Tensor | None

    def filled(self, present: Sequence[Tensor]) -> Operands:
        """Others in the places of those that are there."""
        following = iter(present)
        return Operands(*(None if value is None else next(following) for value in self))

    @property
    def gains(self) -> tuple[Tensor | None, Tensor | None]:
        """Of the inputs and of the states, (3U,) each, wide; or None without normalisation."""
        if self.layer_norm_gain is None:
            return None, None
        inputs, states = tf.unstack(wide(self.layer_norm_gain))
        return inputs, states


class Constants(NamedTuple):
    """What it has none for: tensors per row, and how to run."""

    mask: Tensor | None
    zoneout: Tensor | None
    recurrent_mask: Gates | None
    input_mask: Gates | None
    convention: Convention
    go_backwards: bool
    plan: Plan

    @property
    def masks_gates(self) -> bool:
        """Whether dropout masks differ from gate to gate, so that the gates part early."""
        return self.recurrent_mask is not None or self.input_mask is not None

    @property
    def mode(self) -> Mode:
        """How the loop runs by this plan."""
        compiled = self.plan.path == "xla"
        return Mode(self.convention, self.go_backwards, compiled, self.plan.unroll)

    @property
    def loop_mode(self) -> Mode:
        """The same for a loop that reads `shared_by_rows`."""
        return self.mode._replace(go_backwards=False) if self.plan.compiles_blocks else self.mode


def infer(operands: Operands, constants: Constants, keep_outputs: bool) -> tuple[Tensor, ...]:
    """Outputs (B, T, U) if wanted, and the final state, keeping nothing for a backward pass.

    The final state is wide.
    """

    def run(plan: Plan) -> tuple[Tensor, ...]:
        chosen = constants._replace(plan=plan)
        extent = Extent.of(operands.inputs, plan, operands.initial_state.shape[-1])
        weights = operands.kernel, operands.recurrent_kernel, operands.bias, operands.gains
        if plan.foreign and not constants.masks_gates:
            (rows,) = cut_rows(operands, chosen, extent)
            unsized = rows.initial_state.shape[0] is None and execution.exporting_tflite()
            runs = [scan_rows(rows, *weights, chosen.mode, keep_outputs, unsized)]
        elif plan.exported and plan.nested and not constants.masks_gates:
            (rows,) = cut_rows(operands, chosen, extent)
            options = constants.convention, constants.go_backwards, keep_outputs
            runs = [infer_exported(rows, *weights, *options)]
        elif plan.path == "plain" and plan.unroll > 1 and not constants.masks_gates:
            runs = _run_plain(operands, chosen, extent, keep_outputs)
        else:
            runs = run_forward(operands, chosen, extent, keep_outputs, False)
        return joined(runs, chosen, extent, keep_outputs, operands.inputs.dtype)

    plan = constants.plan.for_inference()
    if plan.exported and not constants.masks_gates:  # a second way to run would be a second loop
        plan = plan.for_small_state()
    if plan.path != "plain" or plan.blocks == 1 or operands.inputs.shape[0] is not None:
        return run(plan)
    # In blocks or, if the batch turns out to be small, as one.
    outputs: tuple[Tensor, ...] = tf.cond(
        tf.size(operands.initial_state) < execution.SMALL_PLAIN_STATE,
        lambda: run(plan.for_small_state()),
        lambda: run(plan),
    )
    return outputs


def _run_plain(
    operands: Operands, constants: Constants, extent: Extent, keep_outputs: bool
) -> list[Trajectory]:
    """As `run_forward`, in a graph without XLA, for an inference."""
    plan = constants.plan
    weights = plain_weights(
        operands.kernel,
        operands.recurrent_kernel,
        operands.bias,
        operands.gains,
        constants.convention.reset_after,
        few_rows=plan.blocks == 1,
    )
    run = runner(plan)
    options = constants.mode, keep_outputs, plan.project_in_loop
    return [
        run(infer_rows, (row, weights), *options) for row in cut_rows(operands, constants, extent)
    ]


def run_forward(
    operands: Operands,
    constants: Constants,
    extent: Extent,
    keep_outputs: bool,
    keep_saved: bool,
) -> list[Trajectory]:
    """Run each block of rows.

    Args:
        operands: All of them.
        constants: All of them.
        extent: Size of the batch.
        keep_outputs: Whether the states of all steps are wanted.
        keep_saved: Whether a backward pass may follow.
    """
    shared = shared_by_rows(operands, constants, extent)
    run = runner(constants.plan)
    inputs = operands.inputs
    if shared.kernel is None:  # all rows at once, so that the blocks then start together
        bias, _ = merge_bias(operands.bias, constants.convention.reset_after)
        bias = bias if shared.input_gain is None else None  # which follows after the normalisation
        inputs = project(inputs, operands.kernel, bias, constants.input_mask)
    rows = cut_rows(operands._replace(inputs=inputs), constants, extent)
    recall = keep_saved and constants.plan.recall
    # XLA takes two passes to transpose and TensorFlow one, but that is an operation of its own.
    # And layers with and without outputs can share what XLA compiles. Where the work is next to
    # nothing, two operations more would be a tenth of a step.
    shares = keep_saved and constants.plan.compiles_blocks
    shares = shares and not extent.is_small(operands.initial_state.shape[-1])
    later = keep_outputs and (extent.blocks > 1 or shares)
    keep = Keep(keep_outputs and not later, keep_saved or later, keep_saved and not recall)
    shared_by_block = [shared._replace(steps=steps) for steps in extent.steps_by_block()]
    runs = [
        run(forward, (row, of_block), constants.loop_mode, keep)
        for row, of_block in zip(rows, shared_by_block, strict=True)
    ]
    if not (recall or (keep_saved and shared.input_gain is not None)):
        return runs
    return [kept._replace(projected=row.inputs) for kept, row in zip(runs, rows, strict=True)]


def runner(plan: Plan) -> Callable[..., Any]:
    """What runs `function` with `(tensors, *options)` for each block of rows."""
    if plan.nested:
        return functools.partial(run_block, jit_compile=plan.compiles_blocks)
    return lambda function, tensors, *options: function(*tensors, *options)


def cut_rows(operands: Operands, constants: Constants, extent: Extent) -> list[Rows]:
    """The rows of each block, with whatever inputs the operands hold, projected or not."""
    masks = constants.recurrent_mask
    columns = (
        extent.cut(operands.inputs, timed=True),
        extent.cut(wide(operands.initial_state)),
        extent.cut(constants.mask, timed=True),
        extent.cut(wide(constants.zoneout), timed=True),
        extent.cut(masks and Gates(*(wide(mask) for mask in masks))),
    )
    return [Rows(*values) for values in zip(*columns, strict=True)]


def shared_by_rows(operands: Operands, constants: Constants, extent: Extent) -> Shared:
    """What the loop needs beside its rows."""
    reset_after = constants.convention.reset_after
    projection_bias, candidate_bias = merge_bias(operands.bias, reset_after)
    recurrent_kernel = wide(operands.recurrent_kernel)
    joint = constants.recurrent_mask is None
    kernels = (
        joint_recurrent(recurrent_kernel, reset_after) if joint else split_gates(recurrent_kernel)
    )
    input_gain, recurrent_gain = operands.gains
    if recurrent_gain is not None and not joint:
        laid_out: Any = split_gates(recurrent_gain)
    else:
        laid_out = joint_gain(recurrent_gain, reset_after)
    narrow = is_narrow(operands.inputs.dtype)
    in_loop = constants.plan.project_in_loop and not narrow
    in_loop = in_loop and constants.input_mask is None and input_gain is None
    return Shared(
        steps=tf.convert_to_tensor(extent.steps),
        weights=StepWeights(kernels, wide(candidate_bias), centered_gain=laid_out),
        kernel=operands.kernel if in_loop else None,
        projection_bias=wide(projection_bias) if in_loop or input_gain is not None else None,
        input_gain=input_gain,
        direction=tf.constant(constants.mode.direction) if constants.plan.compiles_blocks else None,
    )


def joined(
    runs: list[Trajectory],
    constants: Constants,
    extent: Extent,
    keep_outputs: bool,
    dtype: tf.DType,
) -> tuple[Tensor, ...]:
    """Outputs (B, T, U), if wanted, and final state of all rows, the latter wide."""
    final = extent.join([run.final for run in runs])
    if not keep_outputs:
        return (final,)
    after = constants.mode.after
    outputs = [
        batch_major(extent.without_padded_steps(states_of(run.states, after)))
        if run.outputs is None
        else (run.outputs[:, : extent.steps] if extent.pads_steps else run.outputs)
        for run in runs
    ]
    return tf.cast(extent.join(outputs, timed=True), dtype), final
