"""One time step of a GRU, forward and backward: the equations, each written once.

Numbers in parentheses are those of DERIVATION.md. Shapes: the state `h` and every gate (B, U); `x`
is the projected input, x·W + b of (1) to (3) with the bias of `weights.Projection` in it.
Forward, any leading axes that broadcast will do in place of B.

Weights and projected inputs come in pieces (see `weights`), so the same lines serve XLA, which
needs each gate separately, and TensorFlow's executor, which needs few operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_gru.arguments import UPDATE_GATES, check_choice
from keras_gru.kernel.weights import (
    GATE_COUNT,
    GATES_OF_PIECES,
    Gates,
    Pieces,
    StepWeights,
    in_pieces,
    split_gates,
    wide,
)

Tensor = Any
Activation = Callable[[Tensor], Tensor]

# Which GRU --------------------------------------------------------------------------------------

# σ′ and φ′ of (9), (10) and (12) as functions of the activation's output, which the forward pass
# keeps.
DERIVATIVE_FROM_OUTPUT: dict[Activation, Activation] = {
    keras.activations.sigmoid: lambda y: y * (1 - y),
    keras.activations.hard_sigmoid: lambda y: tf.cast((y > 0) & (y < 1), y.dtype) / 6,
    keras.activations.tanh: lambda y: 1 - tf.square(y),
    keras.activations.relu: lambda y: tf.cast(y > 0, y.dtype),
    keras.activations.linear: tf.ones_like,
}


@dataclass(frozen=True)
class Convention:
    """The variant of the GRU that the equations describe.

    >>> Convention(reset_after=False, update_gate="replace").activation is keras.activations.tanh
    True

    Raises:
        ValueError: `update_gate` or the name of an activation is unknown.
    """

    reset_after: bool = True
    """Whether the reset gate acts after the matmul (3a), as in Keras, cuDNN and PyTorch, or before
    it (3b), as in Cho et al. 2014 v3."""

    update_gate: str = "keep"
    """`"keep"`: z keeps the old state (4a); `"replace"`: z lets the candidate in (4b)."""

    activation: Any = keras.activations.tanh
    """Activation φ of the candidate: a function, its Keras name, or None for the identity."""

    recurrent_activation: Any = keras.activations.sigmoid
    """Activation σ of the gates: a function, its Keras name, or None for the identity."""

    def __post_init__(self) -> None:
        check_choice("update_gate", self.update_gate, UPDATE_GATES)
        for name in ("activation", "recurrent_activation"):
            object.__setattr__(self, name, keras.activations.get(getattr(self, name)))

    @property
    def differentiable_by_hand(self) -> bool:
        """True if both activations have a derivative in `DERIVATIVE_FROM_OUTPUT`."""
        return (
            self.activation in DERIVATIVE_FROM_OUTPUT
            and self.recurrent_activation in DERIVATIVE_FROM_OUTPUT
        )


# One step -----------------------------------------------------------------------------------------


def step(
    x: Pieces,
    h: Tensor,
    weights: StepWeights,
    convention: Convention,
    recurrent_mask: Gates | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Advance the state by one time step.

    Args:
        x: Projected input with its bias, in two pieces, (B, 2U) and (B, U), or one per gate.
        h: Previous state, (B, U).
        weights: Recurrent kernels and the candidate's recurrent bias.
        convention: Reset placement, update convention, activations.
        recurrent_mask: Dropout masks, one (B, U) per gate, that scale `h` on its way into that
            gate's matmul (Gal & Ghahramani 2016), or None. They need one kernel per gate.

    Returns:
        The new state, (B, U), and what `step_backward` needs, (B, U) each: z, r and g; then, with
        layer normalisation, the products of the state and each gate's recurrent kernel, or else,
        with the reset gate after the matmul, q, the candidate's recurrent part before that gate.
    """
    gain, reset_after = weights.gain, convention.reset_after
    multiply: Callable[[Tensor, Any], Tensor] = tf.matmul
    if h.shape.rank != 2:  # of more axes, tf.matmul would take one small product after another
        multiply = functools.partial(tf.tensordot, axes=1)
    elif isinstance(weights.recurrent[0], tuple):
        multiply = _product_by_columns
    products: list[Tensor] = []
    terms: list[Tensor] = []
    for k, kernel in enumerate(weights.recurrent if reset_after else weights.recurrent[:-1]):
        a = multiply(h if recurrent_mask is None else h * recurrent_mask[k], kernel)
        products.append(a)
        if gain is not None:
            a = normalize_gates(a, gain[k], GATES_OF_PIECES[len(gain)][k])
        terms.append(a)
    if not reset_after:
        terms.append(None)
    if len(x) == GATE_COUNT:
        cut = GATE_COUNT - len(terms) + 1  # gates in the first product
        terms = [*tf.split(terms[0], cut, -1), *terms[1:]] if cut > 1 else terms
        z = convention.recurrent_activation(x[0] + terms[0])  # (1)
        r = convention.recurrent_activation(x[1] + terms[1])  # (2)
    else:
        terms = list(in_pieces(tuple(terms), 2))
        a = x[0] + terms[0]
        if convention.recurrent_activation in DERIVATIVE_FROM_OUTPUT:  # it works on each element
            z, r = tf.split(convention.recurrent_activation(a), 2, -1)  # (1), (2)
        else:
            z, r = map(convention.recurrent_activation, tf.split(a, 2, -1))  # (1), (2)
    q = terms[-1]
    if reset_after:
        q = q if weights.candidate_bias is None else q + weights.candidate_bias
        g = convention.activation(x[-1] + r * q)  # (3a)
    else:
        seen = h if recurrent_mask is None else h * recurrent_mask.g
        a = multiply(r * seen, weights.recurrent[-1])
        products.append(a)
        term = a if gain is None else normalize_gates(a, gain[-1], 1)
        g = convention.activation(x[-1] + term)  # (3b)
    if convention.update_gate == "keep":
        h_new = z * h + (1 - z) * g  # (4a)
    else:
        h_new = h + z * (g - h)  # (4b), with an operation less
    if gain is not None:
        return h_new, (z, r, g, *in_pieces(tuple(products), GATE_COUNT))
    return h_new, (z, r, g, q) if reset_after else (z, r, g)


