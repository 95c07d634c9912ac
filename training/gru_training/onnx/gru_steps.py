"""Single steps of a GRU, and the gates of steps whose states are known, in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_gru.convert import GRUWeights
from keras_gru.convert.onnx_graph import OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import run_gru


def standard_weights(layer: Any) -> GRUWeights:
    """Return the weights of a GRU or its cell.

    Raises:
        ValueError: The layer lacks Keras' defaults: reset after the product, σ and tanh.
    """
    weights = GRUWeights.of(layer)
    described = (
        weights.reset_after,
        weights.update_gate,
        weights.activation,
        weights.recurrent_activation,
    )
    if described != (True, "keep", "tanh", "sigmoid"):
        raise ValueError(
            f"Layer {layer.name!r} must have Keras' defaults to be opened in ONNX. "
            f"Received: {described}"
        )
    return weights


def add_step(graph: OnnxGraph, weights: GRUWeights, inputs: str, h: str) -> str:
    """One step, of states `h` (..., U) on inputs (..., 3U) that W and its bias went through."""
    U = weights.units
    product = graph.add("MatMul", h, graph.constant(float32(weights.recurrent_kernel), "U"))
    product = graph.add("Add", product, graph.constant(float32(weights.recurrent_bias)))
    sizes = graph.constant([2 * U, U])
    from_x, x_g = graph.add("Split", inputs, sizes, count=2, axis=-1)
    from_h, h_g = graph.add("Split", product, sizes, count=2, axis=-1)
    gates = graph.add("Sigmoid", graph.add("Add", from_x, from_h))
    z, r = graph.add("Split", gates, graph.constant([U, U]), count=2, axis=-1)
    g = graph.add("Tanh", graph.add("Add", x_g, graph.add("Mul", r, h_g)))
    # z h + (1 - z) g
    return str(graph.add("Add", g, graph.add("Mul", z, graph.add("Sub", h, g))))


def add_projection(graph: OnnxGraph, weights: GRUWeights, x: str) -> str:
    """x·W + b, what enters `add_step`."""
    product = graph.add("MatMul", x, graph.constant(float32(weights.kernel), "W"))
    return str(graph.add("Add", product, graph.constant(float32(weights.input_bias))))


def add_opened(
    graph: OnnxGraph, layer: Any, x: Value, kept: str | None = None
) -> tuple[str, str, str]:
    """Add update gate, reset gate and state (B, T, U) of a layer at each step of (B, T, D).

    Args:
        graph: Graph to add to.
        layer: GRU in either direction.
        x: Input of the layer.
        kept: (B, T, 1), 1 where a step counts and 0 elsewhere; what is shown there is zero.
    """
    weights = standard_weights(layer)
    (run,) = run_gru(graph, [layer], x, [None])
    states = run.outputs if kept is None else graph.add("Mul", run.outputs, kept)
    zero, one = graph.constant([0]), graph.constant([1])
    if layer.go_backwards:  # a step starts from the state of the step behind it
        around = graph.add("Pad", states, graph.constant([0, 0, 0, 0, 1, 0]))
        end = graph.constant([np.iinfo(np.int64).max])
        previous = graph.add("Slice", around, one, end, one)
    else:
        around = graph.add("Pad", states, graph.constant([0, 1, 0, 0, 0, 0]))
        length = graph.add("Shape", states, start=1, end=2)
        previous = graph.add("Slice", around, zero, length, one)
    U = weights.units
    both = slice(2 * U)
    from_x = graph.add("MatMul", x.name, graph.constant(float32(weights.kernel[:, both])))
    kernel = graph.constant(float32(weights.recurrent_kernel[:, both]))
    total = graph.add("Add", from_x, graph.add("MatMul", previous, kernel))
    bias = weights.input_bias[both] + weights.recurrent_bias[both]
    gates = graph.add("Sigmoid", graph.add("Add", total, graph.constant(float32(bias))))
    if kept is not None:
        gates = graph.add("Mul", gates, kept)
    z, r = graph.add("Split", gates, graph.constant([U, U]), count=2, axis=-1)
    return z, r, states


def stacked(graph: OnnxGraph, values: Sequence[str], axis: int) -> str:
    """The values along a new axis."""
    place = graph.constant([axis])
    rows = [graph.add("Unsqueeze", value, place) for value in values]
    return str(rows[0] if len(rows) == 1 else graph.add("Concat", *rows, axis=axis))
