"""Keras' layers, activations and mask operations in ONNX: a writer for each kind, in two tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np

from keras_gru.convert.onnx_graph import BOOL, FLOAT, INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_gru import add_bidirectional, add_encoder, add_gru
from keras_gru.encoder import GRUEncoder
from keras_gru.layer import GRU

Writer = Callable[[OnnxGraph, Any, Sequence[Value], Any], list[Value]]
"""A function of the graph, the layer, its input values and the states that it was given."""
OperationWriter = Callable[[OnnxGraph, Any, Sequence[Value], Any], Value]
"""A function of the graph, the operation, its input values and its call's arguments."""

K = keras.layers
_A = keras.activations

_ACTIVATIONS: dict[Any, tuple[str, dict[str, Any]]] = {
    _A.relu: ("Relu", {}),
    _A.tanh: ("Tanh", {}),
    _A.sigmoid: ("Sigmoid", {}),
    _A.hard_sigmoid: ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    _A.softmax: ("Softmax", {"axis": -1}),
    _A.log_softmax: ("LogSoftmax", {"axis": -1}),
    _A.elu: ("Elu", {}),
    _A.selu: ("Selu", {}),
    _A.softplus: ("Softplus", {}),
    _A.softsign: ("Softsign", {}),
    _A.exponential: ("Exp", {}),
    _A.leaky_relu: ("LeakyRelu", {"alpha": 0.2}),
}


def _require(layer: Any, **options: Any) -> None:
    """Raise ValueError unless a layer has these options."""
    for option, wanted in options.items():
        if getattr(layer, option, wanted) != wanted:
            raise ValueError(
                f"Layer {layer.name!r} must have {option}={wanted!r} to be written as ONNX. "
                f"Received: {option}={getattr(layer, option)!r}"
            )


def _activated(graph: OnnxGraph, layer: Any, name: str) -> str:
    """Apply a layer's activation to a tensor."""
    function = layer.activation
    if function is None or function is _A.linear:
        return name
    if function is _A.silu:
        return str(graph.add("Mul", name, graph.add("Sigmoid", name)))
    if function not in _ACTIVATIONS:
        names = ["linear", "silu", *(known.__name__ for known in _ACTIVATIONS)]
        raise ValueError(
            f"The activation of layer {layer.name!r} must be one of {names} to be written as ONNX. "
            f"Received: {getattr(function, '__name__', function)!r}"
        )
    operator, attributes = _ACTIVATIONS[function]
    return str(graph.add(operator, name, **attributes))


def _common_mask(layer: Any, values: Sequence[Value]) -> str | None:
    masks = {value.mask for value in values}
    if None in masks:  # Keras then shows all steps
        return None
    if len(masks) > 1:
        raise ValueError(
            f"All inputs of layer {layer.name!r} must have the same mask to be written as ONNX."
            f" Received: {len(masks)} different ones"
        )
    return masks.pop()


