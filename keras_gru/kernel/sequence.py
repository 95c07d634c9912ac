"""A GRU over a sequence, with hand-derived backpropagation through time.

`recurrence` is the custom gradient around the two passes of a batch (`passes`). If memory matters
more than time, a sequence runs in segments: the forward pass keeps only the states between them,
and for the gradients each segment runs forward again, the last one first, so that the intermediates
of only one segment exist at a time (Chen et al. 2016, arXiv:1604.06174). One loop iterates over the
segments, whose number need not be known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.eager.forwardprop_util import pack_tangents

from keras_gru.kernel import execution
from keras_gru.kernel.execution import Extent, Operands, Options, filled, in_this_graph, present
from keras_gru.kernel.loop import batch_major
from keras_gru.kernel.passes import (
    differentiable,
    gradients,
    infer,
    joined,
    release_with_graph,
    run_forward,
)
from keras_gru.kernel.weights import wide

Tensor = Any

# A forward accumulator would silently skip the custom gradient.
NO_FORWARD_MODE = (
    "keras_gru supports forward-mode derivatives (tf.autodiff.ForwardAccumulator) only in eager "
    "code, with the whole computation inside the accumulator. Call it without tf.function, or "
    "compute second derivatives with nested tf.GradientTapes."
)


def recurrence(
    operands: Operands, options: Options, keep_outputs: bool, training: bool, recompute: bool
) -> tuple[Tensor, ...]:
    """Run over a sequence, with hand-derived gradients.

    Gradients are right without `training` as well; the forward pass then runs a second time when
    they are asked for. With `recompute` only the states between segments are kept; in a function
    that XLA compiles as a whole, the sequence is one segment.

    Returns:
        The state after each step, (B, T, U), if wanted, and the final one, (B, U), wide.
    """
    if pack_tangents(present(operands)).tangents:
        if not tf.executing_eagerly():
            raise NotImplementedError(NO_FORWARD_MODE)
        return infer(operands, options._replace(plan=options.plan.inline()), keep_outputs)
    if options.plan.target is not None and not training:  # a file would hold the gradients too
        return infer(operands, options, keep_outputs)
    plan = options.plan if training else options.plan.for_inference()
    extent = Extent.of(operands.inputs, plan, operands.initial_state.shape[-1])
    # XLA has no slices of a changing size, so a function that it compiles as a whole has one
    # segment.
    recompute = recompute and training and not execution.in_xla()
    segments = Segments.of(operands.inputs, options.go_backwards) if recompute else None

    @tf.custom_gradient
    def run(*values: Tensor) -> Any:
        # In eager code a tape would otherwise record the loop, step by step.
        still = filled(operands, map(tf.stop_gradient, values))
        runs = starts = None
        if segments is not None:
            outputs, starts = _forward(still, options, segments, keep_outputs)
        elif training:
            runs = run_forward(still, options, extent, keep_outputs, True)
            outputs = joined(runs, options, extent, keep_outputs, operands.inputs.dtype)
        else:
            outputs = infer(still, options, keep_outputs, extent)

        def gradient(*upstream: Tensor) -> list[Tensor]:
            if pack_tangents([*values, *upstream]).tangents:
                raise NotImplementedError(NO_FORWARD_MODE)
            found, chosen, sizes, cut = in_this_graph(
                (filled(operands, values), options, extent, segments)
            )
            if cut is not None:
                return _backward(found, chosen, cut, starts, keep_outputs, upstream)
            # Recomputation waits for its consumer; otherwise all of it would exist at once.
            with tf.control_dependencies([] if runs else upstream):
                return gradients(found, chosen, sizes, runs, keep_outputs, upstream)

        return outputs, gradient

    results: tuple[Tensor, ...] = run(*present(operands))
    release_with_graph(results[0])
    return results


# Segments ----------------------------------------------------------------------------------------

# Most steps of a segment; one of `execution.STEPS`, so that it is compiled without padding.
SEGMENT = 128
# Segments in progress at the same time: TensorFlow would otherwise project the inputs of ten, which
# takes memory.
PARALLEL_ITERATIONS = 1


class Segments(NamedTuple):
    """The cut of a sequence into segments of the same number of steps, or one more."""

    steps: Any
    """Number of steps T, an int or a scalar."""
    count: Any
    """Number of segments, the same."""
    backwards: bool
    """Whether the sequence runs from its last step to its first."""

    @classmethod
    def of(cls, inputs: Tensor, backwards: bool) -> Segments:
        """Cut inputs (B, T, D)."""
        steps = inputs.shape[1] or tf.shape(inputs)[1]
        return cls(steps, (steps + SEGMENT - 1) // SEGMENT, backwards)

    def position(self, taken: Tensor) -> Tensor:
        """Return the position of the segment that follows `taken` others."""
        return self.count - 1 - taken if self.backwards else taken

    def bounds(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first step of a segment, and the one after its last."""
        size, longer = self.steps // self.count, self.steps % self.count
        begin = position * size + tf.minimum(position, longer)
        return begin, begin + size + tf.cast(position < longer, tf.int32)

    def part(self, values: Tensor | None, position: Tensor) -> Tensor | None:
        """Cut out the steps of a segment from (B, T, …); a scalar and None stay as they are."""
        if values is None or values.shape.rank == 0:
            return values
        begin, end = self.bounds(position)
        return values[:, begin:end]

    def segment(
        self, operands: Operands, options: Options, position: Tensor, state: Tensor
    ) -> tuple[Operands, Options]:
        """Cut out a segment of both."""
        inputs = self.part(operands.inputs, position)
        return operands._replace(inputs=inputs, initial_state=state), options._replace(
            mask=self.part(options.mask, position), zoneout=self.part(options.zoneout, position)
        )


