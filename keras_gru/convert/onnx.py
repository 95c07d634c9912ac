"""The ONNX operator `GRU` (opset 7 and later).

Its tensors stack the directions on the first axis and the gates z | r | h on the second:
W (directions, 3U, D), R (directions, 3U, U) and the optional B (directions, 6U), the input's
biases before the state's. The update gate keeps. `linear_before_reset` is our `reset_after`; its
default, 0, has the reset gate before the matmul, where both candidate biases are only added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_gru.convert.arrays import take, to_array
from keras_gru.convert.gru_weights import Array, GRUWeights

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}

# ONNX names activations in the order gates, candidate.
ACTIVATIONS = {
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Relu": "relu",
    "Softsign": "softsign",
    "Softplus": "softplus",
    "HardSigmoid": "hard_sigmoid",
    "Affine": "linear",
}
DEFAULT_ACTIVATIONS = ("Sigmoid", "Tanh")
# α and β with which an activation is the one of Keras: HardSigmoid is clip(α a + β, 0, 1), Affine
# α a + β. The attributes list them for the activations that have them, and for no others.
PARAMETERS = {"HardSigmoid": (1 / 6, 0.5), "Affine": (1.0, 0.0)}
# Defaults of α and β.
DEFAULT_PARAMETERS = {"HardSigmoid": (0.2, 0.5), "Affine": (1.0, 0.0)}


def from_onnx(
    tensors: Mapping[str, Any],
    *,
    linear_before_reset: int = 0,
    direction: str | bytes = "forward",
    activations: Sequence[str | bytes] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    hidden_size: int | None = None,
    clip: float | None = None,
    layout: int = 0,  # noqa: ARG001  a node's attributes can be handed over as they are
) -> tuple[GRUWeights, ...]:
    """The weights of a GRU node.

    The keyword arguments are the node's attributes, with ONNX's defaults, so that a node reads as
    `from_onnx({"W": w, "R": r, "B": b}, **attributes)`.

    Args:
        tensors: `"W"`, `"R"` and, if the node has one, `"B"`.
        linear_before_reset: 1 for the reset gate after the matmul.
        direction: `"forward"`, `"reverse"` or `"bidirectional"`.
        activations: Two names per direction, in the order gates, candidate.
        activation_alpha: α of those activations that have one, HardSigmoid and Affine, in order;
            Keras' hard_sigmoid has 1/6, unlike ONNX's default.
        activation_beta: β of the same.
        hidden_size: Checked against R if given.
        clip: Must be absent: no layer here clips what enters its activations.
        layout: Of the node's inputs and outputs; the weights do not depend on it.

    Returns:
        One per direction: forward or reverse, or both. For a reverse one use a layer with
        `go_backwards=True`, whose outputs come in processing order, unlike ONNX's.

    Raises:
        ValueError: A tensor is missing or misshapen, or an attribute has no equivalent.
    """
    direction = _text(direction)
    if direction not in DIRECTIONS:
        raise ValueError(
            f"Attribute `direction` must be one of {tuple(DIRECTIONS)}. "
            f"Received: direction={direction!r}"
        )
    if clip is not None:
        raise ValueError(f"Attribute `clip` must be absent: no equivalent. Received: clip={clip!r}")
    count = DIRECTIONS[direction]
    W, R = take("ONNX", tensors, ("W", "R"))
    B = None if tensors.get("B") is None else to_array(tensors["B"])
    names = tuple(map(_text, activations or DEFAULT_ACTIVATIONS * count))
    if len(names) != 2 * count or not set(names) <= set(ACTIVATIONS):
        raise ValueError(
            f"Attribute `activations` must name {2 * count} of {tuple(ACTIVATIONS)}. "
            f"Received: activations={list(names)}"
        )
    _check_parameters(names, activation_alpha, activation_beta)
    if R.ndim != 3:
        raise ValueError(
            f"Tensor `R` must be an array of shape ({count}, 3U, U). Received: shape {R.shape}"
        )
    U = R.shape[-1]
    for name, tensor, shape in (
        ("W", W, (count, 3 * U, *W.shape[2:3])),
        ("R", R, (count, 3 * U, U)),
        ("B", B, (count, 6 * U)),
    ):
        if tensor is not None and (tensor.shape != shape or (name == "W" and tensor.ndim != 3)):
            raise ValueError(
                f"Tensor `{name}` of a {direction} GRU node with U={U} must have shape "
                f"{shape if name != 'W' else f'({count}, {3 * U}, D)'}. "
                f"Received: shape {tensor.shape}"
            )
    if hidden_size not in (None, U):
        raise ValueError(
            f"Attribute `hidden_size` must be {U}, as R has it. Received: hidden_size={hidden_size}"
        )
    reset_after = bool(linear_before_reset)
    result = []
    for i in range(count):
        bias = None
        if B is not None:
            rows = B[i].reshape(2, 3 * U)
            bias = rows if reset_after else rows[0] + rows[1]
        result.append(
            GRUWeights(
                W[i].T,
                R[i].T,
                bias,
                reset_after,
                activation=ACTIVATIONS[names[2 * i + 1]],
                recurrent_activation=ACTIVATIONS[names[2 * i]],
            )
        )
    return tuple(result)


def to_onnx(
    *weights: GRUWeights, go_backwards: bool = False
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Tensors and attributes of a GRU node.

    Args:
        *weights: One direction, or the forward and the backward direction of a bidirectional node.
        go_backwards: Whether the only direction given is `"reverse"`.

    Returns:
        `{"W", "R", "B"}` (no `"B"` if there are no biases) and the node's attributes.

    Raises:
        ValueError: The directions differ in more than their values, or an activation has no ONNX
            name.
    """
    if len(weights) not in (1, 2) or (go_backwards and len(weights) == 2):
        raise ValueError(
            "Argument `weights` must be one direction, or two without `go_backwards`. "
            f"Received: {len(weights)} directions, go_backwards={go_backwards}"
        )
    names = {keras_name: name for name, keras_name in ACTIVATIONS.items()}
    for w in weights:
        for argument in ("activation", "recurrent_activation"):
            if getattr(w, argument) not in list(names):  # an own function's name may be a dict
                raise ValueError(
                    f"ONNX's GRU can have {argument} among {tuple(names)}. "
                    f"Received: {argument}={getattr(w, argument)!r}"
                )
    described = [(w.features, w.units, w.reset_after, w.bias is None) for w in weights]
    if len(set(described)) != 1:
        raise ValueError(
            "Both directions must have the same (features, units, reset_after, bias is None). "
            f"Received: {described}"
        )
    (_, units, reset_after, no_bias) = described[0]
    kept = [w.with_update_gate("keep") for w in weights]
    tensors = {
        "W": np.stack([w.kernel.T for w in kept]),
        "R": np.stack([w.recurrent_kernel.T for w in kept]),
    }
    if not no_bias:
        tensors["B"] = np.stack([np.concatenate([w.input_bias, w.recurrent_bias]) for w in kept])
    one_way = "reverse" if go_backwards else "forward"
    activations = [names[a] for w in weights for a in (w.recurrent_activation, w.activation)]
    attributes: dict[str, Any] = {
        "hidden_size": units,
        "linear_before_reset": int(reset_after),
        "direction": one_way if len(weights) == 1 else "bidirectional",
        "activations": activations,
    }
    parameters = [PARAMETERS[name] for name in activations if name in PARAMETERS]
    if parameters:
        alpha, beta = zip(*parameters, strict=True)
        attributes.update(activation_alpha=list(alpha), activation_beta=list(beta))
    return tensors, attributes


def _check_parameters(
    names: tuple[str, ...], alpha: Sequence[float] | None, beta: Sequence[float] | None
) -> None:
    """ValueError unless the activations of these names are those of Keras."""
    named = [name for name in names if name in PARAMETERS]
    if not named:  # whatever the attributes say, no activation reads it
        return
    for index, (attribute, given) in enumerate(
        (("activation_alpha", alpha), ("activation_beta", beta))
    ):
        values = list(given) if given else [DEFAULT_PARAMETERS[name][index] for name in named]
        wanted = [PARAMETERS[name][index] for name in named]
        if len(values) != len(wanted) or not np.allclose(values, wanted, rtol=1e-5, atol=1e-7):
            raise ValueError(
                f"Attribute `{attribute}` must be {wanted} for activations={list(names)} to be "
                f"those of Keras. Received: {attribute}={None if given is None else list(given)}"
            )


def _text(value: str | bytes) -> str:
    """A string attribute; the onnx package reads them as bytes."""
    return value.decode() if isinstance(value, bytes) else value
