"""A long sequence in segments: the states between them are all that is kept of the forward pass.

For the gradients each segment runs forward again, the last one first, so that what a backward pass
needs is there for one segment at a time (Chen et al. 2016, arXiv:1604.06174). One loop goes over
the segments, whose number need not be known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.backward_pass import gradients
from keras_gru.kernel.blocks import Extent
from keras_gru.kernel.forward_pass import Constants, Operands, infer
from keras_gru.kernel.projection import wide
from keras_gru.kernel.recurrence import batch_major

Tensor = Any

# Most steps of a segment; one of `blocks.STEPS`, so that it is compiled without padding.
SEGMENT = 128
# Segments in work at the same time: TensorFlow would project the inputs of ten, which is memory.
AT_ONCE = 1


class Cut(NamedTuple):
    """How a sequence is cut: into segments of the same number of steps, or one more.

    Attributes:
        steps: T, an int or a scalar.
        count: Number of segments, the same.
        backwards: Whether the sequence runs from its last step to its first.
    """

    steps: Any
    count: Any
    backwards: bool

    @classmethod
    def of(cls, inputs: Tensor, backwards: bool) -> Cut:
        """The cut of inputs (B, T, D)."""
        steps = inputs.shape[1] or tf.shape(inputs)[1]
        return cls(steps, (steps + SEGMENT - 1) // SEGMENT, backwards)

    def position(self, taken: Tensor) -> Tensor:
        """Of the segment that runs after `taken` others."""
        return self.count - 1 - taken if self.backwards else taken

    def bounds(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """First step of a segment, and the one after its last."""
        size, longer = self.steps // self.count, self.steps % self.count
        begin = position * size + tf.minimum(position, longer)
        return begin, begin + size + tf.cast(position < longer, tf.int32)

    def part(self, values: Tensor | None, position: Tensor) -> Tensor | None:
        """Of (B, T, …) the steps of a segment; a scalar and None as they are."""
        if values is None or values.shape.rank == 0:
            return values
        begin, end = self.bounds(position)
        return values[:, begin:end]

    def segment(
        self, operands: Operands, constants: Constants, position: Tensor, state: Tensor
    ) -> tuple[Operands, Constants]:
        """What a segment has of both."""
        inputs = self.part(operands.inputs, position)
        return operands._replace(inputs=inputs, initial_state=state), constants._replace(
            mask=self.part(constants.mask, position), zoneout=self.part(constants.zoneout, position)
        )


class _Whole:
    """A sequence (B, T, …) that a loop writes segment by segment, in place.

    Of a tensor that nothing else holds, TensorFlow overwrites a slice where it is. In eager code
    something does hold it, and each segment would copy it: so there they are joined at the end.
    """

    def __init__(self, cut: Cut, like: Tensor, features: int) -> None:
        self._cut, self._features, self._eager = cut, features, tf.executing_eagerly()
        self._rows_and_steps = like.shape[:2]
        self._sizes = tf.unstack(tf.shape(like, tf.int64)[:2])
        if self._eager:
            shape = (None, like.shape[0], features)
            array = tf.TensorArray(like.dtype, cut.count, element_shape=shape, infer_shape=False)
            self.empty: Any = array
        else:
            # Not tf.zeros: of a known size it becomes a constant, which is never overwritten.
            shape = tf.cast(self._flat(self._sizes[1]), tf.int32)
            self.empty = tf.raw_ops.Empty(shape=shape, dtype=like.dtype)

    def write(self, whole: Any, position: Tensor, part: Tensor) -> Any:
        """The whole with the part (B, steps, …) of a segment."""
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
        """The sequence (B, T, …)."""
        if self._eager:
            joined = batch_major(whole.concat())
        else:
            joined = tf.reshape(whole, [*self._sizes, self._features])
        joined.set_shape([*self._rows_and_steps, self._features])
        return joined

    def _flat(self, steps: Tensor) -> Tensor:
        """Shape of so many steps with two axes: of three, writing a slice takes twice as long."""
        return tf.stack([self._sizes[0], steps * self._features])


def forward(
    operands: Operands, constants: Constants, cut: Cut, keep_outputs: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Run over all segments.

    Returns:
        Outputs (B, T, U), if wanted, and the final state, wide; and the states before the
        segments, (segments, B, U).
    """
    state = wide(operands.initial_state)
    sequence = _Whole(cut, operands.inputs, state.shape[-1]) if keep_outputs else None

    def run(taken: Tensor, state: Tensor, starts: Any, outputs: Any) -> Any:
        position = cut.position(taken)
        starts = starts.write(position, state)
        *states, after = infer(*cut.segment(operands, constants, position, state), keep_outputs)
        if sequence is not None:
            outputs = sequence.write(outputs, position, states[0])
        after.set_shape(state.shape)
        return taken + 1, after, starts, outputs

    starts = tf.TensorArray(state.dtype, cut.count, element_shape=state.shape)
    outputs = () if sequence is None else sequence.empty
    _, final, starts, outputs = tf.while_loop(
        lambda taken, *_: taken < cut.count,
        run,
        (tf.constant(0), state, starts, outputs),
        parallel_iterations=AT_ONCE,
    )
    if sequence is None:
        return (final,), starts.stack()
    return (sequence.joined(outputs), final), starts.stack()


