"""Keras operations on tensors in ONNX, for functional models with some between layers."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_gru.convert.onnx_graph import END, OnnxGraph, Value
from keras_gru.convert.onnx_layers import OPERATIONS, OperationWriter


def _binary(operator: str) -> OperationWriter:
    def write(
        graph: OnnxGraph,
        operation: Any,  # noqa: ARG001
        values: Sequence[Value],
        arguments: Any,
    ) -> Value:
        dtype = next(a.dtype for a in arguments.args if isinstance(a, keras.KerasTensor))
        rest = iter(values)
        names = [
            next(rest).name
            if isinstance(argument, keras.KerasTensor)
            else graph.constant(np.asarray(argument, dtype))
            for argument in arguments.args
        ]
        rank = max([value.rank for value in values] + [np.ndim(a) for a in _others(arguments)])
        return Value(graph.add(operator, *names), rank)

    return write


def _others(arguments: Any) -> list[Any]:
    return [a for a in arguments.args if not isinstance(a, keras.KerasTensor)]


def _reshape(graph: OnnxGraph, operation: Any, values: Sequence[Value], _: Any) -> Value:
    sizes = [-1 if size is None else size for size in operation.newshape]
    if sizes.count(-1) > 1:
        raise ValueError(f"Operation {operation.name!r} must leave at most one size open")
    return Value(graph.add("Reshape", values[0].name, graph.constant(sizes)), len(sizes))


def _transpose(graph: OnnxGraph, operation: Any, values: Sequence[Value], _: Any) -> Value:
    axes = operation.axes or list(reversed(range(values[0].rank)))
    return Value(graph.add("Transpose", values[0].name, perm=list(axes)), values[0].rank)


def _take(graph: OnnxGraph, operation: Any, values: Sequence[Value], arguments: Any) -> Value:
    if len(values) > 1 or operation.axis is None:
        raise ValueError(f"Operation {operation.name!r} must take constant places along an axis")
    places = np.asarray(arguments.args[1], np.int64)
    name = graph.add("Gather", values[0].name, graph.constant(places), axis=operation.axis)
    return Value(name, values[0].rank - 1 + places.ndim)


def _expand(graph: OnnxGraph, operation: Any, values: Sequence[Value], _: Any) -> Value:
    axes = np.ravel(operation.axis).tolist()
    name = graph.add("Unsqueeze", values[0].name, graph.constant(axes))
    return Value(name, values[0].rank + len(axes))


def _concatenate(graph: OnnxGraph, operation: Any, values: Sequence[Value], _: Any) -> Value:
    names = [value.name for value in values]
    return Value(graph.add("Concat", *names, axis=operation.axis), values[0].rank)


def _zeros(graph: OnnxGraph, operation: Any, values: Sequence[Value], _: Any) -> Value:  # noqa: ARG001
    return Value(graph.add("Sub", values[0].name, values[0].name), values[0].rank)


def _item(graph: OnnxGraph, operation: Any, values: Sequence[Value], arguments: Any) -> Value:
    """Add `x[:, -3:]`: slices, and numbers that remove an axis."""
    (value,) = values
    key = arguments.args[1]
    parts = list(key) if isinstance(key, tuple | list) else [key]
    slices: list[tuple[int, int, int, int]] = []
    gone = []
    for axis, part in enumerate(parts):
        if isinstance(part, int):
            gone.append(axis)
            slices.append((part, part + 1 if part != -1 else END, axis, 1))
        elif isinstance(part, slice) and part.step in (None, 1):
            if part != slice(None):
                stop = END if part.stop is None else part.stop
                slices.append((part.start or 0, stop, axis, 1))
        else:
            raise ValueError(f"Operation {operation.name!r} must slice. Received: {key!r}")
    name = value.name
    if slices:
        ends = [graph.constant([each[i] for each in slices]) for i in range(4)]
        name = graph.add("Slice", name, *ends)
    if gone:
        name = graph.add("Squeeze", name, graph.constant(gone))
    return Value(name, value.rank - len(gone))


ALL_OPERATIONS: Mapping[str, OperationWriter] = {
    **OPERATIONS,
    "Concatenate": _concatenate,
    "Divide": _binary("Div"),
    "ExpandDims": _expand,
    "GetItem": _item,
    "Maximum": _binary("Max"),
    "Minimum": _binary("Min"),
    "Multiply": _binary("Mul"),
    "Reshape": _reshape,
    "Subtract": _binary("Sub"),
    "Take": _take,
    "Transpose": _transpose,
    "TrueDivide": _binary("Div"),
    "ZerosLike": _zeros,
}
"""Writers of operations by the names of their classes, which Keras does not export."""