class _Whole:
    """A sequence (B, T, …) that a loop writes segment by segment, in place.

    TensorFlow overwrites a slice in place if nothing else refers to the tensor. In eager code
    something does, and each segment would copy it, so there the segments are joined at the end.
    """

    def __init__(self, cut: Segments, like: Tensor, features: int) -> None:
        self._cut, self._features, self._eager = cut, features, tf.executing_eagerly()
        self._rows_and_steps = like.shape[:2]
        self._sizes = tf.unstack(tf.shape(like, tf.int64)[:2])
        if self._eager:
            shape = (None, like.shape[0], features)
            array = tf.TensorArray(like.dtype, cut.count, element_shape=shape, infer_shape=False)
            self.empty: Any = array
        else:
            # tf.zeros is not used: with a known size it becomes a constant, which is never
            # overwritten.
            shape = tf.cast(self._flat(self._sizes[1]), tf.int32)
            self.empty = tf.raw_ops.Empty(shape=shape, dtype=like.dtype)

    def write(self, whole: Any, position: Tensor, part: Tensor) -> Any:
        """Write the part (B, steps, …) of a segment into the whole."""
        if self._eager:
            return whole.write(position, batch_major(part))
        begin, end = (tf.cast(step, tf.int64) for step in self._cut.bounds(position))
        written = tf.raw_ops.TensorStridedSliceUpdate(
            input=whole,
            begin=[0, begin * self._features],
            end=[self._sizes[0], end * self._features],
            strides=tf.ones(2, tf.int64),
            value=tf.reshape(part, self._flat(end - begin)),
        )
        written.set_shape(whole.shape)
        return written

    def joined(self, whole: Any) -> Tensor:
        """Return the sequence (B, T, …)."""
        if self._eager:
            joined = batch_major(whole.concat())
        else:
            joined = tf.reshape(whole, [*self._sizes, self._features])
        joined.set_shape([*self._rows_and_steps, self._features])
        return joined

    def _flat(self, steps: Tensor) -> Tensor:
        """Return the shape of this many steps with two axes.

        With three, writing a slice takes twice as long.
        """
        return tf.stack([self._sizes[0], steps * self._features])


