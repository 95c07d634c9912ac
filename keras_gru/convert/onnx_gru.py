"""GRUs as nodes of ONNX's operator GRU (opset 7 and later): their weights, and nodes in a graph.

The operator's tensors stack the directions on the first axis and the gates z | r | h on the second:
W (directions, 3U, D), R (directions, 3U, U) and the optional B (directions, 6U), the input's
biases before the state's. The update gate keeps. `linear_before_reset` is our `reset_after`; its
default, 0, has the reset gate before the matmul, where both candidate biases are only added.

ONNX has lengths, not masks. So the steps that a mask leaves are gathered at the front of each row,
and the outputs are put back to where their steps came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_gru.convert.gru_weights import Array, GRUWeights, take, to_array
from keras_gru.convert.onnx_graph import END, INT32, INT64, OnnxGraph, Value, float32
from keras_gru.layer import GRU

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}

# ONNX names activations in the order gates, candidate.
_ACTIVATIONS = {
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Relu": "relu",
    "Softsign": "softsign",
    "Softplus": "softplus",
    "HardSigmoid": "hard_sigmoid",
    "Affine": "linear",
}
_DEFAULT_ACTIVATIONS = ("Sigmoid", "Tanh")
# α and β with which an activation is the one of Keras: HardSigmoid is clip(α a + β, 0, 1), Affine
# α a + β. The attributes list them for the activations that have them, and for no others.
_PARAMETERS = {"HardSigmoid": (1 / 6, 0.5), "Affine": (1.0, 0.0)}
# Defaults of α and β.
_DEFAULT_PARAMETERS = {"HardSigmoid": (0.2, 0.5), "Affine": (1.0, 0.0)}


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
    """Read the weights of a GRU node.

    The keyword arguments are the node's attributes, with ONNX's defaults, so that a node reads as
    `from_onnx({"W": w, "R": r, "B": b}, **attributes)`.

    Args:
        tensors: `"W"`, `"R"` and, if the node has one, `"B"`.
        linear_before_reset: 1 for the reset gate after the matmul.
        direction: `"forward"`, `"reverse"` or `"bidirectional"`.
        activations: Names of two activations per direction, in the order gates, candidate.
        activation_alpha: α of those activations that have one, HardSigmoid and Affine, in order;
            Keras' hard_sigmoid has 1/6, unlike ONNX's default.
        activation_beta: β of the same.
        hidden_size: Size of the state, checked against R if given.
        clip: Clipping threshold, which must be absent: no layer here clips what enters its
            activations.
        layout: Layout of the node's inputs and outputs, on which the weights do not depend.

    Returns:
        Weights of each direction: forward or reverse, or both. For a reverse one use a layer with
        `go_backwards=True`, whose outputs come in processing order, unlike ONNX's.

    Raises:
        ValueError: A tensor is missing or misshapen, or an attribute has no equivalent.
    """
    direction = _text(direction)
    if direction not in _DIRECTIONS:
        raise ValueError(
            f"Attribute `direction` must be one of {tuple(_DIRECTIONS)}. "
            f"Received: direction={direction!r}"
        )
    if clip is not None:
        raise ValueError(f"Attribute `clip` must be absent: no equivalent. Received: clip={clip!r}")
    count = _DIRECTIONS[direction]
    W, R = take("ONNX", tensors, ("W", "R"))
    B = None if tensors.get("B") is None else to_array(tensors["B"])
    names = tuple(map(_text, activations or _DEFAULT_ACTIVATIONS * count))
    if len(names) != 2 * count or not set(names) <= set(_ACTIVATIONS):
        raise ValueError(
            f"Attribute `activations` must name {2 * count} of {tuple(_ACTIVATIONS)}. "
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
                activation=_ACTIVATIONS[names[2 * i + 1]],
                recurrent_activation=_ACTIVATIONS[names[2 * i]],
            )
        )
    return tuple(result)


def to_onnx(
    *weights: GRUWeights, go_backwards: bool = False
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Convert weights to the tensors and attributes of a GRU node.

    Args:
        *weights: Weights of one direction, or of forward and backward in a bidirectional node.
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
    names = {keras_name: name for name, keras_name in _ACTIVATIONS.items()}
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
    parameters = [_PARAMETERS[name] for name in activations if name in _PARAMETERS]
    if parameters:
        alpha, beta = zip(*parameters, strict=True)
        attributes.update(activation_alpha=list(alpha), activation_beta=list(beta))
    return tensors, attributes


def _check_parameters(
    names: tuple[str, ...], alpha: Sequence[float] | None, beta: Sequence[float] | None
) -> None:
    """Raise ValueError unless the activations of these names are those of Keras."""
    named = [name for name in names if name in _PARAMETERS]
    if not named:  # whatever the attributes say, no activation reads it
        return
    for index, (attribute, given) in enumerate(
        (("activation_alpha", alpha), ("activation_beta", beta))
    ):
        values = list(given) if given else [_DEFAULT_PARAMETERS[name][index] for name in named]
        wanted = [_PARAMETERS[name][index] for name in named]
        if len(values) != len(wanted) or not np.allclose(values, wanted, rtol=1e-5, atol=1e-7):
            raise ValueError(
                f"Attribute `{attribute}` must be {wanted} for activations={list(names)} to be "
                f"those of Keras. Received: {attribute}={None if given is None else list(given)}"
            )


def _text(value: str | bytes) -> str:
    """Decode a string attribute, which the onnx package reads as bytes."""
    return value.decode() if isinstance(value, bytes) else value


class Run(NamedTuple):
    """Results of one direction; names of tensors."""

    outputs: str
    """Outputs of all steps in the order of the sequence, (B, T, U)."""
    last: str
    """Output of the step that was processed last, (B, U)."""
    state: str
    """Final state, (B, U)."""


def run_gru(
    graph: OnnxGraph, layers: Sequence[Any], sequences: Value, states: Sequence[Any]
) -> list[Run]:
    """Add one GRU layer, or the two of a bidirectional one, over the same sequences.

    Args:
        graph: The graph to extend.
        layers: `keras_gru` or `keras.layers` GRUs.
        sequences: The inputs, (B, T, D).
        states: Initial state of each layer, (B, U); all None for zeros or learned states.

    Raises:
        ValueError: ONNX has no such GRU; the message names the layer.
    """
    for layer in layers:
        for option in ("stateful", "return_gates"):
            if getattr(layer, option, False):
                raise ValueError(
                    f"Layer {layer.name!r} must have {option}=False to become a GRU node of ONNX. "
                    f"Received: {option}=True"
                )
    weights = [GRUWeights.of(layer, beside=("learned_state",)) for layer in layers]
    if len({(w.units, w.reset_after, w.bias is None) for w in weights}) > 1:
        pairs = zip(layers, states, strict=True)
        return [
            run for layer, state in pairs for run in run_gru(graph, [layer], sequences, [state])
        ]
    tensors, attributes = to_onnx(*weights, go_backwards=layers[0].go_backwards)
    initial = [
        _learned(graph, layer, sequences) if state is None else state
        for layer, state in zip(layers, states, strict=True)
    ]
    x, mask, valid, total, lengths = sequences.name, sequences.mask, "", "", ""
    has_gaps = mask is not None and mask not in graph.prefixes
    if mask is not None:
        valid = graph.add("Cast", mask, to=INT64)
        total = graph.add("ReduceSum", valid, [1], keepdims=1)  # (B, 1)
        # The node takes no row without a step.
        lengths = graph.add("Max", graph.add("Squeeze", total, [1]), [1])
        lengths = graph.add("Cast", lengths, to=INT32)
    if has_gaps:
        x = graph.add("Where", graph.add("Unsqueeze", mask, [2]), x, float32(0))  # 0·NaN is NaN
        x = graph.add("GatherND", x, _order(graph, str(mask), valid), batch_dims=1)
    rows = [graph.add("Unsqueeze", state, [0]) for state in initial if state is not None]
    outputs, finals = graph.add(
        "GRU",
        graph.add("Transpose", x, perm=[1, 0, 2]),
        *(graph.constant(float32(tensors[k]), k) if k in tensors else "" for k in ("W", "R", "B")),
        lengths,
        graph.add("Concat", *rows, axis=0) if rows else "",
        count=2,
        name=layers[0].name,
        **attributes,
    )
    runs = []
    for i, layer in enumerate(layers):
        steps = graph.add("Transpose", graph.add("Gather", outputs, i, axis=1), perm=[1, 0, 2])
        state = graph.add("Gather", finals, i, axis=0)
        if mask is not None:
            start = float32(0) if initial[i] is None else initial[i]
            state = graph.add("Where", graph.add("Greater", total, [0]), state, start)
        run = Run(steps, state, state)
        runs.append(_restored(graph, layer, run, str(mask), valid, total) if has_gaps else run)
    return runs


def _learned(graph: OnnxGraph, layer: Any, sequences: Value) -> str | None:
    """Repeat the learned initial state for all rows, (B, U); None without one."""
    learned = getattr(layer.cell, "learned_state", None)
    if learned is None:
        return None
    batch = graph.add("Shape", sequences.name, start=0, end=1)
    return str(graph.add("Expand", learned, graph.add("Concat", batch, [layer.units], axis=0)))


def _order(graph: OnnxGraph, mask: str, valid: str) -> str:
    """Order the steps of each row: those that the mask leaves, then the others, (B, T, 1)."""
    length = graph.add("Shape", mask, start=1, end=2)
    numbers = graph.add("Range", 0, graph.add("Squeeze", length), 1)
    rank = graph.add("Sub", graph.add("Mul", valid, length), numbers)
    _, order = graph.add("TopK", rank, length, count=2, axis=1)
    return str(graph.add("Unsqueeze", order, [2]))


def _restored(graph: OnnxGraph, layer: Any, run: Run, mask: str, valid: str, total: str) -> Run:
    """Put gathered outputs back to their steps, with Keras' outputs at the masked ones.

    `valid` is the mask as int64 (B, T), and `total` the number of steps that it leaves, (B, 1).
    """
    seen = graph.add("CumSum", valid, 1, exclusive=1 if layer.go_backwards else None)
    if layer.go_backwards:  # a masked step repeats the step after it
        started = graph.add("Less", seen, total)
        place = graph.add("Min", seen, graph.add("Sub", total, [1]))
    else:
        started = graph.add("Greater", seen, [0])
        place = graph.add("Sub", seen, [1])
    place = graph.add("Unsqueeze", graph.add("Max", place, [0]), [2])
    outputs = graph.add("GatherND", run.outputs, place, batch_dims=1)
    shown = mask if layer.zero_output_for_mask else started
    shown_last = graph.add("Gather", shown, 0 if layer.go_backwards else -1, axis=1)
    return Run(
        graph.add("Where", graph.add("Unsqueeze", shown, [2]), outputs, float32(0)),
        graph.add("Where", graph.add("Unsqueeze", shown_last, [1]), run.last, float32(0)),
        run.state,
    )


def add_gru(graph: OnnxGraph, layer: Any, values: Sequence[Value], states: Any) -> list[Value]:
    """Add one GRU layer over `values`, from `states` if there are any."""
    (run,) = run_gru(graph, [layer], values[0], [states[0].name if states else None])
    outputs = run.outputs
    if layer.go_backwards:
        outputs = graph.add("Slice", outputs, [-1], [-END - 1], [1], [-1])
    top = Value(outputs, 3, values[0].mask) if layer.return_sequences else Value(run.last, 2)
    return [top, *([Value(run.state, 2)] if layer.return_state else [])]


def add_bidirectional(
    graph: OnnxGraph, layer: Any, values: Sequence[Value], states: Any
) -> list[Value]:
    """Add a bidirectional layer of GRUs."""
    directions = [layer.forward_layer, layer.backward_layer]
    for direction in directions:
        if type(direction) not in (GRU, keras.layers.GRU):
            raise ValueError(
                f"Layer {layer.name!r} must hold GRUs to be written as ONNX. "
                f"Received: a {type(direction).__name__}"
            )
    names = [state.name for state in states] if states else [None, None]
    runs = run_gru(graph, directions, values[0], names)
    if layer.return_sequences:
        tops = [Value(run.outputs, 3, values[0].mask) for run in runs]
    else:
        tops = [Value(run.last, 2) for run in runs]
    names = [top.name for top in tops]
    if layer.merge_mode == "concat":
        tops = [replace(tops[0], name=graph.add("Concat", *names, axis=-1))]
    elif layer.merge_mode is not None:
        name = graph.add("Mul" if layer.merge_mode == "mul" else "Add", *names)
        if layer.merge_mode == "ave":
            name = graph.add("Div", name, float32(2))
        tops = [replace(tops[0], name=name)]
    return tops + [Value(run.state, 2) for run in runs if layer.return_state]


def add_encoder(graph: OnnxGraph, layer: Any, values: Sequence[Value], states: Any) -> list[Value]:
    """Add a stack of GRUs, as `GRUEncoder` runs it."""
    top, finals = values[0], []
    for index, inner in enumerate(layer.layers):
        given = [states[index]] if states else []
        if layer.bidirectional:
            halves = [graph.add("Split", state.name, count=2, axis=1) for state in given]
            given = [Value(half, 2) for pair in halves for half in pair]
            top, *final = add_bidirectional(graph, inner, [top], given)
            finals.append(Value(graph.add("Concat", *(f.name for f in final), axis=-1), 2))
        else:
            top, *final = add_gru(graph, inner, [top], given)
            finals += final
        top = replace(top, mask=values[0].mask)
    if not layer.return_sequences:
        top = replace(top, mask=None)
    return [top, *(finals if layer.return_state else [])]
