"""Forward loops for graphs without XLA: of a SavedModel, and for other runtimes.

TensorFlow's executor takes a microsecond for the smallest operation, and a server that is not warm
yet pays for every node of a graph. So `run` is one loop over the steps per layer and direction,
without conditionals, in a function that all loops of the same sizes share, in either direction,
masked at the ends or inside. Several steps share an iteration, and read their time-major inputs as
one piece. Steps are skipped through data, not through control flow: time is padded to whole
iterations, and a masked or padded step admits no candidate. An outer loop runs once or, for a large
batch, once per block of rows.

`scan` is for ONNX Runtime and TensorFlow Lite, whose converters read no such loop.

Both keep nothing for a backward pass. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_gru.kernel.equations import Convention, project, step
from keras_gru.kernel.execution import Operands, Options, block_call, plain_blocks
from keras_gru.kernel.loop import Rows, batch_major, kept_in_part
from keras_gru.kernel.weights import (
    PackedWeights,
    Pieces,
    Projection,
    StepWeights,
    columns,
    in_pieces,
    split_weights,
    wide,
    with_opposite_gate,
)

Tensor = Any

# σ(−∞) = 0, and 1 − σ(a) = σ(−a).
_CLOSING = (keras.activations.sigmoid, keras.activations.hard_sigmoid)
# |φ| is finite, so nothing of it passes a closed gate.
_BOUNDED_ACTIVATIONS = (*_CLOSING, keras.activations.tanh)


def run(operands: Operands, options: Options, keep_outputs: bool) -> tuple[Tensor, Tensor | None]:
    """Run from the initial state over all steps; of the plan, `unroll` is read.

    Returns:
        The final state (B, U) and, if wanted, the states of all steps (B, T, U).
    """
    packed, convention, go_backwards = operands.weights, options.convention, options.go_backwards
    if _closes(convention) and convention.update_gate == "keep":
        # With this, the activation returns 1 − z.
        opposite = map(with_opposite_gate, packed[:3])
        packed = PackedWeights._make([*opposite, packed.layer_norm_gain])
        convention = dataclasses.replace(convention, update_gate="replace")

    def in_order(values: Tensor | None) -> Tensor | None:
        """Put (B, T, …) in the order of processing, or back; None and scalars stay."""
        backwards = go_backwards and values is not None and values.shape.rank > 0
        return tf.reverse(values, [1]) if backwards else values

    # Normalisation takes more operations than a product, so there are as few pieces as possible.
    normalized = packed.layer_norm_gain is not None and convention.reset_after
    projection, weights = split_weights(packed, convention.reset_after, 1 if normalized else 2)
    rows = Rows(
        inputs=in_order(operands.inputs),
        initial_state=wide(operands.initial_state),
        mask=in_order(options.mask),
        zoneout=in_order(wide(options.zoneout)),
        recurrent_mask=None,
    )
    in_columns = weights._replace(recurrent=tuple(map(columns, weights.recurrent)))
    tensors, plan = (rows, projection, in_columns), options.plan._replace(nested=True)
    final, outputs = block_call(plan, _run_blocks, tensors, convention, plan.unroll, keep_outputs)()
    return final, in_order(outputs)


def _run_blocks(
    rows: Rows,
    projection: Projection,
    weights: StepWeights,
    convention: Convention,
    unroll: int,
    keep_outputs: bool,
) -> tuple[Tensor, Tensor | None]:
    """Run the blocks of rows of a batch; results as in `run`."""
    h0 = rows.initial_state
    batch = h0.shape[0] or tf.shape(h0)[0]
    blocks = plain_blocks(batch, h0.shape[-1])
    size = -(-batch // blocks)

    def run_block(k: Any) -> tuple[Tensor, Tensor | None]:
        ends = tf.reshape(k * size, [1]), tf.reshape((k + 1) * size, [1])

        def cut(values: Tensor | None) -> Tensor | None:
            if values is None or values.shape.rank == 0:
                return values
            part = tf.strided_slice(values, *ends, [1])
            part.set_shape([None, *values.shape[1:]])
            return part

        part = Rows(*map(cut, rows))
        return _run_rows(part, projection, weights, convention, unroll, keep_outputs)

    if isinstance(blocks, int):
        if blocks == 1:
            return _run_rows(rows, projection, weights, convention, unroll, keep_outputs)
        finals, states = zip(*map(run_block, range(blocks)), strict=True)
        return tf.concat(finals, 0), tf.concat(states, 0) if keep_outputs else None

    def some_rows(k: Tensor, arrays: Any) -> Any:
        pairs = zip(arrays, run_block(k), strict=False)
        return k + 1, tuple(array.write(k, v) for array, v in pairs)

    # Blocks are independent, so the iterations of this loop run in parallel.
    arrays = tuple(
        tf.TensorArray(h0.dtype, size=blocks, infer_shape=False) for _ in range(1 + keep_outputs)
    )
    _, arrays = tf.while_loop(lambda k, _: k < blocks, some_rows, (tf.constant(0), arrays))
    final, *outputs = (array.concat() for array in arrays)
    final.set_shape(h0.shape)
    if not keep_outputs:
        return final, None
    outputs[0].set_shape([*rows.inputs.shape[:2], h0.shape[-1]])
    return final, outputs[0]


def _run_rows(
    rows: Rows,
    projection: Projection,
    weights: StepWeights,
    convention: Convention,
    unroll: int,
    keep_outputs: bool,
) -> tuple[Tensor, Tensor | None]:
    """Run one block of rows; results as in `run`."""
    h0, closes = rows.initial_state, _closes(convention)
    steps = rows.inputs.shape[1] or tf.shape(rows.inputs)[1]
    size = _steps_per_iteration(steps, unroll)
    count = -(-steps // size)
    if not isinstance(steps, int):
        count = tf.maximum(count, 1)  # an array of rows of any number cannot be stacked empty
    missing = count * size - steps
    padded = not isinstance(missing, int) or missing > 0

    def pieces(values: Tensor) -> Tensor:
        """Cut (B, T, …), padded, into (count, size, B, …)."""
        values = tf.transpose(values, [1, 0, *range(2, values.shape.rank)])
        if padded:
            values = tf.pad(values, [[0, missing], *[[0, 0]] * (values.shape.rank - 1)])
        cut = tf.reshape(values, tf.concat([[count, size], tf.shape(values)[1:]], 0))
        cut.set_shape([None, size, *values.shape[1:]])
        return cut

    x = pieces(rows.inputs)
    valid = None
    if rows.mask is not None:
        valid = pieces(rows.mask)
    elif padded:
        valid = tf.reshape(tf.range(steps + missing) < steps, [-1, size, 1])
    steady = rows.zoneout if rows.zoneout is not None and rows.zoneout.shape.rank == 0 else None
    shares = None if rows.zoneout is None or steady is not None else pieces(rows.zoneout)
    # One bias per row is used: TensorFlow would fuse a vector with the product, for oneDNN, which
    # takes three times as long with few rows.
    if weights.candidate_bias is not None:
        weights = weights._replace(candidate_bias=tf.zeros_like(h0) + weights.candidate_bias)
    project_piece = _projector(x, valid if closes else None, projection, h0)

    def read(i: Tensor, values: Tensor | None) -> list[Any]:
        return [None] * size if values is None else tf.unstack(tf.gather(values, i), size)

    def iteration(i: Tensor, h: Tensor, outputs: Any) -> Any:
        zr, g = (tf.unstack(v, size) for v in in_pieces(project_piece(i), 2))
        kept_where = read(i, None if closes else valid)
        kept_share, states = read(i, shares), []
        for k in range(size):
            h_new, _ = step((zr[k], g[k]), h, weights, convention)
            where = None if kept_where[k] is None else kept_where[k][:, tf.newaxis]
            h = kept_in_part(h, h_new, where, steady if shares is None else kept_share[k])
            h.set_shape(h0.shape)
            states.append(h)
        return i + 1, h, tuple(array.write(i, tf.stack(states)) for array in outputs)

    shape = tf.TensorShape([size]).concatenate(h0.shape)
    array = tf.TensorArray(h0.dtype, size=count, element_shape=shape)
    _, final, kept = tf.while_loop(
        lambda i, *_: i < count,
        iteration,
        (tf.constant(0), h0, (array,) if keep_outputs else ()),
    )
    if not keep_outputs:
        return final, None
    states = tf.reshape(kept[0].stack(), tf.concat([[count * size], tf.shape(h0)], 0))
    states = states[:steps] if padded else states
    return final, batch_major(states)


def _steps_per_iteration(steps: Any, unroll: int) -> int:
    """Choose how many steps share an iteration: at most `unroll`, preferably without padding.

    There are more than half of `unroll`, since an iteration costs as much as a small step. Padding
    100 steps to 104 takes a tenth more time with 32 rows of 128 units; five at a time need no
    padding.
    """
    if not isinstance(steps, int):
        return unroll
    fitting = (size for size in range(unroll, unroll // 2, -1) if steps % size == 0)
    return next(fitting, min(unroll, steps))


def _projector(
    x: Tensor, valid: Tensor | None, projection: Projection, h0: Tensor
) -> Callable[[Tensor], Tensor | Pieces]:
    """Make the function that projects the inputs of iteration i, closing the gate at invalid steps.

    Without steps to close, the inputs come from two products, which saves cutting the result of
    one. They are not computed for all iterations at once, as a large batch would pass through
    memory repeatedly. `x` is (count, size, B, D), and `valid` bool (count, size, B), or (…, 1) if
    it is the same for all rows.

    Returns:
        Function from i to (size, B, 3U), whole or cut into (size, B, 2U) and (size, B, U).
    """
    kernel, bias, gain = projection
    if valid is None and gain is None:
        kernels, biases = in_pieces(kernel, 2), (None, None) if bias is None else in_pieces(bias, 2)

        def project_apart(i: Tensor) -> Pieces:
            piece = tf.gather(x, i)
            return tuple([project(piece, *pair) for pair in zip(kernels, biases, strict=True)])

        return project_apart
    if valid is None:
        return lambda i: project(tf.gather(x, i), *projection)
    units = h0.shape[-1]
    closing = tf.constant([-float("inf")] * units + [0.0] * 2 * units, h0.dtype)
    if valid.shape[-1] == 1 and gain is None:  # padded inputs are zero
        bias = tf.zeros_like(closing) if bias is None else wide(bias)
        biases = tf.where(valid[..., tf.newaxis], bias, closing)
        return lambda i: project(tf.gather(x, i), kernel) + tf.gather(biases, i)
    width = 3 * units
    closed = tf.zeros_like(tf.tile(h0, [x.shape[1], 3])) + closing
    valid = tf.reshape(tf.broadcast_to(valid, tf.shape(x)[:3]), [tf.shape(x)[0], -1])

    def projected(i: Tensor) -> Tensor:
        piece = tf.gather(x, i)
        flat = tf.reshape(project(piece, *projection), [-1, width])
        # This works row by row: tf.where with a broadcast condition takes several times as long.
        chosen = tf.raw_ops.Select(condition=tf.gather(valid, i), x=flat, y=closed)
        return tf.reshape(chosen, tf.concat([tf.shape(piece)[:2], [width]], 0))

    return projected


def _closes(convention: Convention) -> bool:
    """Tell whether an infinite input closes the update gate so that nothing passes."""
    return (
        convention.recurrent_activation in _CLOSING
        and convention.activation in _BOUNDED_ACTIVATIONS
    )


def scan(operands: Operands, options: Options, keep_outputs: bool) -> tuple[Tensor, Tensor | None]:
    """Run from the initial state over all steps, in a loop that converters can read.

    Converters read one `While` without functions or conditionals, in which every iteration writes
    one state, beginning with the first. So each step is an iteration, and reversed order means
    reading from the end. TensorFlow Lite has arrays only for states of a known size; other states
    are written into one tensor. Results are those of `run`; of the plan only `target` is used.
    """
    convention, go_backwards = options.convention, options.go_backwards
    h0, mask, zoneout = wide(operands.initial_state), options.mask, wide(options.zoneout)
    projection, weights = split_weights(operands.weights, convention.reset_after)
    in_tensor = options.plan.target == "litert" and h0.shape[0] is None
    inputs = batch_major(operands.inputs)
    steps = inputs.shape[0] or tf.shape(inputs)[0]
    projected = project(inputs, *projection)
    valid = None if mask is None else tf.expand_dims(tf.transpose(mask), -1)
    shares = batch_major(zoneout) if zoneout is not None and zoneout.shape.rank > 0 else None

    def take_step(i: Tensor, h: Tensor, outputs: Any) -> Any:
        t = steps - 1 - i if go_backwards else i
        h_new, _ = step(in_pieces(tf.gather(projected, t), 2), h, weights, convention)
        share = zoneout if shares is None else tf.gather(shares, t)
        h = kept_in_part(h, h_new, None if valid is None else tf.gather(valid, t), share)
        h.set_shape(h0.shape)
        return i + 1, h, tuple(write(output, i, h) for output in outputs)

    def write(output: Any, i: Tensor, h: Tensor) -> Any:
        if not in_tensor:
            return output.write(i, h)
        return tf.tensor_scatter_nd_update(output, [[i]], h[tf.newaxis])

    if in_tensor:
        outputs = tf.zeros(tf.concat([[steps], tf.shape(h0)], 0), h0.dtype)
        outputs.set_shape([None, *h0.shape])
    else:
        outputs = tf.TensorArray(h0.dtype, size=steps, element_shape=h0.shape)
    _, final, kept = tf.while_loop(
        lambda i, *_: i < steps,
        take_step,
        (tf.constant(0), h0, (outputs,) if keep_outputs else ()),
    )
    if not keep_outputs:
        return final, None
    states = kept[0] if in_tensor else kept[0].stack()
    return final, batch_major(tf.reverse(states, [0]) if go_backwards else states)
