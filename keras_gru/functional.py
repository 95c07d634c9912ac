"""The GRU as pure functions of tensors, with the layer's own kernel under them.

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

from typing import Any

import tensorflow as tf

from keras_gru.kernel.arguments import PackedWeights, fitting, floating, gate_masks
from keras_gru.kernel.convention import UPDATE_GATES, Convention
from keras_gru.kernel.sequence import Sequence, gru_sequence
from keras_gru.kernel.step import Saved
from keras_gru.kernel.step import step as _step
from keras_gru.kernel.step_inputs import step_inputs
from keras_gru.kernel.weights import (
    GATE_COUNT,
    Gates,
    bias_shape,
    kernel_shape,
    recurrent_kernel_shape,
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
_STANDARD = Convention()


def step(
    x: Tensor,
    h: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None = None,
    convention: Convention = _STANDARD,
    *,
    layer_norm_gain: Tensor | None = None,
    recurrent_mask: Gates | None = None,
) -> Tensor:
    """One time step, (1) to (4).

    The leading axes of `x` and `h` broadcast against each other, and each of the two is multiplied
    only once: M inputs (M, D) and B states (B, 1, U) give (B, M, U).

    >>> rng = np.random.default_rng(0)
    >>> kernel, recurrent_kernel = rng.normal(size=(3, 12)), rng.normal(size=(4, 12))
    >>> step(rng.normal(size=(2, 3)), np.zeros((2, 4)), kernel, recurrent_kernel).shape
    TensorShape([2, 4])

    Args:
        x: Input, (..., D).
        h: Previous state, (..., U).
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: (2, 3U) with `reset_after`, else (3U,); or None.
        convention: Which GRU; by default that of Keras, cuDNN and PyTorch.
        layer_norm_gain: (2, 3U), to normalise x·W and h·U, each gate over its units, before the
            biases are added (Ba et al. 2016, arXiv:1607.06450); or None.
        recurrent_mask: Dropout masks, one per gate that broadcasts against `h`, which scale the
            state on its way into that gate's product (Gal & Ghahramani 2016, arXiv:1512.05287); or
            None.

    Returns:
        The new state, (..., U).

    Raises:
        ValueError: A shape or a dtype does not fit; the message names the argument.
    """
    h_new, _ = _advanced(
        x,
        h,
        PackedWeights(kernel, recurrent_kernel, bias, layer_norm_gain),
        convention,
        recurrent_mask,
    )
    return h_new


def gates(
    x: Tensor,
    h: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None = None,
    convention: Convention = _STANDARD,
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
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: See `step`.
        convention: See `step`.
        layer_norm_gain: See `step`.
        recurrent_mask: See `step`.

    Returns:
        z, r and g, (..., U) each.

    Raises:
        ValueError: A shape or a dtype does not fit; the message names the argument.
    """
    _, saved = _advanced(
        x,
        h,
        PackedWeights(kernel, recurrent_kernel, bias, layer_norm_gain),
        convention,
        recurrent_mask,
    )
    return Gates(saved.z, saved.r, saved.g)


