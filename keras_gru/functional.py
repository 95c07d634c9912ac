"""The GRU as pure functions of tensors: those that the layer and its cell call.

With `x` the input, `h` the previous and `h′` the new state (numbers of DERIVATION.md)::

    z  = σ(x·W_z + b_z + h·U_z + b′_z)                    update gate            (1)
    r  = σ(x·W_r + b_r + h·U_r + b′_r)                    reset gate             (2)
    g  = φ(x·W_g + b_g + r ⊙ (h·U_g + b′_g))              reset_after=True       (3a)
    g  = φ(x·W_g + b_g + (r ⊙ h)·U_g)                     reset_after=False      (3b)
    h′ = z ⊙ h + (1 − z) ⊙ g                              update_gate="keep"     (4a)
    h′ = (1 − z) ⊙ h + z ⊙ g                              update_gate="replace"  (4b)

`step` is h′ of one step, `sequence` runs over many, and `gates` are z, r and g where the states are
known. `Convention` says which GRU; of a layer it is `layer.cell.convention`.

Weights are packed `z | r | g` on the last axis, as those of `GRUCell` and `keras.layers.GRUCell`:

====================  ==========================================================
`kernel`              (D, 3U)
`recurrent_kernel`    (U, 3U)
`bias`                (2, 3U) with `reset_after` (row 0 input, row 1 recurrent), else (3U,); or None
`layer_norm_gain`     (2, 3U), row 0 of the input projection, row 1 of the recurrent one; or None
====================  ==========================================================

Tensors, variables and arrays will do, all of one floating dtype. Every function runs eagerly, in
`tf.function`, compiled by XLA and in SavedModels, and has gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from keras_gru.arguments import UPDATE_GATES, fitting, floating
from keras_gru.kernel import equations
from keras_gru.kernel.equations import Convention, centered, project
from keras_gru.kernel.execution import CONVERTED_RUNTIMES, Operands, Options, choose_plan
from keras_gru.kernel.passes import gates_of_all_steps
from keras_gru.kernel.sequence import recurrence
from keras_gru.kernel.weights import (
    GATE_COUNT,
    Gates,
    PackedWeights,
    bias_shape,
    in_pieces,
    kernel_shape,
    recurrent_kernel_shape,
    split_weights,
    wide,
)

__all__ = [
    "GATE_COUNT",
    "UPDATE_GATES",
    "Convention",
    "Gates",
    "Sequence",
    "bias_shape",
    "gates",
    "kernel_shape",
    "recurrent_kernel_shape",
    "sequence",
    "step",
]

Tensor = Any
_DEFAULT_CONVENTION = Convention()
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _unconverted(function: _Function) -> _Function:
    """Keep AutoGraph from rewriting the kernel in a `tf.function`, which would take seconds."""
    kept: _Function = tf.autograph.experimental.do_not_convert(function)
    return kept


class Sequence(NamedTuple):
    """Result of `sequence`."""

    states: Tensor | None
    """State after each step, (B, T, U), or None if not asked for."""
    final: Tensor
    """Final state, (B, U)."""
    gates: Gates | None
    """Update gate, reset gate and candidate of each step, one (B, T, U) each and zero at masked
    steps, or None if not asked for."""
    path: str
    """Path that it ran on, `"xla"`, `"plain"` or, in a layer, `"cudnn"`."""


@_unconverted
def step(
    x: Tensor,
    h: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None = None,
    convention: Convention = _DEFAULT_CONVENTION,
    *,
    layer_norm_gain: Tensor | None = None,
    recurrent_mask: Gates | None = None,
    input_mask: Gates | None = None,
) -> Tensor:
    """Advance the state by one time step, (1) to (4).

    The leading axes of `x` and `h` broadcast against each other, and each of the two is multiplied
    only once: M inputs (M, D) and B states (B, 1, U) give (B, M, U).

    >>> rng = np.random.default_rng(0)
    >>> kernel, recurrent_kernel = rng.normal(size=(3, 12)), rng.normal(size=(4, 12))
    >>> step(rng.normal(size=(2, 3)), np.zeros((2, 4)), kernel, recurrent_kernel).shape
    TensorShape([2, 4])

    Args:
        x: Input, (..., D).
        h: Previous state, (..., U).
        kernel: Input kernel, (D, 3U).
        recurrent_kernel: Recurrent kernel, (U, 3U).
        bias: (2, 3U) with `reset_after`, else (3U,); or None.
        convention: Variant of the GRU; by default that of Keras, cuDNN and PyTorch.
        layer_norm_gain: (2, 3U), to normalise x·W and h·U, each gate over its units, before the
            biases are added (Ba et al. 2016, arXiv:1607.06450); or None.
        recurrent_mask: Dropout masks, one per gate that broadcasts against `h`, which scale the
            state on its way into that gate's product (Gal & Ghahramani 2016, arXiv:1512.05287); or
            None.
        input_mask: Dropout masks of the input, one per gate that broadcasts against `x`; or None.

    Returns:
        The new state, (..., U).

    Raises:
        ValueError: A shape or a dtype does not fit; the message names the argument.
    """
    weights = PackedWeights(kernel, recurrent_kernel, bias, layer_norm_gain)
    h_new, _ = _advance(x, h, weights, convention, recurrent_mask, input_mask)
    return h_new


@_unconverted
def gates(
    x: Tensor,
    h: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None = None,
    convention: Convention = _DEFAULT_CONVENTION,
    *,
    layer_norm_gain: Tensor | None = None,
    recurrent_mask: Gates | None = None,
) -> Gates:
    """Update gate (1), reset gate (2) and candidate (3) of known states, of any number at once.

    Given the states no step waits for another: `h` (B, T, U) holds those *before* each step.

    >>> rng = np.random.default_rng(0)
    >>> kernel, recurrent_kernel = rng.normal(size=(3, 12)), rng.normal(size=(4, 12))
    >>> z, r, g = gates(np.ones((2, 5, 3)), np.zeros((2, 5, 4)), kernel, recurrent_kernel)
    >>> z.shape
    TensorShape([2, 5, 4])

    Args:
        x: Inputs, (..., D).
        h: The state before each of them, (..., U).
        kernel: Input kernel, (D, 3U).
        recurrent_kernel: Recurrent kernel, (U, 3U).
        bias: Bias, the same as for `step`.
        convention: Variant of the GRU, the same as for `step`.
        layer_norm_gain: Gains of layer normalisation, the same as for `step`.
        recurrent_mask: Dropout masks of the state, the same as for `step`.

    Returns:
        z, r and g, (..., U) each.

    Raises:
        ValueError: A shape or a dtype does not fit; the message names the argument.
    """
    weights = PackedWeights(kernel, recurrent_kernel, bias, layer_norm_gain)
    _, found = _advance(x, h, weights, convention, recurrent_mask, None)
    return found


@_unconverted
def sequence(
    x: Tensor,
    initial_state: Tensor | None,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None = None,
    convention: Convention = _DEFAULT_CONVENTION,
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
    training: bool = False,
    recompute: bool = False,
    path: str = "auto",
) -> Sequence:
    """Run over a sequence, with hand-derived backpropagation through time, (6) to (15).

    In bfloat16 or float16 the matrix products outside the loop are taken in that precision, and
    the recurrence in float32.

    >>> rng = np.random.default_rng(0)
    >>> kernel, recurrent_kernel = rng.normal(size=(3, 12)), rng.normal(size=(4, 12))
    >>> run = sequence(rng.normal(size=(2, 5, 3)), None, kernel, recurrent_kernel)
    >>> run.states.shape, run.final.shape, run.path
    (TensorShape([2, 5, 4]), TensorShape([2, 4]), 'plain')

    Args:
        x: Inputs, (B, T, D); both B and T may be unknown. Without a step the state stays.
        initial_state: (B, U), or None for zeros.
        kernel: Input kernel, (D, 3U).
        recurrent_kernel: Recurrent kernel, (U, 3U).
        bias: (2, 3U) with `reset_after`, else (3U,); or None.
        convention: Variant of the GRU; activations among sigmoid, hard_sigmoid, tanh, relu and
            linear.
        layer_norm_gain: Gains of layer normalisation, the same as for `step`.
        mask: Boolean (B, T) of any pattern. Where False the state is kept (5).
        go_backwards: Run from the last step to the first.
        processing_order: Whether `go_backwards` gives states and gates in the order in which they
            were computed, as Keras does, and not in that of the sequence.
        recurrent_mask: Dropout masks of the state, one (B, U) per gate, the same at every step.
        input_mask: Dropout masks of the inputs, one (B, D) per gate, the same at every step.
        zoneout: Share of the old state that each unit keeps at each step, (B, T, U) or a scalar
            (Krueger et al. 2017, arXiv:1606.01305).
        return_sequences: Whether the states of all steps are wanted.
        return_gates: Whether the gates of all steps are wanted.
        training: Keep what gradients need. They are right without it as well; the forward pass
            then runs a second time when they are asked for.
        recompute: Whether the forward pass keeps only the states between segments of the sequence
            and each segment runs again for its gradients: less memory for more time.
        path: `"auto"` for the layer's own rule, or `"xla"` or `"plain"`.

    Returns:
        `states` (B, T, U) or None, `final` (B, U), `gates` of (B, T, U) each, zero at masked
        steps, or None, and the `path` that ran.

    Raises:
        ValueError: A shape or a dtype does not fit; the message names the argument.
        RuntimeError: `path` is `"xla"` where XLA cannot be used.
    """
    x = floating("x", x)
    if x.shape.rank != 3:
        raise ValueError(
            "Argument `x` must have shape (batch, steps, features). "
            f"Received: shape {tuple(x.shape)}"
        )
    if path not in ("auto", "fused", "xla", "plain"):
        raise ValueError(
            f"Argument `path` must be 'auto', 'xla' or 'plain'. Received: path={path!r}"
        )
    if not convention.differentiable_by_hand:
        raise ValueError(
            "Argument `convention` must have activations among sigmoid, hard_sigmoid, tanh, relu "
            f"and linear. Received: activation={convention.activation!r}, "
            f"recurrent_activation={convention.recurrent_activation!r}"
        )
    weights = PackedWeights(kernel, recurrent_kernel, bias, layer_norm_gain)
    weights = _checked_weights(weights, x, convention)
    features, units = weights.kernel.shape[0], weights.recurrent_kernel.shape[0]
    x.set_shape([None, None, features])
    batch, steps = x.shape[:2]
    plan = choose_plan(path, batch, steps, features, units)
    if initial_state is None:
        h = tf.zeros([tf.shape(x)[0], units], x.dtype)
    else:
        h = fitting("initial_state", initial_state, x.dtype, (batch, units))
        if h.shape[0] is None or h.shape[0] != batch:
            # Or rows that are padded would hide that there are too few, or too many.
            h = tf.broadcast_to(h, [tf.shape(x)[0], units], name="initial_state_of_each_row")
    h.set_shape([batch, units])
    if mask is not None:
        mask = tf.convert_to_tensor(mask)
        if mask.dtype != tf.bool or not mask.shape.is_compatible_with((batch, steps)):
            raise ValueError(
                f"Argument `mask` must be boolean, of shape {(batch, steps)}. "
                f"Received: {mask.dtype.name} of shape {tuple(mask.shape)}"
            )
        if not (mask.shape.is_fully_defined() and mask.shape == x.shape[:2]):
            mask = tf.broadcast_to(mask, tf.shape(x)[:2], name="mask_of_each_step")
    if zoneout is not None:
        zoneout = tf.convert_to_tensor(zoneout)
        if zoneout.shape.rank:
            zoneout = fitting("zoneout", zoneout, x.dtype, (batch, steps, units))
        zoneout = tf.cast(zoneout, x.dtype)
    if recurrent_mask is not None:
        recurrent_mask = _checked_masks("recurrent_mask", recurrent_mask, x.dtype, (batch, units))
    if input_mask is not None:
        input_mask = _checked_masks("input_mask", input_mask, x.dtype, (batch, features))
    if steps == 0:
        nothing = tf.zeros([tf.shape(x)[0], 0, units], x.dtype)
        return Sequence(
            nothing if return_sequences else None,
            h,
            Gates(nothing, nothing, nothing) if return_gates else None,
            "xla" if plan.compiled else "plain",
        )
    ordered = not (go_backwards and processing_order)
    if plan.target in CONVERTED_RUNTIMES and not (plan.compiled or ordered or training):
        # Reverse what is read once, instead of what is written twice.
        x, mask = tf.reverse(x, [1]), None if mask is None else tf.reverse(mask, [1])
        if zoneout is not None and zoneout.shape.rank:
            zoneout = tf.reverse(zoneout, [1])
        go_backwards, ordered = False, True
    operands = Operands(x, h, weights)
    options = Options(mask, zoneout, recurrent_mask, input_mask, convention, go_backwards, plan)
    keep_outputs = return_sequences or return_gates
    *outputs, final = recurrence(operands, options, keep_outputs, training, recompute)
    states = outputs[0] if keep_outputs else None
    found = gates_of_all_steps(operands, options, states) if return_gates else None
    if not ordered:
        states = None if states is None else tf.reverse(states, [1])
        found = None if found is None else Gates(*[tf.reverse(gate, [1]) for gate in found])
    return Sequence(
        states if return_sequences else None,
        tf.cast(final, x.dtype),
        found,
        "xla" if plan.compiled else "plain",
    )


def _advance(
    x: Tensor,
    h: Tensor,
    weights: PackedWeights,
    convention: Convention,
    recurrent_mask: Gates | None,
    input_mask: Gates | None,
) -> tuple[Tensor, Gates]:
    """Check arguments and advance by one step: the new state, and the gates."""
    x = floating("x", x)
    weights = _checked_weights(weights, x, convention)
    units = weights.recurrent_kernel.shape[0]
    h = fitting("h", floating("h", h), x.dtype, (*h.shape[:-1], units))
    try:
        tf.broadcast_static_shape(x.shape[:-1], h.shape[:-1])
    except ValueError:
        raise ValueError(
            "The leading axes of arguments `x` and `h` must broadcast against each other. "
            f"Received: shapes {tuple(x.shape)} and {tuple(h.shape)}"
        ) from None
    if recurrent_mask is not None:
        recurrent_mask = _checked_masks("recurrent_mask", recurrent_mask, x.dtype, h.shape)
    if input_mask is not None:
        input_mask = _checked_masks("input_mask", input_mask, x.dtype, x.shape)
    apart = recurrent_mask is not None
    projection, of_step = split_weights(
        weights, convention.reset_after, GATE_COUNT if apart else None
    )
    h_new, saved = equations.step(
        in_pieces(project(x, *projection, input_mask), GATE_COUNT if apart else 2),
        wide(h),
        of_step,
        convention,
        recurrent_mask and Gates(*map(wide, recurrent_mask)),
    )
    return tf.cast(h_new, x.dtype), Gates(*[tf.cast(gate, x.dtype) for gate in saved[:GATE_COUNT]])


def _checked_weights(weights: PackedWeights, x: Tensor, convention: Convention) -> PackedWeights:
    """Return tensors that fit the inputs, or raise ValueError; with a gain, kernels are centred."""
    dtype, features = x.dtype, x.shape[-1]
    recurrent = fitting("recurrent_kernel", weights.recurrent_kernel, dtype, (None, None))
    units = recurrent.shape[0]
    packed = GATE_COUNT * units
    recurrent = fitting("recurrent_kernel", recurrent, dtype, (units, packed))
    kernel = fitting("kernel", weights.kernel, dtype, (features, packed))
    bias, gain = weights.bias, weights.layer_norm_gain
    if bias is not None:
        bias = fitting("bias", bias, dtype, bias_shape(units, convention.reset_after))
    if gain is None:
        return PackedWeights(kernel, recurrent, bias, None)
    gain = fitting("layer_norm_gain", gain, dtype, (2, packed))
    return PackedWeights(centered(kernel), centered(wide(recurrent)), bias, gain)  # (37)


def _checked_masks(name: str, masks: Any, dtype: tf.DType, shape: Any) -> Gates:
    """Return dropout masks of a state or input of this shape, one per gate, or raise ValueError."""
    if not isinstance(masks, tuple | list) or len(masks) != GATE_COUNT:
        raise ValueError(
            f"Argument `{name}` must be a Gates of {GATE_COUNT} masks. Received: {masks!r}"
        )
    pairs = zip(Gates._fields, masks, strict=True)
    return Gates(*[fitting(f"{name}.{gate}", mask, dtype, shape) for gate, mask in pairs])