def _product_by_columns(h: Tensor, kernel: Tensor | Pieces) -> Tensor:
    """Multiply states (B, U) and a kernel that may have been cut into `columns`."""
    parts = kernel if isinstance(kernel, tuple) else (kernel,)
    products = [tf.matmul(h, part) for part in parts]
    return products[0] if len(products) == 1 else tf.concat(products, -1)


class StepGradients(NamedTuple):
    """Gradients of the loss with respect to what enters a step; all (B, U).

    `x` holds (δa_z, δa_r, δa_g). `q` is δq of (11a), or None. With layer normalisation there are
    also those of the products with the recurrent kernels, and of their gains, row by row.
    """

    h: Tensor
    x: Gates
    q: Tensor | None
    products: Gates | None = None
    gain: Gates | None = None


def step_backward(
    dh_new: Tensor,
    saved: tuple[Tensor, ...],
    h: Tensor,
    weights: StepWeights,
    convention: Convention,
    recurrent_mask: Gates | None = None,
) -> StepGradients:
    """Carry the gradient back through one time step.

    Args:
        dh_new: δh′, gradient with respect to the new state, (B, U) (6).
        saved: Second result of `step`.
        h: Previous state, (B, U).
        weights: Weights of `step`, each recurrent kernel transposed.
        convention: Variant of the GRU, the same as for `step`.
        recurrent_mask: Dropout masks of the state, the same as for `step`; or None.
    """
    z, r, g = saved[:GATE_COUNT]
    gate_derivative = DERIVATIVE_FROM_OUTPUT[convention.recurrent_activation]
    candidate_derivative = DERIVATIVE_FROM_OUTPUT[convention.activation]
    if convention.update_gate == "keep":
        dz = dh_new * (h - g)  # (7)
        dg = dh_new * (1 - z)  # (8)
        dh = dh_new * z  # (13), direct path
    else:
        dz = dh_new * (g - h)  # (7)
        dg = dh_new * z  # (8)
        dh = dh_new * (1 - z)  # (13), direct path
    da_z = dz * gate_derivative(z)  # (9)
    da_g = dg * candidate_derivative(g)  # (10)
    gain = None if weights.gain is None else in_pieces(weights.gain, GATE_COUNT)
    products = saved[GATE_COUNT:]  # with layer normalisation those h·U; else q alone, or nothing
    dterm = da_g * r if convention.reset_after else da_g  # (11a): δq; else δa_g itself
    into_g = dterm
    if gain is not None:
        into_g, d_gain_g = normalize_backward(dterm, products[2], gain[2])  # (39)
    if convention.reset_after:
        q = products[0]
        if gain is not None:
            q = normalize_gates(products[2], gain[2], 1)
            q = q if weights.candidate_bias is None else q + weights.candidate_bias
        da_r = da_g * q * gate_derivative(r)  # (12)
    else:
        drh = tf.matmul(into_g, weights.recurrent[-1])  # (11b)
        seen = h if recurrent_mask is None else h * recurrent_mask.g
        da_r = drh * seen * gate_derivative(r)  # (12)
        dh_g = drh * r
        dh += dh_g if recurrent_mask is None else dh_g * recurrent_mask.g  # (13), candidate path
    into_z, into_r = da_z, da_r
    if gain is not None:
        into_z, d_gain_z = normalize_backward(da_z, products[0], gain[0])  # (39)
        into_r, d_gain_r = normalize_backward(da_r, products[1], gain[1])
    # (13): the gate path and, with the reset gate after the matmul, the candidate path.
    into = [into_z, into_r, into_g] if convention.reset_after else [into_z, into_r]
    kernels = weights.recurrent
    if len(kernels) == 1:
        into = [tf.concat(into, -1)]
    elif len(kernels) == 2:
        into = [tf.concat(into[:2], -1), *into[2:]]
    parts = []
    for k, delta in enumerate(into):
        part = tf.matmul(delta, kernels[k])
        parts.append(part if recurrent_mask is None else part * recurrent_mask[k])
    dh += tf.add_n(parts)
    back = StepGradients(dh, Gates(da_z, da_r, da_g), dterm if convention.reset_after else None)
    if gain is None:
        return back
    return back._replace(
        products=Gates(into_z, into_r, into_g), gain=Gates(d_gain_z, d_gain_r, d_gain_g)
    )


