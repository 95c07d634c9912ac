"""The operations by which Keras computes masks, which models that were loaded hold as such."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_gru.convert.onnx_graph import BOOL, FLOAT, OnnxGraph, Value


def _not_equal(
    graph: OnnxGraph,
    operation: Any,  # noqa: ARG001
    values: Sequence[Value],
    arguments: Any,
) -> Value:
    (value,) = values
    tensor, number = arguments.args
    constant = graph.constant(np.asarray(number, tensor.dtype))
    return Value(graph.add("Not", graph.add("Equal", value.name, constant)), value.rank)


def _any(
    graph: OnnxGraph,
    operation: Any,
    values: Sequence[Value],
    arguments: Any,  # noqa: ARG001
) -> Value:
    """Over the last axis, as Masking has it."""
    (value,) = values
    if operation.axis not in (-1, [-1], (-1,)) or operation.keepdims:
        raise ValueError(
            f"Operation {operation.name!r} must have axis=-1 and keepdims=False to be written as "
            f"ONNX. Received: axis={operation.axis}, keepdims={operation.keepdims}"
        )
    shown = graph.add("Cast", value.name, to=FLOAT)
    shown = graph.add("ReduceMax", shown, axes=[-1], keepdims=0)
    return Value(graph.add("Cast", shown, to=BOOL), value.rank - 1)


OperationWriter = Callable[[OnnxGraph, Any, Sequence[Value], Any], Value]

OPERATIONS: Mapping[str, OperationWriter] = {"NotEqual": _not_equal, "Any": _any}
"""By the names of the classes, which Keras does not export."""
