"""Keras' activation functions as operators of ONNX."""

from __future__ import annotations

from typing import Any

import keras

from keras_gru.convert.onnx_graph import OnnxGraph

ACTIVATIONS: dict[Any, tuple[str, dict[str, Any]]] = {
    keras.activations.relu: ("Relu", {}),
    keras.activations.tanh: ("Tanh", {}),
    keras.activations.sigmoid: ("Sigmoid", {}),
    keras.activations.hard_sigmoid: ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    keras.activations.softmax: ("Softmax", {"axis": -1}),
    keras.activations.log_softmax: ("LogSoftmax", {"axis": -1}),
    keras.activations.elu: ("Elu", {}),
    keras.activations.selu: ("Selu", {}),
    keras.activations.softplus: ("Softplus", {}),
    keras.activations.softsign: ("Softsign", {}),
    keras.activations.exponential: ("Exp", {}),
    keras.activations.leaky_relu: ("LeakyRelu", {"alpha": 0.2}),
}


def activated(graph: OnnxGraph, layer: Any, function: Any, name: str) -> str:
    """What an activation makes of a tensor."""
    if function is None or function is keras.activations.linear:
        return name
    if function is keras.activations.silu:
        return str(graph.add("Mul", name, graph.add("Sigmoid", name)))
    if function not in ACTIVATIONS:
        names = ["linear", "silu", *(known.__name__ for known in ACTIVATIONS)]
        raise ValueError(
            f"The activation of layer {layer.name!r} must be one of {names} to be written as ONNX. "
            f"Received: {getattr(function, '__name__', function)!r}"
        )
    operator, attributes = ACTIVATIONS[function]
    return str(graph.add(operator, name, **attributes))