def sequence(
    x: Tensor,
    initial_state: Tensor | None,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None = None,
    convention: Convention = _STANDARD,
    *,
    layer_norm_gain: Tensor | None = None,
    mask: Tensor | None = None,
    go_backwards: bool = False,
    processing_order: bool = True,
    recurrent_mask: Gates | None = None,
    zoneout: Tensor | None = None,
    return_sequences: bool = True,
    return_gates: bool = False,
    training: bool = False,
    path: str = "auto",
) -> Sequence:
    """A whole sequence, with hand-derived backpropagation through time, (6) to (15).

    >>> rng = np.random.default_rng(0)
    >>> kernel, recurrent_kernel = rng.normal(size=(3, 12)), rng.normal(size=(4, 12))
    >>> run = sequence(rng.normal(size=(2, 5, 3)), None, kernel, recurrent_kernel)
    >>> run.states.shape, run.final.shape, run.path
    (TensorShape([2, 5, 4]), TensorShape([2, 4]), 'plain')

    Args:
        x: Inputs, (B, T, D) with T >= 1; both B and T may be unknown.
        initial_state: (B, U), or None for zeros.
        kernel: (D, 3U).
        recurrent_kernel: (U, 3U).
        bias: (2, 3U) with `reset_after`, else (3U,); or None.
        convention: Which GRU; activations among sigmoid, hard_sigmoid, tanh, relu and linear.
        layer_norm_gain: See `step`.
        mask: Boolean (B, T) of any pattern. Where False the state is kept (5).
        go_backwards: Run from the last step to the first.
        processing_order: With `go_backwards`, give states and gates in the order in which they
            were computed, as Keras does, and not in that of the sequence.
        recurrent_mask: Dropout masks of the state, one (B, U) per gate, the same at every step.
        zoneout: Share of the old state that each unit keeps at each step, (B, T, U) or a scalar
            (Krueger et al. 2017, arXiv:1606.01305).
        return_sequences: Whether the states of all steps are wanted.
        return_gates: Whether the gates of all steps are wanted.
        training: Keep what gradients need. They are right without it as well; the forward pass
            then runs a second time when they are asked for.
        path: `"auto"` for the layer's own rule, or `"xla"` or `"plain"`.

    Returns:
        `states` (B, T, U) or None, `final` (B, U), `gates` of (B, T, U) each, zero at masked
        steps, or None, and the `path` that ran.

    Raises:
        ValueError: A shape or a dtype does not fit; the message names the argument.
        RuntimeError: `path` is `"xla"` where XLA cannot be used.
    """
    x = floating("x", x)
    if x.shape.rank != 3 or x.shape[1] == 0:
        raise ValueError(
            "Argument `x` must have shape (batch, steps, features), with one step at least. "
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
    weights = weights.checked(x, convention)
    units = weights.recurrent_kernel.shape[0]
    batch, steps, _ = x.shape
    if initial_state is None:
        h = tf.zeros([tf.shape(x)[0], units], x.dtype)
        h.set_shape([batch, units])
    else:
        h = fitting("initial_state", initial_state, x.dtype, (batch, units))
    if mask is not None:
        mask = tf.convert_to_tensor(mask)
        if mask.dtype != tf.bool or not mask.shape.is_compatible_with((batch, steps)):
            raise ValueError(
                f"Argument `mask` must be boolean, of shape {(batch, steps)}. "
                f"Received: {mask.dtype.name} of shape {tuple(mask.shape)}"
            )
    if recurrent_mask is not None:
        recurrent_mask = gate_masks(recurrent_mask, x.dtype, (batch, units))
    if zoneout is not None and tf.convert_to_tensor(zoneout).shape.rank:
        zoneout = fitting("zoneout", zoneout, x.dtype, (batch, steps, units))
    elif zoneout is not None:
        zoneout = tf.cast(zoneout, x.dtype)
    return gru_sequence(
        *(x, h, *weights[:3], convention),
        layer_norm_gain=weights.layer_norm_gain,
        mask=mask,
        go_backwards=go_backwards,
        processing_order=processing_order,
        recurrent_mask=recurrent_mask,
        zoneout=zoneout,
        return_sequences=return_sequences,
        return_gates=return_gates,
        training=training,
        path=path,
    )


def _advanced(
    x: Tensor,
    h: Tensor,
    weights: PackedWeights,
    convention: Convention,
    recurrent_mask: Gates | None,
) -> tuple[Tensor, Saved]:
    x = floating("x", x)
    weights = weights.checked(x, convention)
    units = weights.recurrent_kernel.shape[0]
    h = floating("h", h)
    h = fitting("h", h, x.dtype, (*h.shape[:-1], units))
    try:
        tf.broadcast_static_shape(x.shape[:-1], h.shape[:-1])
    except ValueError:
        raise ValueError(
            "The leading axes of arguments `x` and `h` must broadcast against each other. "
            f"Received: shapes {tuple(x.shape)} and {tuple(h.shape)}"
        ) from None
    if recurrent_mask is not None:
        recurrent_mask = gate_masks(recurrent_mask, x.dtype, h.shape)
    projected, step_weights = step_inputs(
        x,
        *weights,
        convention.reset_after,
        separate=recurrent_mask is not None or weights.layer_norm_gain is not None,
    )
    return _step(projected, h, step_weights, convention, recurrent_mask)
