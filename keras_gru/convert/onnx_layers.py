"""How each Keras layer is written in ONNX: a function per kind of layer, and a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_gru.convert.onnx_activations import activated
from keras_gru.convert.onnx_graph import BOOL, FLOAT, INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_recurrent import add_bidirectional, add_encoder, add_gru
from keras_gru.encoder import GRUEncoder
from keras_gru.layer import GRU

Writer = Callable[[OnnxGraph, Any, Sequence[Value], Any], list[Value]]

K = keras.layers


def _same(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:  # noqa: ARG001
    return [values[0]]


def _changed(value: Value, name: str) -> list[Value]:
    """The value under its new name, with its rank and mask."""
    return [Value(name, value.rank, value.mask)]


def _activation(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    return _changed(values[0], activated(graph, layer, layer.activation, values[0].name))


def _relu(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, max_value=None, negative_slope=0, threshold=0)
    return _changed(values[0], graph.add("Relu", values[0].name))


def _leaky_relu(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    slope = float(layer.negative_slope)
    return _changed(values[0], graph.add("LeakyRelu", values[0].name, alpha=slope))


def _elu(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    return _changed(values[0], graph.add("Elu", values[0].name, alpha=float(layer.alpha)))


def _softmax(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    if values[0].mask is not None or not isinstance(layer.axis, int):
        raise ValueError(f"Layer {layer.name!r} must have one axis and no mask to be written")
    return _changed(values[0], graph.add("Softmax", values[0].name, axis=layer.axis))


def _dense(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, quantization_mode=None)
    name = graph.add("MatMul", values[0].name, graph.weight(layer.kernel), name=layer.name)
    if layer.use_bias:
        name = graph.add("Add", name, graph.weight(layer.bias))
    return _changed(values[0], activated(graph, layer, layer.activation, name))


def _embedding(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, quantization_mode=None)
    rows = graph.add("Cast", values[0].name, to=INT64)
    name = graph.add("Gather", graph.weight(layer.embeddings), rows, name=layer.name)
    mask = None
    if layer.mask_zero:
        mask = graph.add("Not", graph.add("Equal", rows, graph.constant(np.int64(0))))
    return [Value(name, values[0].rank + 1, mask)]


def _masking(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = values[0].name
    masked = graph.add("Equal", name, graph.constant(float32(layer.mask_value)))
    other = graph.add("Cast", graph.add("Not", masked), to=FLOAT)
    shown = graph.add("ReduceMax", other, axes=[-1], keepdims=1)
    mask = graph.add("Cast", shown, to=BOOL)
    name = graph.add("Where", mask, name, graph.constant(float32(0)))
    return [Value(name, values[0].rank, graph.add("Squeeze", mask, graph.constant([-1])))]


def _flatten(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, data_format="channels_last")
    shape = graph.constant([0, -1])
    return [Value(graph.add("Reshape", values[0].name, shape), 2)]


def _reshape(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    sizes = [0, *layer.target_shape]
    return [Value(graph.add("Reshape", values[0].name, graph.constant(sizes)), len(sizes))]


def _permute(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Transpose", values[0].name, perm=[0, *layer.dims])
    return [Value(name, values[0].rank)]


def _repeat(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Unsqueeze", values[0].name, graph.constant([1]))
    return [Value(graph.add("Tile", name, graph.constant([1, layer.n, 1])), 3)]


def _merge(operator: str, divide: bool = False) -> Writer:
    def write(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
        name = values[0].name
        for value in values[1:]:
            name = graph.add(operator, name, value.name)
        if divide:
            name = graph.add("Div", name, graph.constant(float32(len(values))))
        return [Value(name, max(v.rank for v in values), _common_mask(layer, values))]

    return write


def _concatenate(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Concat", *(value.name for value in values), axis=layer.axis)
    rank = values[0].rank
    if layer.axis % rank == rank - 1:
        return [Value(name, rank, _common_mask(layer, values))]
    if any(value.mask is not None for value in values):
        raise ValueError(f"Layer {layer.name!r} must get no mask to join values along time in ONNX")
    return [Value(name, rank)]


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


def _layer_norm(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    rank = values[0].rank
    axes = [layer.axis] if isinstance(layer.axis, int) else list(layer.axis)
    if [axis % rank for axis in axes] != [rank - 1]:
        raise ValueError(
            f"Layer {layer.name!r} must have axis=-1 to be written as ONNX. "
            f"Received: axis={layer.axis}"
        )
    size = (layer.gamma if layer.scale else layer.beta).shape[-1] if layer.weights else None
    if size is None:
        raise ValueError(f"Layer {layer.name!r} must have a scale or an offset to be written")
    gamma = graph.weight(layer.gamma) if layer.scale else graph.constant(np.ones(size, "float32"))
    beta = (graph.weight(layer.beta),) if layer.center else ()
    name = graph.add(
        "LayerNormalization", values[0].name, gamma, *beta, axis=-1, epsilon=float(layer.epsilon)
    )
    return _changed(values[0], name)


def _batch_norm(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    if layer.axis % values[0].rank != values[0].rank - 1:
        raise ValueError(
            f"Layer {layer.name!r} must have axis=-1 to be written as ONNX. "
            f"Received: axis={layer.axis}"
        )
    scale = 1 / np.sqrt(float32(layer.moving_variance) + layer.epsilon)
    scale *= float32(layer.gamma) if layer.scale else 1
    offset = -float32(layer.moving_mean) * scale
    offset += float32(layer.beta) if layer.center else 0
    name = graph.add("Mul", values[0].name, graph.constant(float32(scale)))
    return _changed(values[0], graph.add("Add", name, graph.constant(float32(offset))))


def _scale(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    name = graph.add("Mul", values[0].name, graph.constant(float32(layer.scale)))
    return _changed(values[0], graph.add("Add", name, graph.constant(float32(layer.offset))))


def _pool(operator: str) -> Writer:
    def write(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
        _require(layer, data_format="channels_last")
        (value,) = values
        keep = int(layer.keepdims)
        rank = value.rank - 1 + keep
        if operator == "ReduceMax" or value.mask is None:
            return [Value(graph.add(operator, value.name, axes=[1], keepdims=keep), rank)]
        shown = graph.add("Unsqueeze", value.mask, graph.constant([2]))
        kept = graph.add("Where", shown, value.name, graph.constant(float32(0)))
        axis = graph.constant([1])
        total = graph.add("ReduceSum", kept, axis, keepdims=keep)
        count = graph.add("ReduceSum", graph.add("Cast", shown, to=FLOAT), axis, keepdims=keep)
        return [Value(graph.add("Div", total, count), rank)]

    return write


def _conv(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, data_format="channels_last", quantization_mode=None)
    padding: dict[str, Any] = {"auto_pad": "VALID"}
    if layer.padding == "same":
        padding = {"auto_pad": "SAME_UPPER"}
    elif layer.padding == "causal":
        reach = layer.dilation_rate[0] * (layer.kernel_size[0] - 1)
        padding = {"pads": [reach, 0]}
    x = graph.add("Transpose", values[0].name, perm=[0, 2, 1])
    kernel = graph.constant(float32(layer.kernel).transpose(2, 1, 0), layer.kernel.path)
    bias = (graph.weight(layer.bias),) if layer.use_bias else ()
    x = graph.add(
        "Conv",
        x,
        kernel,
        *bias,
        strides=list(layer.strides),
        dilations=list(layer.dilation_rate),
        group=layer.groups,
        name=layer.name,
        **padding,
    )
    name = graph.add("Transpose", x, perm=[0, 2, 1])
    return [Value(activated(graph, layer, layer.activation, name), 3)]


def _max_pool(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    _require(layer, data_format="channels_last")
    x = graph.add("Transpose", values[0].name, perm=[0, 2, 1])
    padding = "SAME_UPPER" if layer.padding == "same" else "VALID"
    x = graph.add(
        "MaxPool",
        x,
        kernel_shape=list(np.ravel(layer.pool_size)),
        strides=list(np.ravel(layer.strides)),
        auto_pad=padding,
    )
    return [Value(graph.add("Transpose", x, perm=[0, 2, 1]), 3)]


def _require(layer: Any, **options: Any) -> None:
    for option, wanted in options.items():
        if getattr(layer, option, wanted) != wanted:
            raise ValueError(
                f"Layer {layer.name!r} must have {option}={wanted!r} to be written as ONNX. "
                f"Received: {option}={getattr(layer, option)!r}"
            )


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
    K.GlobalMaxPooling1D: _pool("ReduceMax"),
    K.GlobalAveragePooling1D: _pool("ReduceMean"),
    K.LayerNormalization: _layer_norm,
    K.BatchNormalization: _batch_norm,
    K.Rescaling: _scale,
    K.Activation: _activation,
    K.ReLU: _relu,
    K.LeakyReLU: _leaky_relu,
    K.ELU: _elu,
    K.Softmax: _softmax,
    K.Flatten: _flatten,
    K.Reshape: _reshape,
    K.Permute: _permute,
    K.RepeatVector: _repeat,
    K.Concatenate: _concatenate,
    K.Add: _merge("Add"),
    K.Subtract: _merge("Sub"),
    K.Multiply: _merge("Mul"),
    K.Maximum: _merge("Max"),
    K.Minimum: _merge("Min"),
    K.Average: _merge("Add", divide=True),
    **dict.fromkeys(
        (
            K.Dropout,
            K.SpatialDropout1D,
            K.GaussianDropout,
            K.GaussianNoise,
            K.ActivityRegularization,
            K.Identity,
        ),
        _same,
    ),
}
"""Every kind of layer that can be written, beside models inside of models and TimeDistributed."""