# Layer normalisation (Ba et al. 2016, arXiv:1607.06450) ----------------------------------------
#
# A product has mean zero over the units of a gate if the gate's kernel has: so of kernels that were
# centred once, a step need not take the mean.

EPSILON = 1e-3


def centered(kernel: Tensor) -> Tensor:
    """Subtract from each gate of a packed kernel (V, 3U) the mean of its columns (37)."""
    gates = tf.reshape(wide(kernel), [-1, GATE_COUNT, kernel.shape[-1] // GATE_COUNT])
    mean = tf.reduce_mean(gates, -1, keepdims=True)
    return tf.cast(tf.reshape(gates - mean, tf.shape(kernel)), kernel.dtype)


def inverse_deviation(a: Tensor) -> Tensor:
    """Compute `s` of (38), (..., 1), from a product (..., U) with a centred kernel."""
    return tf.math.rsqrt(tf.reduce_mean(tf.square(a), -1, keepdims=True) + EPSILON)


def normalize_gates(products: Tensor, gain: Tensor, gates: int = GATE_COUNT) -> Tensor:
    """Compute γ ⊙ n of (38) for `gates` gates side by side, (..., nU), with γ of each, (nU,)."""
    if gates == 1:
        return products * inverse_deviation(products) * gain
    apart = tf.reshape(products, [-1, gates, products.shape[-1] // gates])
    normalized = tf.reshape(apart * inverse_deviation(apart), tf.shape(products)) * gain
    normalized.set_shape(products.shape)
    return normalized


def normalize_backward(delta: Tensor, a: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Compute gradients of γ ⊙ n with respect to the product and, before the sum, to γ (39).

    `delta` is the gradient of γ ⊙ n, (..., U), and `a` the product with a centred kernel.
    """
    s = inverse_deviation(a)
    n = a * s
    dn = delta * gain
    return s * (dn - n * tf.reduce_mean(dn * n, -1, keepdims=True)), delta * n


# All steps at once --------------------------------------------------------------------------------


def project(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    gain: Tensor | None = None,
    input_mask: Gates | None = None,
) -> Tensor:
    """Project inputs, of all steps at once: x·W + b, (..., D), (D, V) → (..., V), wide.

    Args:
        x: The inputs.
        kernel: Input kernel of all gates, or of any.
        bias: (V,), or None.
        gain: Gain γ (3U,) of layer normalisation, for a centred kernel of all gates; or None.
        input_mask: Dropout masks that broadcast against the inputs, one per gate, for a kernel of
            all gates; or None. Each gate then takes a product of its own.
    """
    if input_mask is not None:
        pairs = zip(input_mask, split_gates(kernel), strict=True)
        projected = tf.concat([project(x * mask, part) for mask, part in pairs], -1)
        projected = projected if gain is None else normalize_gates(projected, wide(gain))
        return projected if bias is None else projected + wide(bias)
    flat = tf.matmul(x if x.shape.rank == 2 else tf.reshape(x, [-1, kernel.shape[0]]), kernel)
    if gain is not None:
        flat, bias = normalize_gates(wide(flat), wide(gain)), wide(bias)
    if bias is not None:
        # The bias is added as a row: TensorFlow would fuse a vector with the product, for oneDNN,
        # which takes up to three times as long with one row and gains nothing with many.
        flat += tf.reshape(bias, [1, -1])
    if x.shape.rank == 2:
        return wide(flat)
    out = tf.reshape(wide(flat), [*tf.unstack(tf.shape(x)[:-1]), kernel.shape[-1]])
    out.set_shape([*x.shape[:-1], kernel.shape[-1]])
    return out