def _forward(
    operands: Operands, options: Options, segments: Segments, keep_outputs: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Run over all segments.

    Returns:
        Outputs (B, T, U), if wanted, and the final state, wide; and the states before the
        segments, (segments, B, U).
    """
    state = wide(operands.initial_state)
    sequence = _Whole(segments, operands.inputs, state.shape[-1]) if keep_outputs else None

    def run(taken: Tensor, state: Tensor, starts: Any, outputs: Any) -> Any:
        position = segments.position(taken)
        starts = starts.write(position, state)
        part = segments.segment(operands, options, position, state)
        *states, after = infer(*part, keep_outputs)
        if sequence is not None:
            outputs = sequence.write(outputs, position, states[0])
        after.set_shape(state.shape)
        return taken + 1, after, starts, outputs

    starts = tf.TensorArray(state.dtype, segments.count, element_shape=state.shape)
    outputs = () if sequence is None else sequence.empty
    _, final, starts, outputs = tf.while_loop(
        lambda taken, *_: taken < segments.count,
        run,
        (tf.constant(0), state, starts, outputs),
        parallel_iterations=PARALLEL_ITERATIONS,
    )
    if sequence is None:
        return (final,), starts.stack()
    return (sequence.joined(outputs), final), starts.stack()


def _backward(
    operands: Operands,
    options: Options,
    segments: Segments,
    starts: Tensor,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    """Compute gradients in the order of the given operands; they are differentiable in turn.

    `starts` and `upstream` are the second result of `_forward`, and gradients of the first.
    """

    def compute(values: tuple[Tensor, ...], again: bool) -> list[Tensor]:
        given, upstream = filled(operands, values), values[len(present(operands)) :]
        if not again:
            return _backward_by_segments(given, options, segments, starts, keep_outputs, upstream)
        inline = options._replace(plan=options.plan.inline())
        extent = Extent.of(given.inputs, inline.plan, given.initial_state.shape[-1])
        return gradients(given, inline, extent, None, keep_outputs, upstream)

    found: list[Tensor] = differentiable(compute, (*present(operands), *upstream))
    return found


def _backward_by_segments(
    operands: Operands,
    options: Options,
    segments: Segments,
    starts: Tensor,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    """Run forward and back through each segment, the last one first; arguments as above."""
    weights = present(operands)[2:]
    sequence = _Whole(segments, operands.inputs, operands.inputs.shape[-1])

    def run(left: Tensor, d_state: Tensor, sums: Any, d_inputs: Any) -> Any:
        position = segments.position(left - 1)
        part, rows = segments.segment(operands, options, position, starts[position])
        extent = Extent.of(part.inputs, rows.plan, d_state.shape[-1])
        d_outputs = [segments.part(upstream[0], position)] if keep_outputs else []
        d_x, d_before, *d_weights = gradients(
            part, rows, extent, None, keep_outputs, (*d_outputs, d_state)
        )
        # TensorFlow does not compute it if it is not used.
        d_inputs = sequence.write(d_inputs, position, d_x)
        sums = tuple(so_far + wide(d) for so_far, d in zip(sums, d_weights, strict=True))
        d_before.set_shape(d_state.shape)
        return left - 1, d_before, sums, d_inputs

    sums = tuple(wide(tf.zeros_like(v)) for v in weights)
    _, d_initial, sums, d_inputs = tf.while_loop(
        lambda left, *_: left > 0,
        run,
        (tf.convert_to_tensor(segments.count), wide(upstream[-1]), sums, sequence.empty),
        parallel_iterations=PARALLEL_ITERATIONS,
    )
    found = [sequence.joined(d_inputs), d_initial, *sums]
    return [tf.cast(d, v.dtype) for d, v in zip(found, present(operands), strict=True)]
