"""A GRU over a sequence, with hand-derived backpropagation through time.

The loop (`recurrence`) holds nothing but the recurrence. Around it are the large matrix products:
the input projection before it, the gradients of weights and inputs after it. The batch may be cut
into blocks of rows that run side by side, each in an XLA function of its own (`execution` says
when). Numbers in parentheses are those of DERIVATION.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.eager.forwardprop_util import pack_tangents

from keras_gru.kernel import execution, segments
from keras_gru.kernel.backward_pass import gradients
from keras_gru.kernel.blocks import Extent
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.forward_pass import Constants, Operands, infer, joined, run_forward
from keras_gru.kernel.normalization import centered
from keras_gru.kernel.projection import project, wide
from keras_gru.kernel.step import step
from keras_gru.kernel.weights import Gates, merge_bias, split_gates, step_weights

Tensor = Any

# A forward accumulator would silently skip the custom gradient.
NO_FORWARD_MODE = (
    "keras_gru supports forward-mode derivatives (tf.autodiff.ForwardAccumulator) only in eager "
    "code, with the whole computation inside the accumulator. Call it without tf.function, or "
    "compute second derivatives with nested tf.GradientTapes."
)


class Sequence(NamedTuple):
    """Result of `gru_sequence`.

    Attributes:
        states: State after each step, (B, T, U), or None if not asked for.
        final: Final state, (B, U).
        gates: Update gate, reset gate and candidate of each step, one (B, T, U) each and zero at
            masked steps, or None if not asked for.
        path: How it ran, `"xla"` or `"plain"`.
    """

    states: Tensor | None
    final: Tensor
    gates: Gates | None
    path: str


def gru_sequence(
    inputs: Tensor,
    initial_state: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    convention: Convention,
    *,
    layer_norm_gain: Tensor | None = None,
    mask: Tensor | None = None,
    go_backwards: bool = False,
    processing_order: bool = True,
    recurrent_mask: Gates | None = None,
    input_mask: Gates | None = None,
    zoneout: Tensor | None = None,
    return_sequences: bool = True,
    return_gates: bool = False,
    training: bool = True,
    recompute: bool = False,
    path: str = "auto",
) -> Sequence:
    """Run a GRU over a sequence.

    In bfloat16 or float16 the matrix products outside the loop are taken in that precision, and
    the recurrence in float32.

    Args:
        inputs: (B, T, D) with T >= 1; both B and T may be unknown.
        initial_state: (B, U).
        kernel: Packed input kernel, (D, 3U).
        recurrent_kernel: Packed recurrent kernel, (U, 3U).
        bias: Packed bias, see `weights.bias_shape`, or None.
        convention: Which GRU; its activations must be `differentiable_by_hand`.
        layer_norm_gain: (2, 3U), to normalise x·W and h·U, each gate over its units (38), or None.
        mask: bool (B, T) of any pattern. Where false the state is kept (5).
        go_backwards: Run from the last step to the first.
        processing_order: With `go_backwards`, give states and gates in the order in which they
            were computed, as Keras does, and not in that of the sequence.
        recurrent_mask: Dropout masks on the state, one (B, U) per gate, the same at every step.
        input_mask: Dropout masks on the inputs, one (B, D) per gate, the same at every step.
        zoneout: Share of the old state that each unit keeps at each step, (B, T, U) or a scalar:
            h′ becomes k ⊙ h + (1 − k) ⊙ h′ (Krueger et al. 2017, arXiv:1606.01305, equation (2)).
        return_sequences: Whether the states of all steps are wanted.
        return_gates: Whether the gates of all steps are wanted.
        training: Keep what the backward pass needs. Gradients are right without it as well; the
            forward pass then runs a second time when they are asked for.
        recompute: Of the forward pass keep the states between segments of the sequence, nothing
            else, and run each segment again for its gradients: less memory for more time. In a
            function that XLA compiles as a whole, the sequence is one segment.
        path: See `execution.plan`.

    Returns:
        States, final state, gates, path.
    """
    inputs, initial_state, kernel, recurrent_kernel = (
        tf.convert_to_tensor(v) for v in (inputs, initial_state, kernel, recurrent_kernel)
    )
    bias = None if bias is None else tf.convert_to_tensor(bias)
    gain = None if layer_norm_gain is None else tf.convert_to_tensor(layer_norm_gain)
    if gain is not None:
        kernel = tf.cast(centered(wide(kernel)), kernel.dtype)
        recurrent_kernel = centered(wide(recurrent_kernel))
    operands = Operands(inputs, initial_state, kernel, recurrent_kernel, bias, gain)
    rows, steps, features = inputs.shape
    units = initial_state.shape[-1]
    plan = execution.plan(path, rows, steps, features, units)
    mask = None if mask is None else tf.broadcast_to(mask, tf.shape(inputs)[:2])
    if plan.foreign and go_backwards and processing_order and not training:
        # Reverse what is read once, instead of what is written twice.
        operands = operands._replace(inputs=tf.reverse(inputs, [1]))
        mask = None if mask is None else tf.reverse(mask, [1])
        go_backwards = False
    constants = Constants(
        mask=mask,
        zoneout=None if zoneout is None else tf.convert_to_tensor(zoneout),
        recurrent_mask=recurrent_mask and Gates(*map(tf.convert_to_tensor, recurrent_mask)),
        input_mask=input_mask and Gates(*map(tf.convert_to_tensor, input_mask)),
        convention=convention,
        go_backwards=go_backwards,
        plan=plan,
    )
    keep_outputs = return_sequences or return_gates
    states, final = _recur(operands, constants, keep_outputs, training, recompute)
    gates = _gates(operands, constants, states) if return_gates else None
    if go_backwards and processing_order:
        states = None if states is None else tf.reverse(states, [1])
        gates = None if gates is None else Gates(*(tf.reverse(gate, [1]) for gate in gates))
    return Sequence(states if return_sequences else None, final, gates, plan.path)


def _recur(
    operands: Operands, constants: Constants, keep_outputs: bool, training: bool, recompute: bool
) -> tuple[Tensor | None, Tensor]:
    """The states after each step, (B, T, U), if wanted, and the final one."""
    extent = Extent.of(operands.inputs, constants.plan, operands.initial_state.shape[-1])
    like = operands
    # XLA has no slices of a changing size: what it compiles as a whole is one segment.
    recompute = recompute and training and not execution.in_xla()
    cut = segments.Cut.of(operands.inputs, constants.go_backwards) if recompute else None

    @tf.custom_gradient
    def recur(*present: Tensor) -> Any:
        operands = like.filled(present)
        # In eager code a tape would otherwise follow the loop, step by step.
        still = Operands(*(None if v is None else tf.stop_gradient(v) for v in operands))
        runs = starts = None
        if cut is not None:
            outputs, starts = segments.forward(still, constants, cut, keep_outputs)
        elif training:
            runs = run_forward(still, constants, extent, keep_outputs, True)
            outputs = joined(runs, constants, extent, keep_outputs, operands.inputs.dtype)
        else:
            outputs = infer(still, constants, keep_outputs)

        def gradient(*upstream: Tensor) -> list[Tensor]:
            if pack_tangents([*present, *upstream]).tangents:
                raise NotImplementedError(NO_FORWARD_MODE)
            if cut is not None:
                return segments.backward(operands, constants, cut, starts, keep_outputs, upstream)
            # What is computed anew waits for what asks for it, or all of it would be there at once.
            with tf.control_dependencies([] if runs else upstream):
                return gradients(operands, constants, extent, runs, keep_outputs, upstream)

        return outputs, gradient

    if pack_tangents([v for v in operands if v is not None]).tangents:
        if not tf.executing_eagerly():
            raise NotImplementedError(NO_FORWARD_MODE)
        inline = constants._replace(plan=constants.plan.inline())
        outputs = infer(operands, inline, keep_outputs)
    elif constants.plan.exported and not training:  # a SavedModel would hold the gradients too
        outputs = infer(operands, constants, keep_outputs)
    else:
        outputs = recur(*(v for v in operands if v is not None))
    final = tf.cast(outputs[-1], operands.inputs.dtype)
    return (outputs[0] if keep_outputs else None), final


def _gates(operands: Operands, constants: Constants, states: Tensor) -> Gates:
    """All steps at once: given the states, no gate waits for another."""
    bias, candidate_bias = merge_bias(operands.bias, constants.convention.reset_after)
    input_gain, recurrent_gain = operands.gains
    x = split_gates(
        project(operands.inputs, operands.kernel, bias, constants.input_mask, input_gain)
    )
    h0 = operands.initial_state[:, tf.newaxis]
    before = [states[:, 1:], h0] if constants.go_backwards else [h0, states[:, :-1]]
    masks = constants.recurrent_mask
    recurrent_mask = masks and Gates(*(wide(mask)[:, tf.newaxis] for mask in masks))
    weights = step_weights(wide(operands.recurrent_kernel), wide(candidate_bias))
    if recurrent_gain is not None:
        weights = weights._replace(centered_gain=split_gates(recurrent_gain))
    _, saved = step(x, wide(tf.concat(before, 1)), weights, constants.convention, recurrent_mask)
    gates = [tf.cast(gate, states.dtype) for gate in saved[:3]]
    if constants.mask is None:
        return Gates(*gates)
    valid = constants.mask[..., tf.newaxis]
    return Gates(*(tf.where(valid, gate, tf.zeros_like(gate)) for gate in gates))