def _same(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    return [values[0]]


def _activation(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    return [replace(values[0], name=_activated(graph, layer, values[0].name))]


def _elementwise(
    graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any, operator: str, **attributes: str
) -> list[Value]:
    """Write an operator whose attributes are attributes of the layer."""
    given: dict[str, Any] = {name: float(getattr(layer, own)) for name, own in attributes.items()}
    return [replace(values[0], name=graph.add(operator, values[0].name, **given))]


def _relu(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, max_value=None, negative_slope=0, threshold=0)
    return [replace(values[0], name=graph.add("Relu", values[0].name))]


def _softmax(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    if values[0].mask is not None or not isinstance(layer.axis, int):
        raise ValueError(f"Layer {layer.name!r} must have one axis and no mask to be written")
    return [replace(values[0], name=graph.add("Softmax", values[0].name, axis=layer.axis))]


def _dense(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, quantization_mode=None)
    name = graph.add("MatMul", values[0].name, layer.kernel, name=layer.name)
    if layer.use_bias:
        name = graph.add("Add", name, layer.bias)
    return [replace(values[0], name=_activated(graph, layer, name))]


def _embedding(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, quantization_mode=None)
    rows = graph.add("Cast", values[0].name, to=INT64)
    name = graph.add("Gather", layer.embeddings, rows, name=layer.name)
    mask = graph.add("Not", graph.add("Equal", rows, 0)) if layer.mask_zero else None
    return [Value(name, values[0].rank + 1, mask)]


def _masking(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    masked = graph.add("Equal", values[0].name, float32(layer.mask_value))
    mask = _any_of_last(graph, graph.add("Not", masked), keepdims=1)
    name = graph.add("Where", mask, values[0].name, float32(0))
    return [Value(name, values[0].rank, graph.add("Squeeze", mask, [-1]))]


def _any_of_last(graph: OnnxGraph, flags: str, keepdims: int) -> str:
    """Combine bool flags over the last axis: true where any is true."""
    greatest = graph.add(
        "ReduceMax", graph.add("Cast", flags, to=FLOAT), axes=[-1], keepdims=keepdims
    )
    return str(graph.add("Cast", greatest, to=BOOL))


def _flatten(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, data_format="channels_last")
    return [Value(graph.add("Reshape", values[0].name, [0, -1]), 2)]


def _reshape(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    sizes = [0, *layer.target_shape]
    return [Value(graph.add("Reshape", values[0].name, sizes), len(sizes))]


def _permute(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Transpose", values[0].name, perm=[0, *layer.dims])
    return [Value(name, values[0].rank)]


def _repeat(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Unsqueeze", values[0].name, [1])
    return [Value(graph.add("Tile", name, [1, layer.n, 1]), 3)]


def _merge(
    graph: OnnxGraph,
    layer: Any,
    values: Sequence[Value],
    _: Any,
    operator: str,
    divide: bool = False,
) -> list[Value]:
    """Write an operator between all inputs; `divide` turns a sum into a mean."""
    name = values[0].name
    for value in values[1:]:
        name = graph.add(operator, name, value.name)
    if divide:
        name = graph.add("Div", name, float32(len(values)))
    return [Value(name, max(v.rank for v in values), _common_mask(layer, values))]


def _concatenate(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Concat", *(value.name for value in values), axis=layer.axis)
    rank = values[0].rank
    if layer.axis % rank == rank - 1:
        return [Value(name, rank, _common_mask(layer, values))]
    if any(value.mask is not None for value in values):
        raise ValueError(f"Layer {layer.name!r} must get no mask to join values along time in ONNX")
    return [Value(name, rank)]


def _require_last_axis(layer: Any, rank: int) -> None:
    axes = [layer.axis] if isinstance(layer.axis, int) else list(layer.axis)
    if [axis % rank for axis in axes] != [rank - 1]:
        raise ValueError(
            f"Layer {layer.name!r} must have axis=-1 to be written as ONNX. "
            f"Received: axis={layer.axis}"
        )


def _layer_norm(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require_last_axis(layer, values[0].rank)
    if not layer.weights:
        raise ValueError(f"Layer {layer.name!r} must have a scale or an offset to be written")
    gamma = layer.gamma if layer.scale else np.ones(layer.beta.shape[-1], "float32")
    beta = (layer.beta,) if layer.center else ()
    epsilon = float(layer.epsilon)
    name = graph.add("LayerNormalization", values[0].name, gamma, *beta, axis=-1, epsilon=epsilon)
    return [replace(values[0], name=name)]


def _batch_norm(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require_last_axis(layer, values[0].rank)
    scale = 1 / np.sqrt(float32(layer.moving_variance) + layer.epsilon)
    scale *= float32(layer.gamma) if layer.scale else 1
    offset = -float32(layer.moving_mean) * scale
    offset += float32(layer.beta) if layer.center else 0
    return _scaled(graph, values[0], scale, offset)


def _rescaling(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    return _scaled(graph, values[0], layer.scale, layer.offset)


def _scaled(graph: OnnxGraph, value: Value, scale: Any, offset: Any) -> list[Value]:
    name = graph.add("Mul", value.name, float32(scale))
    return [replace(value, name=graph.add("Add", name, float32(offset)))]


def _pool(
    graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any, operator: str
) -> list[Value]:
    """Write a pooling over all steps."""
    _require(layer, data_format="channels_last")
    (value,) = values
    keep = int(layer.keepdims)
    rank = value.rank - 1 + keep
    if operator == "ReduceMax" or value.mask is None:
        return [Value(graph.add(operator, value.name, axes=[1], keepdims=keep), rank)]
    shown = graph.add("Unsqueeze", value.mask, [2])
    kept = graph.add("Where", shown, value.name, float32(0))
    total = graph.add("ReduceSum", kept, [1], keepdims=keep)
    count = graph.add("ReduceSum", graph.add("Cast", shown, to=FLOAT), [1], keepdims=keep)
    return [Value(graph.add("Div", total, count), rank)]


def _conv(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, data_format="channels_last", quantization_mode=None)
    padding: dict[str, Any] = {"auto_pad": "VALID"}
    if layer.padding == "same":
        padding = {"auto_pad": "SAME_UPPER"}
    elif layer.padding == "causal":
        reach = layer.dilation_rate[0] * (layer.kernel_size[0] - 1)
        padding = {"pads": [reach, 0]}
    x = graph.add(
        "Conv",
        graph.add("Transpose", values[0].name, perm=[0, 2, 1]),
        graph.constant(float32(layer.kernel).transpose(2, 1, 0), layer.kernel.path),
        *((layer.bias,) if layer.use_bias else ()),
        strides=list(layer.strides),
        dilations=list(layer.dilation_rate),
        group=layer.groups,
        name=layer.name,
        **padding,
    )
    return [Value(_activated(graph, layer, graph.add("Transpose", x, perm=[0, 2, 1])), 3)]


def _max_pool(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, data_format="channels_last")
    x = graph.add(
        "MaxPool",
        graph.add("Transpose", values[0].name, perm=[0, 2, 1]),
        kernel_shape=list(np.ravel(layer.pool_size)),
        strides=list(np.ravel(layer.strides)),
        auto_pad="SAME_UPPER" if layer.padding == "same" else "VALID",
    )
    return [Value(graph.add("Transpose", x, perm=[0, 2, 1]), 3)]


WRITERS: dict[type, Writer] = {
    GRU: add_gru,
    K.GRU: add_gru,
    GRUEncoder: add_encoder,
    K.Bidirectional: add_bidirectional,
    K.Dense: _dense,
    K.Embedding: _embedding,
    K.Masking: _masking,
    K.Conv1D: _conv,
    K.MaxPooling1D: _max_pool,
    K.GlobalMaxPooling1D: partial(_pool, operator="ReduceMax"),
    K.GlobalAveragePooling1D: partial(_pool, operator="ReduceMean"),
    K.LayerNormalization: _layer_norm,
    K.BatchNormalization: _batch_norm,
    K.Rescaling: _rescaling,
    K.Activation: _activation,
    K.ReLU: _relu,
    K.LeakyReLU: partial(_elementwise, operator="LeakyRelu", alpha="negative_slope"),
    K.ELU: partial(_elementwise, operator="Elu", alpha="alpha"),
    K.Softmax: _softmax,
    K.Flatten: _flatten,
    K.Reshape: _reshape,
    K.Permute: _permute,
    K.RepeatVector: _repeat,
    K.Concatenate: _concatenate,
    K.Add: partial(_merge, operator="Add"),
    K.Subtract: partial(_merge, operator="Sub"),
    K.Multiply: partial(_merge, operator="Mul"),
    K.Maximum: partial(_merge, operator="Max"),
    K.Minimum: partial(_merge, operator="Min"),
    K.Average: partial(_merge, operator="Add", divide=True),
    **dict.fromkeys((K.Dropout, K.SpatialDropout1D, K.GaussianDropout, K.GaussianNoise), _same),
    **dict.fromkeys((K.ActivityRegularization, K.Identity), _same),
}
"""Every kind of layer that can be written, beside models inside of models and TimeDistributed."""


def _not_equal(
    graph: OnnxGraph,
    operation: Any,  # noqa: ARG001
    values: Sequence[Value],
    arguments: Any,
) -> Value:
    (value,) = values
    tensor, number = arguments.args
    equal = graph.add("Equal", value.name, np.asarray(number, tensor.dtype))
    return Value(graph.add("Not", equal), value.rank)


def _any(graph: OnnxGraph, operation: Any, values: Sequence[Value], _: Any) -> Value:
    (value,) = values
    if operation.axis not in (-1, [-1], (-1,)) or operation.keepdims:
        raise ValueError(
            f"Operation {operation.name!r} must have axis=-1 and keepdims=False to be written as "
            f"ONNX. Received: axis={operation.axis}, keepdims={operation.keepdims}"
        )
    return Value(_any_of_last(graph, value.name, keepdims=0), value.rank - 1)


OPERATIONS: Mapping[str, OperationWriter] = {"NotEqual": _not_equal, "Any": _any}
"""The operations of masks, which loaded models hold as such, by the names of their classes.

Keras does not export the classes themselves.
"""
