"""Single steps of a GRU, and the gates and gradients of steps whose states are known, in ONNX."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_gru.convert import GRUWeights
from keras_gru.convert.onnx_graph import END, OnnxGraph, Value, float32
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
    """Add one step of states `h` (..., U) with projected inputs (..., 3U)."""
    z, _, g, _ = _add_gates(graph, weights, inputs, h)
    # z h + (1 - z) g
    return str(graph.add("Add", g, graph.add("Mul", z, graph.add("Sub", h, g))))


def _add_gates(
    graph: OnnxGraph, weights: GRUWeights, inputs: str, h: str
) -> tuple[str, str, str, str]:
    """Add what steps from the states `h` (..., U) with projected inputs (..., 3U) compute.

    Returns:
        Update gate, reset gate, candidate, and h U_g + c_g, which the reset gate multiplies in the
        candidate; each (..., U).
    """
    U = weights.units
    product = graph.add("MatMul", h, graph.constant(float32(weights.recurrent_kernel), "U"))
    product = graph.add("Add", product, graph.constant(float32(weights.recurrent_bias)))
    sizes = graph.constant([2 * U, U])
    from_x, x_g = graph.add("Split", inputs, sizes, count=2, axis=-1)
    from_h, h_g = graph.add("Split", product, sizes, count=2, axis=-1)
    gates = graph.add("Sigmoid", graph.add("Add", from_x, from_h))
    z, r = graph.add("Split", gates, graph.constant([U, U]), count=2, axis=-1)
    g = graph.add("Tanh", graph.add("Add", x_g, graph.add("Mul", r, h_g)))
    return z, r, g, h_g


def add_projection(graph: OnnxGraph, weights: GRUWeights, x: str) -> str:
    """Add x·W + b, the input of `add_step`."""
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
    previous = _previous(graph, layer, states)
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


def _previous(graph: OnnxGraph, layer: Any, states: str) -> str:
    """Move states (B, T, U) to the steps that start from them; the first one starts from zeros."""
    zero, one = graph.constant([0]), graph.constant([1])
    if layer.go_backwards:  # a step starts from the state of the step behind it
        around = graph.add("Pad", states, graph.constant([0, 0, 0, 0, 1, 0]))
        return str(graph.add("Slice", around, one, graph.constant([END]), one))
    around = graph.add("Pad", states, graph.constant([0, 1, 0, 0, 0, 0]))
    length = graph.add("Shape", states, start=1, end=2)
    return str(graph.add("Slice", around, zero, length, one))


def add_input_gradient(graph: OnnxGraph, layer: Any, x: str, states: str, d_states: str) -> str:
    """Add the gradient (B, T, D) of the input of a layer, given that of its states.

    With h' = z h + (1 - z) g, and a_r, a_z, a_g what enters the activations, for each step in the
    order opposite to the layer's::

        da_z = dh' (h - g) z (1 - z)
        da_g = dh' (1 - z) (1 - g²)
        da_r = da_g u r (1 - r)                    u = h U_g + c_g, what r multiplies in a_g
        dh = dh' z + [da_z, da_r, r da_g] Uᵀ       to which the step before adds its own
        dx = [da_z, da_r, da_g] Wᵀ

    Args:
        graph: Graph to add to.
        layer: GRU in either direction, from zeros.
        x: Input of the layer, (B, T, D).
        states: State after each step, (B, T, U).
        d_states: Gradient of these states, (B, T, U), zero where a step is masked.
    """
    weights = standard_weights(layer)
    U, one = weights.units, graph.constant(float32(1))
    previous = _previous(graph, layer, states)
    z, r, g, u = _add_gates(graph, weights, add_projection(graph, weights, x), previous)
    open_z, open_r = (graph.add("Sub", one, gate) for gate in (z, r))
    to_z = graph.add("Mul", graph.add("Sub", previous, g), graph.add("Mul", z, open_z))
    to_g = graph.add("Mul", open_z, graph.add("Sub", one, graph.add("Mul", g, g)))
    to_r = graph.add("Mul", u, graph.add("Mul", r, open_r))

    body = graph.inner()
    carried = body.input("dh", "float32", (None, U))
    steps = [
        body.input(name, "float32", (None, U)) for name in ("ds", "z", "r", "to_z", "to_g", "to_r")
    ]
    d_state, z_t, r_t, to_z_t, to_g_t, to_r_t = steps
    d_after = body.add("Add", carried, d_state)
    da_z, da_g = body.add("Mul", d_after, to_z_t), body.add("Mul", d_after, to_g_t)
    da_r = body.add("Mul", da_g, to_r_t)
    through = body.add("Concat", da_z, da_r, body.add("Mul", r_t, da_g), axis=-1)
    transposed = body.constant(float32(weights.recurrent_kernel.T), "Ut")
    d_before = body.add("MatMul", through, transposed)
    d_before = body.add("Add", body.add("Mul", d_after, z_t), d_before)
    body.output("dh_before", d_before, "float32", (None, U))
    body.output("da", body.add("Concat", da_z, da_r, da_g, axis=-1), "float32", (None, 3 * U))
    first = graph.add(
        "Mul",
        graph.add("Gather", states, graph.constant(np.int64(0)), axis=1),
        graph.constant(float32(0)),
    )
    direction = 0 if layer.go_backwards else 1
    _, gradients = graph.add(
        "Scan", first, d_states, z, r, to_z, to_g, to_r, count=2, name=f"{layer.name}_backward",
        body=body.graph("backward_step"), num_scan_inputs=6, scan_input_axes=[1] * 6,
        scan_input_directions=[direction] * 6, scan_output_axes=[1],
        scan_output_directions=[direction],
    )  # fmt: skip
    return str(graph.add("MatMul", gradients, graph.constant(float32(weights.kernel.T), "Wt")))


def stacked(graph: OnnxGraph, values: Sequence[str], axis: int) -> str:
    """Stack the values along a new axis."""
    place = graph.constant([axis])
    rows = [graph.add("Unsqueeze", value, place) for value in values]
    return str(rows[0] if len(rows) == 1 else graph.add("Concat", *rows, axis=axis))
