"""GRU layers, bidirectional ones and encoders in an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keras_gru.convert.onnx_graph import OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import Run, reverse, run_gru
from keras_gru.layer import GRU

MERGES = {"sum": "Add", "ave": "Add", "mul": "Mul"}


def add_gru(graph: OnnxGraph, layer: Any, values: Sequence[Value], states: Any) -> list[Value]:
    """One GRU layer; `values` are the sequences, `states` those it starts from, or none."""
    state = states[0].name if states else None
    (run,) = run_gru(graph, [layer], values[0], [state])
    outputs = run.outputs
    if layer.return_sequences and layer.go_backwards:
        outputs = reverse(graph, outputs)
    return _returned(layer, outputs, run.last, [run], values[0].mask)


def add_bidirectional(
    graph: OnnxGraph, layer: Any, values: Sequence[Value], states: Any
) -> list[Value]:
    """A bidirectional layer of GRUs."""
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
        shown = [run.outputs for run in runs]
    else:
        shown = [run.last for run in runs]
    rank = 3 if layer.return_sequences else 2
    mask = values[0].mask if layer.return_sequences else None
    if layer.merge_mode is None:
        outputs = [Value(name, rank, mask) for name in shown]
    elif layer.merge_mode == "concat":
        outputs = [Value(graph.add("Concat", *shown, axis=-1), rank, mask)]
    else:
        name = graph.add(MERGES[layer.merge_mode], *shown)
        if layer.merge_mode == "ave":
            name = graph.add("Div", name, graph.constant(float32(2)))
        outputs = [Value(name, rank, mask)]
    return outputs + [Value(run.state, 2) for run in runs if layer.return_state]


def add_encoder(graph: OnnxGraph, layer: Any, values: Sequence[Value], states: Any) -> list[Value]:
    """A stack of GRUs, as `GRUEncoder` runs it."""
    hidden, finals = values[0], []
    for index, inner in enumerate(layer.layers):
        given = [states[index]] if states else []
        if layer.bidirectional:
            given = [Value(half, 2) for state in given for half in _halves(graph, state)]
            top, *final = add_bidirectional(graph, inner, [hidden], given)
            finals.append(Value(graph.add("Concat", *(f.name for f in final), axis=-1), 2))
        else:
            top, *final = add_gru(graph, inner, [hidden], given)
            finals += final
        hidden = Value(top.name, top.rank, values[0].mask)
    output = Value(hidden.name, hidden.rank, hidden.mask if layer.return_sequences else None)
    return [output, *(finals if layer.return_state else [])]


def _halves(graph: OnnxGraph, state: Value) -> Any:
    return graph.add("Split", state.name, count=2, axis=1)


def _returned(
    layer: Any, outputs: str, last: str, runs: Sequence[Run], mask: str | None
) -> list[Value]:
    shown = Value(outputs, 3, mask) if layer.return_sequences else Value(last, 2)
    return [shown, *(Value(run.state, 2) for run in runs if layer.return_state)]
