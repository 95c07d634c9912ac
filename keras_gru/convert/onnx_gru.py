"""GRU layers as nodes of ONNX's operator GRU, with Keras' meaning of masks.

ONNX knows lengths, not masks. So the steps that a mask leaves are gathered at the front, where a
length tells where they end, and the outputs are put back to where their steps came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_gru.convert.gru_weights import GRUWeights
from keras_gru.convert.onnx import to_onnx
from keras_gru.convert.onnx_graph import INT32, INT64, OnnxGraph, Value, float32

LAST = np.iinfo(np.int64).min  # the end of a slice that runs backwards through an axis


class Run(NamedTuple):
    """What one direction leaves; names of tensors.

    Attributes:
        outputs: Of all steps in the order of the sequence, (B, T, U).
        last: Output of the step that was processed last, (B, U).
        state: Final state, (B, U).
    """

    outputs: str
    last: str
    state: str


class _Steps(NamedTuple):
    """The steps that a mask leaves.

    Attributes:
        mask: bool (B, T).
        before: How many there are before each step, int64 (B, T).
        through: The same, with the step itself.
        total: How many there are, int64 (B, 1).
        order: Where they are, and then where the others are, int64 (B, T, 1).
    """

    mask: str
    before: str
    through: str
    total: str
    order: str


def run_gru(
    graph: OnnxGraph, layers: Sequence[Any], sequences: Value, states: Sequence[Any]
) -> list[Run]:
    """One GRU layer, or the two of a bidirectional one, over the same sequences.

    Args:
        graph: To add to.
        layers: `keras_gru` or `keras.layers` GRUs.
        sequences: (B, T, D).
        states: What each starts from, (B, U); all None for zeros or learned states.

    Raises:
        ValueError: ONNX has no such GRU; the message names the layer.
    """
    for layer in layers:
        _refuse(layer)
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
    x, steps, lengths, total = sequences.name, None, "", None
    if sequences.mask in graph.prefixes:
        total, lengths = _lengths(graph, sequences.mask)
    elif sequences.mask is not None:
        steps = _steps(graph, sequences.mask)
        valid = graph.add("Unsqueeze", steps.mask, graph.constant([2]))
        x = graph.add("Where", valid, x, graph.constant(float32(0)))  # 0 · NaN would be NaN
        x = graph.add("GatherND", x, steps.order, batch_dims=1)
        total, lengths = steps.total, _no_row_empty(graph, steps.total)
    outputs, finals = graph.add(
        "GRU",
        graph.add("Transpose", x, perm=[1, 0, 2]),
        *(graph.constant(float32(tensors[k]), k) if k in tensors else "" for k in ("W", "R", "B")),
        lengths,
        _initial(graph, initial),
        count=2,
        name=layers[0].name,
        **attributes,
    )
    return [
        _shown(
            graph,
            layer,
            graph.add("Transpose", _direction(graph, outputs, i, 1), perm=[1, 0, 2]),
            _direction(graph, finals, i, 0),
            initial[i],
            steps,
            total,
        )
        for i, layer in enumerate(layers)
    ]


def reverse(graph: OnnxGraph, sequences: str) -> str:
    """(B, T, …) from its end to its start."""
    ends = [graph.constant([value]) for value in (-1, LAST, 1, -1)]
    return str(graph.add("Slice", sequences, *ends))


def _refuse(layer: Any) -> None:
    for option, wanted in (("stateful", False), ("return_gates", False)):
        if getattr(layer, option, wanted) != wanted:
            raise ValueError(
                f"Layer {layer.name!r} must have {option}={wanted} to become a GRU node of ONNX. "
                f"Received: {option}={getattr(layer, option)!r}"
            )


def _learned(graph: OnnxGraph, layer: Any, sequences: Value) -> str | None:
    """The learned initial state of all rows, (B, U), or None."""
    learned = getattr(layer.cell, "learned_state", None)
    if learned is None:
        return None
    batch = graph.add("Shape", sequences.name, start=0, end=1)
    shape = graph.add("Concat", batch, graph.constant([layer.units]), axis=0)
    return str(graph.add("Expand", graph.weight(learned), shape))


def _initial(graph: OnnxGraph, states: Sequence[str | None]) -> str:
    """`initial_h` (directions, B, U), or nothing."""
    given = [state for state in states if state is not None]
    if not given:
        return ""
    rows = [graph.add("Unsqueeze", state, graph.constant([0])) for state in given]
    return str(graph.add("Concat", *rows, axis=0))


def _direction(graph: OnnxGraph, values: str, index: int, axis: int) -> str:
    return str(graph.add("Gather", values, graph.constant(np.int64(index)), axis=axis))


def _lengths(graph: OnnxGraph, mask: str) -> tuple[str, str]:
    """The number of steps that a mask leaves, (B, 1) and as the node takes it."""
    total = graph.add(
        "ReduceSum", graph.add("Cast", mask, to=INT64), graph.constant([1]), keepdims=1
    )
    return total, _no_row_empty(graph, total)


def _no_row_empty(graph: OnnxGraph, total: str) -> str:
    """`sequence_lens` (B,): the node takes no row without a step."""
    count = graph.add("Squeeze", total, graph.constant([1]))
    return str(graph.add("Cast", graph.add("Max", count, graph.constant([1])), to=INT32))


def _steps(graph: OnnxGraph, mask: str) -> _Steps:
    valid = graph.add("Cast", mask, to=INT64)
    axis = graph.constant(np.int64(1))
    steps = graph.add("Shape", mask, start=1, end=2)
    scalar = graph.add("Squeeze", steps)
    numbers = graph.add("Range", graph.constant(np.int64(0)), scalar, graph.constant(np.int64(1)))
    # Descending: those that the mask leaves, the first of them first.
    rank = graph.add("Sub", graph.add("Mul", valid, steps), numbers)
    _, order = graph.add("TopK", rank, steps, count=2, axis=1)
    return _Steps(
        mask=mask,
        before=graph.add("CumSum", valid, axis, exclusive=1),
        through=graph.add("CumSum", valid, axis),
        total=graph.add("ReduceSum", valid, graph.constant([1]), keepdims=1),
        order=graph.add("Unsqueeze", order, graph.constant([2])),
    )


def _shown(
    graph: OnnxGraph,
    layer: Any,
    outputs: str,
    state: str,
    initial: str | None,
    steps: _Steps | None,
    total: str | None,
) -> Run:
    """What Keras shows of a node's outputs (B, T, U) and final state."""
    if total is None:
        return Run(outputs, state, state)
    zero, one, nothing = graph.constant([0]), graph.constant([1]), graph.constant(float32(0))
    ran = graph.add("Greater", total, zero)
    state = graph.add("Where", ran, state, nothing if initial is None else initial)
    if steps is None:
        return Run(outputs, state, state)
    if layer.go_backwards:  # a masked step repeats the step after it
        started, place = graph.add("Less", steps.before, steps.total), steps.before
        place = graph.add("Min", place, graph.add("Sub", steps.total, one))
        end = graph.constant(np.int64(0))
    else:
        started, place = graph.add("Greater", steps.through, zero), steps.through
        place = graph.add("Sub", place, one)
        end = graph.constant(np.int64(-1))
    place = graph.add("Unsqueeze", graph.add("Max", place, zero), graph.constant([2]))
    shown = steps.mask if layer.zero_output_for_mask else started
    restored = graph.add("GatherND", outputs, place, batch_dims=1)
    columns = graph.add("Unsqueeze", shown, graph.constant([2]))
    shown_last = graph.add(
        "Unsqueeze", graph.add("Gather", shown, end, axis=1), graph.constant([1])
    )
    return Run(
        outputs=graph.add("Where", columns, restored, nothing),
        last=graph.add("Where", shown_last, state, nothing),
        state=state,
    )
