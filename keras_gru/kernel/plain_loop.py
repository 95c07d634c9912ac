"""The forward loop for TensorFlow's executor, which pays a microsecond for the least operation.

So it takes few of them. Several steps share an iteration, and read what they need, time-major, as
one piece; the update and the reset gate stay side by side until they are needed one by one. It
leaves nothing for a backward pass. Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.projection import project, wide
from keras_gru.kernel.recurrence import Mode, Rows, Trajectory, batch_major, kept_in_part
from keras_gru.kernel.step import joint_step
from keras_gru.kernel.weights import (
    JointGates,
    StepWeights,
    joint_gain,
    joint_recurrent,
    merge_bias,
    split_joint,
)

Tensor = Any

# With more weights than about that many, TensorFlow wakes other threads for a product, which takes
# it several times as long as one thread takes for few rows.
LARGE_PRODUCT = 250_000


class PlainWeights(NamedTuple):
    """All weights of a GRU as this loop wants them.

    Attributes:
        kernel: Input kernels, (D, 2U) and (D, U), or packed, (D, 3U).
        bias: Of the projection, cut as the kernel is, or None.
        recurrent: Recurrent kernels, as `StepWeights` has them.
        candidate_bias: b′_g of equation (3a), (U,), or None.
        input_gain: With layer normalisation and a packed kernel, (3U,), or None.
        recurrent_gain: The same, cut as the recurrent kernels are.
    """

    kernel: JointGates | Tensor
    bias: JointGates | Tensor | None
    recurrent: JointGates | Tensor
    candidate_bias: Tensor | None
    input_gain: Tensor | None
    recurrent_gain: JointGates | Tensor | None


class _Read(NamedTuple):
    """What some steps read, time-major.

    Attributes:
        x: Inputs (steps, B, D), or projected, as `JointGates`.
        valid: bool (steps, B, 1), or None. Where false the state is kept (5).
        share: Of the old state that each unit keeps, (steps, B, U), or None.
    """

    x: Any
    valid: Tensor | None
    share: Tensor | None


def plain_weights(
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    gains: tuple[Tensor | None, Tensor | None],
    reset_after: bool,
    few_rows: bool,
) -> PlainWeights:
    """Cut packed weights into the products that take the least time.

    Two, since the candidate is wanted apart. Recurrent kernels are cut further, into columns, until
    no product is large. But where many rows have large products anyway, as few as can be; and with
    layer normalisation, which takes more operations than a product, as few as it can be applied to.

    Args:
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: See `weights.bias_shape`, or None.
        gains: `Operands.gains`.
        reset_after: Reset placement.
        few_rows: Whether the batch is one block.
    """
    features, units = kernel.shape[0], recurrent_kernel.shape[0]
    bias, candidate_bias = merge_bias(bias, reset_after)
    recurrent_kernel = wide(recurrent_kernel)
    input_gain, recurrent_gain = gains
    small = 2 * features * units <= LARGE_PRODUCT and input_gain is None
    if recurrent_gain is not None:
        recurrent = normalized_columns(recurrent_kernel, reset_after)
    elif few_rows or units**2 <= LARGE_PRODUCT:
        recurrent = JointGates(*(columns(part) for part in split_joint(recurrent_kernel)))
    else:
        recurrent = joint_recurrent(recurrent_kernel, reset_after)
    return PlainWeights(
        kernel=split_joint(kernel) if small else kernel,
        bias=split_joint(bias) if small and bias is not None else bias,
        recurrent=recurrent,
        candidate_bias=wide(candidate_bias),
        input_gain=input_gain,
        recurrent_gain=joint_gain(recurrent_gain, reset_after),
    )


def infer_rows(
    rows: Rows, weights: PlainWeights, mode: Mode, keep_outputs: bool, project_in_loop: bool
) -> Trajectory:
    """Run from the initial state over all steps.

    Args:
        rows: Of a block, with inputs (B, T, D) and without a recurrent mask.
        weights: All of them.
        mode: How to run.
        keep_outputs: Whether the states of all steps are wanted.
        project_in_loop: Whether the inputs are projected iteration by iteration, not all at once.

    Raises:
        ValueError: There is a recurrent mask, for which this loop has no products.
    """
    if rows.recurrent_mask is not None:
        raise ValueError("`rows.recurrent_mask` of a plain loop must be None, got a mask")
    h0, size = rows.initial_state, mode.unroll
    bias = weights.candidate_bias
    if bias is not None:
        # Per row: TensorFlow would fuse a mere vector with the product, for oneDNN, which takes
        # three times as long with few rows.
        bias = tf.zeros_like(h0) + bias
    step_weights = StepWeights(weights.recurrent, bias, centered_gain=weights.recurrent_gain)
    by_step = rows.zoneout is not None and rows.zoneout.shape.rank > 0
    steady_share = None if by_step else rows.zoneout
    inputs = batch_major(rows.inputs)  # its own inverse
    sequence = _Read(
        x=inputs if project_in_loop else _projected(inputs, weights),
        valid=None if rows.mask is None else tf.transpose(rows.mask)[..., tf.newaxis],
        share=batch_major(rows.zoneout) if by_step else None,
    )

    def take_steps(read: _Read, first: Tensor, count: int, run: Any) -> Any:
        """Steps first … first + count − 1, from what they read."""
        read = read._replace(x=_projected(read.x, weights)) if project_in_loop else read
        apart = [
            None if v is None else tf.unstack(v, count)
            for v in (read.x.zr, read.x.g, read.valid, read.share)
        ]
        h, outputs = run
        for k in reversed(range(count)) if mode.go_backwards else range(count):
            zr, g, valid, share = (None if v is None else v[k] for v in apart)
            h_new, _ = joint_step(JointGates(zr, g), h, step_weights, mode.convention)
            h = kept_in_part(h, h_new, valid, steady_share if share is None else share)
            h.set_shape(h0.shape)
            outputs = tuple(array.write(first + k, h) for array in outputs)
        return h, outputs

    steps = inputs.shape[0] or tf.shape(inputs)[0]
    whole, rest = steps // size, steps % size
    begin = rest if mode.go_backwards else 0
    cut = _map(lambda v: _iterations(v, begin, whole, size), sequence)

    def iteration(i: Tensor, run: Any) -> Any:
        at = whole - 1 - i if mode.go_backwards else i
        read = _map(lambda v: tf.gather(v, at), cut)
        return i + 1, take_steps(read, begin + at * size, size, run)

    array = tf.TensorArray(h0.dtype, size=steps, element_shape=h0.shape)
    outputs = (array,) if keep_outputs else ()
    _, run = tf.while_loop(lambda i, _: i < whole, iteration, (tf.constant(0), (h0, outputs)))
    # What remains is a sum of powers of two, each of them run or not: a conditional takes fewer
    # operations than an iteration, of which there may be more.
    done, count = 0, size // 2
    while count:
        first = rest - done - count if mode.go_backwards else whole * size + done

        def some(run: Any, first: Any = first, count: int = count) -> Any:
            part = _map(lambda v: v[first : first + count], sequence)
            return take_steps(part, first, count, run)

        run = _run_if(rest & count, some, run)
        done += rest & count
        count //= 2
    final, outputs = run
    states = batch_major(outputs[0].stack()) if keep_outputs else None
    return Trajectory(final, states, None, ())


def columns(kernel: Tensor) -> Tensor | tuple[Tensor, ...]:
    """A kernel, or its columns in 2, 4, 8 … parts, as few as there must be for none to be large.

    Three parts of 1,024 columns take longer than four: their widths are odd.
    """
    rows, width = kernel.shape
    count = 1 << (-(-rows * width // LARGE_PRODUCT) - 1).bit_length()
    if count == 1:
        return kernel
    ends = [width * part // count for part in range(count + 1)]
    return tuple(tf.split(kernel, [end - begin for begin, end in itertools.pairwise(ends)], -1))


def normalized_columns(recurrent_kernel: Tensor, reset_after: bool) -> Any:
    """A recurrent kernel for a step with layer normalisation, cut as `joint_recurrent` cuts it."""
    if reset_after:
        return columns(recurrent_kernel)
    return JointGates(*(columns(part) for part in split_joint(recurrent_kernel)))


def _projected(x: Tensor, weights: PlainWeights) -> JointGates:
    kernel, bias = weights.kernel, weights.bias
    if not isinstance(kernel, JointGates):
        return split_joint(project(x, kernel, bias, gain=weights.input_gain))
    zr, g = (None, None) if bias is None else bias
    return JointGates(project(x, kernel.zr, zr), project(x, kernel.g, g))


def _map(function: Callable[[Tensor], Tensor], read: _Read) -> Any:
    return tf.nest.map_structure(lambda v: None if v is None else function(v), read)


def _iterations(values: Tensor, begin: Any, count: Any, size: int) -> Tensor:
    """Of a sequence (T, …), `count` pieces of `size` steps, (count, size, …)."""
    part = values[begin : begin + count * size]
    pieces = tf.reshape(part, tf.concat([[count, size], tf.shape(values)[1:]], 0))
    pieces.set_shape([None, size, *values.shape[1:]])
    return pieces


def _run_if(condition: Any, some: Callable[[Any], Any], run: Any) -> Any:
    if isinstance(condition, int):
        return some(run) if condition else run
    return tf.cond(condition > 0, lambda: some(run), lambda: run)