def backward(
    operands: Operands,
    constants: Constants,
    cut: Cut,
    starts: Tensor,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    """Gradients in the order of the operands that are there; differentiable in turn.

    Args:
        operands: As given to `forward`.
        constants: As given to `forward`.
        cut: As given to `forward`.
        starts: Second result of `forward`.
        keep_outputs: As given to `forward`.
        upstream: Gradients with respect to the first result of `forward`.
    """
    like = operands
    present = [v for v in operands if v is not None]

    @tf.custom_gradient
    def run(*values: Tensor) -> Any:
        still = [tf.stop_gradient(v) for v in values]
        given = tuple(still[len(present) :])
        found = _backward(like.filled(still), constants, cut, starts, keep_outputs, given)

        def second(*upstream: Tensor) -> list[Tensor]:
            inline = constants._replace(plan=constants.plan.inline())
            operands = like.filled(values)
            extent = Extent.of(operands.inputs, inline.plan, operands.initial_state.shape[-1])
            with tf.GradientTape() as tape:
                tape.watch(values)
                again = gradients(
                    operands, inline, extent, None, keep_outputs, values[len(present) :]
                )
            seconds: list[Tensor] = tape.gradient(
                again, values, upstream, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            return seconds

        return found, second

    return list(run(*present, *upstream))


def _backward(
    operands: Operands,
    constants: Constants,
    cut: Cut,
    starts: Tensor,
    keep_outputs: bool,
    upstream: tuple[Tensor, ...],
) -> list[Tensor]:
    weights = operands[2:]
    like = [v for v in weights if v is not None]
    sequence = _Whole(cut, operands.inputs, operands.inputs.shape[-1])

    def run(left: Tensor, d_state: Tensor, sums: Any, d_inputs: Any) -> Any:
        position = cut.position(left - 1)
        segment, rows = cut.segment(operands, constants, position, starts[position])
        extent = Extent.of(segment.inputs, rows.plan, d_state.shape[-1])
        d_outputs = [cut.part(upstream[0], position)] if keep_outputs else []
        d_x, d_before, *d_weights = gradients(
            segment, rows, extent, None, keep_outputs, (*d_outputs, d_state)
        )
        # Where nobody wants it, TensorFlow does not compute it.
        d_inputs = sequence.write(d_inputs, position, d_x)
        sums = tuple(so_far + wide(d) for so_far, d in zip(sums, d_weights, strict=True))
        d_before.set_shape(d_state.shape)
        return left - 1, d_before, sums, d_inputs

    sums = tuple(wide(tf.zeros_like(v)) for v in like)
    _, d_initial, sums, d_inputs = tf.while_loop(
        lambda left, *_: left > 0,
        run,
        (tf.convert_to_tensor(cut.count), wide(upstream[-1]), sums, sequence.empty),
        parallel_iterations=AT_ONCE,
    )
    return [
        sequence.joined(d_inputs),
        tf.cast(d_initial, operands.initial_state.dtype),
        *(tf.cast(d, v.dtype) for d, v in zip(sums, like, strict=True)),
    ]
