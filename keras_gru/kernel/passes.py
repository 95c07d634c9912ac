"""The forward and the backward pass of a batch: loops over row blocks, and products around them.

Before the loop, one matrix product projects the inputs; after the backward loop, one product per
weight computes its gradient (15). `execution` chooses the blocks into which a batch is cut. Numbers
in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

from keras_gru.kernel import export
from keras_gru.kernel.equations import project, step
from keras_gru.kernel.execution import (
    CONVERTED_RUNTIMES,
    SMALL_BLOCK_STATE,
    Extent,
    Operands,
    Options,
    Plan,
    block_call,
    filled,
    present,
)
from keras_gru.kernel.loop import (
    Deltas,
    Order,
    Rows,
    Shared,
    Trajectory,
    backward,
    batch_major,
    forward,
    states_after,
    without_masked,
)
from keras_gru.kernel.weights import (
    GATE_COUNT,
    NARROW_DTYPES,
    Gates,
    Projection,
    split_gates,
    split_weights,
    wide,
)

Tensor = Any


def infer(
    operands: Operands, options: Options, keep_outputs: bool, extent: Extent | None = None
) -> tuple[Tensor, ...]:
    """Run forward, keeping nothing for a backward pass.

    The extent is that of the plan for inference, or None if it is still unknown. Returns outputs
    (B, T, U) if wanted, and the final state, wide.
    """
    plan = options.plan.for_inference()
    masked_gates = options.recurrent_mask is not None or options.input_mask is not None
    if plan.compiled or plan.unroll == 1 or masked_gates:
        options = options._replace(plan=plan)
        extent = extent or Extent.of(operands.inputs, plan, operands.initial_state.shape[-1])
        runs = run_forward(operands, options, extent, keep_outputs, False)
        return joined(runs, options, extent, keep_outputs, operands.inputs.dtype)
    run = export.scan if plan.target in CONVERTED_RUNTIMES else export.run
    final, outputs = run(operands, options._replace(plan=plan), keep_outputs)
    return (tf.cast(outputs, operands.inputs.dtype), final) if keep_outputs else (final,)


def run_forward(
    operands: Operands,
    options: Options,
    extent: Extent,
    keep_outputs: bool,
    keep_saved: bool,
) -> list[Trajectory]:
    """Run each block of rows forward; with `keep_saved` a backward pass may follow."""
    plan, inputs = options.plan, operands.inputs
    shared, (kernel, bias, gain) = _shared_by_rows(operands, options, extent)
    if shared.kernel is None:  # all rows at once, so that the blocks then start together
        bias = bias if gain is None else None  # which follows after the normalisation
        masks = options.input_mask and Gates(*[mask[:, tf.newaxis] for mask in options.input_mask])
        inputs = project(inputs, kernel, bias, input_mask=masks)
    recall = keep_saved and plan.recall
    # XLA takes two passes to transpose and TensorFlow one, but as an operation of its own. Without
    # outputs in the function, layers with and without them can share the compiled program. If there
    # is almost no work, two more operations would be a tenth of a step.
    small = isinstance(extent.rows, int) and (
        extent.rows * operands.initial_state.shape[-1] <= SMALL_BLOCK_STATE // 2
    )
    shares = keep_saved and plan.nested and plan.compiled and not small
    later = keep_outputs and (extent.blocks > 1 or shares)
    keep = keep_outputs and not later, keep_saved or later, keep_saved and not recall
    again = recall or (keep_saved and gain is not None)
    runs = []
    blocks = zip(
        _rows_of_blocks(operands._replace(inputs=inputs), options, extent),
        extent.steps_by_block(plan),
        strict=True,
    )
    for rows, steps in blocks:
        tensors = rows, _in_order(shared, steps, options.go_backwards, plan)
        settings = options.convention, plan.compiled, plan.unroll, *keep
        run = block_call(plan, forward, tensors, *settings)()
        runs.append(run._replace(projected=rows.inputs) if again else run)
    return runs


def joined(
    runs: list[Trajectory],
    options: Options,
    extent: Extent,
    keep_outputs: bool,
    dtype: tf.DType,
) -> tuple[Tensor, ...]:
    """Join the outputs (B, T, U), if wanted, and the final states of all blocks, these wide."""
    finals, outputs = [], []
    for run in runs:
        finals.append(run.final)
        if not keep_outputs:
            continue
        if run.outputs is None:
            states = states_after(run.states, options.go_backwards)
            outputs.append(batch_major(extent.without_padded_steps(states)))
        else:
            outputs.append(run.outputs[:, : extent.steps] if extent.pads_steps else run.outputs)
    final = extent.join(finals)
    return (tf.cast(extent.join(outputs, timed=True), dtype), final) if keep_outputs else (final,)


def gradients(
    operands: Operands,
    options: Options,
    extent: Extent,
    runs: list[Trajectory] | None,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    """Compute gradients in the order of the given operands; they are differentiable in turn.

    `runs` are the results of `run_forward` with `keep_saved`, or None to run it now, and `upstream`
    the gradients with respect to the result of `joined`.
    """
    values = (*present(operands), *upstream)
    blocks = differentiable(
        functools.partial(_deltas, operands, options, extent, runs, keep_outputs), values
    )
    narrow = operands.inputs.dtype
    kernels = list(map(tf.transpose, split_gates(operands.weights.kernel)))
    d_inputs, d_initial, d_kernel, d_recurrent = [], [], [], []
    d_projected, d_candidate, d_gain = [], [], []
    whole = without_masked(operands.inputs, options.mask)
    inputs = map(batch_major, extent.cut(whole))
    input_masks = extent.cut(options.input_mask)
    masks = options.recurrent_mask
    recurrent_masks = extent.cut(masks and Gates(*map(wide, masks)))
    parts = zip(inputs, input_masks, recurrent_masks, blocks, strict=True)
    for x, input_mask, recurrent_mask, (back, before) in parts:
        # All steps and rows are put into one axis, once for all products: a reshape takes long to
        # trace.
        of_projected = list(map(_flat, back.x))
        of_candidate = None if back.q is None else _flat(back.q)
        of_inputs, of_states = of_projected, of_projected
        if back.gain is not None:
            of_inputs = list(map(_flat, back.normalized_inputs))
            of_states = list(map(_flat, back.normalized_states))
            d_gain.append(back.gain)
        elif of_candidate is not None:
            of_states = [*of_projected[:2], of_candidate]
        d_x, d_kernels, d_recurrents = [], [], []
        seen, h = _flat(x), tf.cast(_flat(before), narrow)
        for gate in range(GATE_COUNT):
            delta = tf.cast(of_inputs[gate], narrow)
            if input_mask is not None:
                seen = _flat(x * input_mask[gate])
            d_kernels.append(wide(tf.matmul(seen, delta, transpose_a=True)))  # (15)
            d = project(delta, kernels[gate])  # (14)
            if input_mask is not None:
                d = _flat(tf.reshape(d, tf.shape(x)) * wide(input_mask[gate]))
            d_x.append(d)
            if recurrent_mask is not None:
                h = tf.cast(_flat(before * recurrent_mask[gate]), narrow)
            if gate == 2 and back.reset_states is not None:
                h = tf.cast(_flat(back.reset_states), narrow)
            d_recurrent_gate = tf.matmul(h, tf.cast(of_states[gate], narrow), transpose_a=True)
            d_recurrents.append(wide(d_recurrent_gate))  # (15)
        d_inputs.append(batch_major(tf.reshape(tf.add_n(d_x), tf.shape(x))))
        d_initial.append(back.initial_state)
        d_kernel.append(tf.concat(d_kernels, -1))
        d_recurrent.append(tf.concat(d_recurrents, -1))
        ones = tf.ones_like(of_projected[0][:, :1])
        d_projected.append(tf.concat([_row_sum(d, ones) for d in of_projected], -1))  # (15)
        if of_candidate is not None:
            ones = ones if back.gain is None else tf.ones_like(of_candidate[:, :1])
            d_candidate.append(_row_sum(of_candidate, ones))
    found = [
        extent.join(d_inputs, timed=True),
        extent.join(d_initial),
        tf.add_n(d_kernel),
        tf.add_n(d_recurrent),
    ]
    if operands.weights.bias is not None:
        d_bias = tf.add_n(d_projected)
        if d_candidate:  # the second row is the recurrent bias, see `split_weights`
            z, r, _ = split_gates(d_bias)
            d_bias = tf.stack([d_bias, tf.concat([z, r, tf.add_n(d_candidate)], -1)])
        found.append(d_bias)
    if operands.weights.layer_norm_gain is not None:
        found.append(tf.add_n(d_gain))
    return [tf.cast(d, v.dtype) for d, v in zip(found, present(operands), strict=True)]


def _deltas(
    like: Operands,
    options: Options,
    extent: Extent,
    runs: list[Trajectory] | None,
    keep_outputs: bool,
    values: tuple[Tensor, ...],
    recorded: bool,
) -> list[tuple[Deltas, Tensor]]:
    """Run each block of rows backward; returns its gradients, and its states before the steps."""
    operands, upstream = filled(like, values), values[len(present(like)) :]
    if recorded:
        options, runs = options._replace(plan=options.plan.inline()), None
    plan = options.plan
    runs = runs or run_forward(operands, options, extent, False, True)
    shared, _ = _shared_by_rows(operands, options, extent)
    if shared.input_gain is None:
        shared = shared._replace(kernel=None, projection_bias=None)
    results = []
    blocks = zip(
        _rows_of_blocks(operands, options, extent),
        runs,
        extent.cut(wide(upstream[0]) if keep_outputs else None, timed=True),
        extent.cut(wide(upstream[-1])),
        extent.steps_by_block(plan),
        strict=True,
    )
    for rows, kept, d_outputs, d_final, steps in blocks:
        states: Any = kept.states
        before = states[1:] if options.go_backwards else states[:-1]
        tensors = (
            rows._replace(inputs=None),
            _in_order(shared, steps, not options.go_backwards, plan),
            kept._replace(final=None, outputs=None, states=None),
            before,
            d_outputs,
            d_final,
        )
        back = block_call(plan, backward, tensors, options.convention, plan.unroll)()
        back, before = extent.without_padded_steps((back, before))
        results.append((back, before))
    return results


def differentiable(compute: Callable[..., Any], values: tuple[Tensor, ...]) -> Any:
    """Compute something without recording it, but so that it can be differentiated.

    `compute` is a function from the values, and from whether a tape records it, to a structure of
    tensors and None.
    """
    structure: Any = None

    @tf.custom_gradient
    def flat(*values: Tensor) -> Any:
        nonlocal structure
        structure = compute(tuple(map(tf.stop_gradient, values)), False)

        def again(*upstream: Tensor) -> list[Tensor]:
            zero = tf.UnconnectedGradients.ZERO
            seconds: list[Tensor]
            if tf.executing_eagerly():
                with tf.GradientTape() as tape:
                    tape.watch(values)
                    recorded = present(compute(values, True))
                seconds = tape.gradient(recorded, values, upstream, unconnected_gradients=zero)
            else:  # where a forward accumulator asks, no tape records
                here = tuple(map(tf.identity, values))
                recorded = present(compute(here, True))
                seconds = tf.gradients(recorded, here, upstream, unconnected_gradients=zero)
            return seconds

        return present(structure), again

    results = flat(*values)
    release_with_graph(results[0])
    return filled(structure, results)


def release_with_graph(result: Tensor) -> None:
    """Keep a custom gradient no longer than its graph.

    In a graph, TensorFlow registers the gradient by name forever, and the gradient refers to the
    whole graph: some 40 MB per layer and trace. Here the graph owns the gradient, and the registry
    refers to it only while the graph exists. The argument is one result of the function.
    """
    if tf.executing_eagerly():
        return
    graph, name = result.graph, result.op.get_attr("_gradient_op_type").decode()
    entry = gradient_registry._registry[name]
    gradient = entry["type"]
    entry["type"] = weakref.proxy(gradient)
    graph._keras_gru_gradients = [*getattr(graph, "_keras_gru_gradients", ()), gradient]
    weakref.finalize(gradient, gradient_registry._registry.pop, name, None)


def gates_of_all_steps(operands: Operands, options: Options, states: Tensor) -> Gates:
    """Compute the gates of all steps, (B, T, U) each and zero at masked steps, from all states.

    Given the states no gate waits for another.
    """
    projection, weights = split_weights(
        operands.weights, options.convention.reset_after, GATE_COUNT
    )
    masks = [
        masks and Gates(*[mask[:, tf.newaxis] for mask in masks])
        for masks in (options.input_mask, options.recurrent_mask)
    ]
    x = project(operands.inputs, *projection, masks[0])
    h0 = operands.initial_state[:, tf.newaxis]
    before = [states[:, 1:], h0] if options.go_backwards else [h0, states[:, :-1]]
    recurrent_mask = masks[1] and Gates(*map(wide, masks[1]))
    h = wide(tf.concat(before, 1))
    _, saved = step(split_gates(x), h, weights, options.convention, recurrent_mask)
    gates = [tf.cast(gate, states.dtype) for gate in saved[:GATE_COUNT]]
    return Gates(*[without_masked(gate, options.mask) for gate in gates])


def _rows_of_blocks(operands: Operands, options: Options, extent: Extent) -> list[Rows]:
    """Cut the tensors of the rows into blocks, with inputs that may be projected or not."""
    masks = options.recurrent_mask
    parts = zip(
        extent.cut(operands.inputs, timed=True),
        extent.cut(wide(operands.initial_state)),
        extent.cut(options.mask, timed=True),
        extent.cut(wide(options.zoneout), timed=True),
        extent.cut(masks and Gates(*[wide(mask) for mask in masks])),
        strict=True,
    )
    return list(itertools.starmap(Rows, parts))


def _shared_by_rows(
    operands: Operands, options: Options, extent: Extent
) -> tuple[Shared, Projection]:
    """Collect what the loop needs besides its rows, and what projects the inputs before it."""
    plan = options.plan
    pieces = None if options.recurrent_mask is None else GATE_COUNT
    projection, weights = split_weights(operands.weights, options.convention.reset_after, pieces)
    kernel, bias, gain = projection
    in_loop = plan.project_in_loop and operands.inputs.dtype not in NARROW_DTYPES
    in_loop = in_loop and options.input_mask is None and gain is None
    shared = Shared(
        steps=tf.convert_to_tensor(extent.steps),
        order=1,
        weights=weights,
        kernel=kernel if in_loop else None,
        projection_bias=wide(bias) if in_loop or gain is not None else None,
        input_gain=gain,
    )
    return shared, projection


def _in_order(shared: Shared, steps: Tensor, backwards: bool, plan: Plan) -> Shared:
    """Return the number of steps of a block, and their order."""
    order: int | Order = -1 if backwards else 1
    if plan.nested and backwards:
        order = Order(steps - 1, steps, tf.constant(0))
    elif plan.nested:
        order = Order(tf.constant(0), tf.constant(-1), tf.constant(1))
    return shared._replace(steps=steps, order=order)


def _flat(values: Tensor) -> Tensor:
    """Put all steps and rows (T, B, V) into one axis."""
    return tf.reshape(values, [-1, values.shape[-1]])


def _row_sum(rows: Tensor, ones: Tensor) -> Tensor:
    """Sum (TB, V) over time and batch, as a matrix product: tf.reduce_sum is half as fast."""
    return tf.reshape(tf.matmul(rows, ones, transpose_a=True), [-1])
