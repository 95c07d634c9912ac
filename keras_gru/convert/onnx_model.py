"""Whole models as ONNX files, and the GRUs of ONNX files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_gru.convert.gru_weights import GRUWeights
from keras_gru.convert.onnx_graph import OnnxGraph, Value
from keras_gru.convert.onnx_gru import from_onnx
from keras_gru.convert.onnx_layers import OPERATIONS, WRITERS, OperationWriter, Writer


def to_onnx_model(model: Any, path: str | Path) -> None:
    """Write a whole model as an ONNX file in which every GRU is a node of ONNX's own.

    Such a node is one kernel of the runtime instead of a loop of small operations, which is what
    `model.export(path, format="onnx")` writes for every layer. It needs the package `onnx`, and no
    tf2onnx. Batch and time stay open where the model leaves them open. Masks of any pattern mean
    what they mean in Keras.

    GRUs may be `keras_gru`'s or Keras', alone, in `keras.layers.Bidirectional` and in
    `GRUEncoder`; the other layers are those of `onnx_layers.WRITERS`, `TimeDistributed` around any
    of them, and models inside of models.

    Args:
        model: A built Sequential or functional model in float32.
        path: Path of the file to write.

    Raises:
        ImportError: The package `onnx` is missing.
        ValueError: Something in the model has no equivalent; the message names the layer. Nothing
            is written.
    """
    if not _is_graph(model):
        raise ValueError(
            "Argument `model` must be a Sequential or functional model that has its inputs: build "
            f"it, or give it a keras.Input. Received: {model!r}"
        )
    graph = OnnxGraph()
    given = [
        Value(graph.input(tensor.name, tensor.dtype, tuple(tensor.shape)), len(tensor.shape))
        for tensor in model.inputs
    ]
    results = add_model(graph, model, given)
    names = getattr(model, "output_names", None) or [f"output_{i}" for i in range(len(results))]
    for name, result, tensor in zip(names, results, model.outputs, strict=True):
        graph.output(name, result.name, tensor.dtype, tuple(tensor.shape))
    graph.write(path, model.name)


def load_onnx(path: str | Path) -> dict[str, tuple[GRUWeights, ...]]:
    """Read the weights of all GRU nodes of an ONNX file, of whatever framework.

    Args:
        path: Path of the file.

    Returns:
        One `GRUWeights` per direction, as `from_onnx` gives them, by the name of the node, in the
        order of the file. A node without a name gets that of its first output.

    Raises:
        ImportError: The package `onnx` is missing.
        ValueError: There is no GRU node, or one whose weights are no constants.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "Reading ONNX files needs the package `onnx`: pip install onnx"
        ) from error
    graph = onnx.load(str(path)).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
    loaded = {}
    for node in graph.node:
        if node.op_type != "GRU" or node.domain not in ("", "ai.onnx"):
            continue
        name = node.name or next(filter(None, node.output))
        tensors = {}
        for key, source in zip(("W", "R", "B"), node.input[1:4], strict=False):
            if source and source not in constants:
                raise ValueError(
                    f"Input {key} of GRU node {name!r} must be a constant. Received: {source!r}, "
                    "which is computed"
                )
            if source:
                tensors[key] = onnx.numpy_helper.to_array(constants[source])
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        loaded[name] = from_onnx(tensors, **attributes)
    if not loaded:
        raise ValueError(
            f"File {str(path)!r} must hold a GRU node. Received: nodes "
            f"{sorted({node.op_type for node in graph.node})}. Keras' own export writes GRUs as "
            "loops"
        )
    return loaded


def add_model(
    graph: OnnxGraph,
    model: Any,
    given: Sequence[Value],
    writers: Mapping[type, Writer] = WRITERS,
    operations: Mapping[str, OperationWriter] = OPERATIONS,
) -> list[Value]:
    """Add a functional model to a graph.

    Args:
        graph: The graph to extend.
        model: A model as `to_onnx_model` takes it.
        given: The values of the model's inputs.
        writers: Writers of layers by kind, `WRITERS` and those of one's own.
        operations: Writers of Keras' operations by the names of their classes.

    Returns:
        The model's outputs.

    Raises:
        ValueError: Something in the model has no equivalent; the message names the layer.
    """
    return _ModelWriter(graph, writers, operations).model(model, given)


def _is_graph(layer: Any) -> bool:
    """Tell whether a model computes what its graph of layers says, and nothing of its own."""
    if not isinstance(layer, keras.Model) or not getattr(layer, "inputs", None):
        return False
    return str(type(layer).call.__module__).startswith("keras.")


@dataclasses.dataclass(frozen=True)
class _ModelWriter:
    """The walk through a model's layers, with the writers that it uses."""

    graph: OnnxGraph
    writers: Mapping[type, Writer]
    operations: Mapping[str, OperationWriter]

    def model(self, model: Any, given: Sequence[Value]) -> list[Value]:
        made = {id(tensor): value for tensor, value in zip(model.inputs, given, strict=True)}

        def value_of(tensor: Any) -> Value:
            if id(tensor) not in made:
                operation, node_index, _ = tensor._keras_history
                node = operation._inbound_nodes[node_index]
                tensors, mask = _inputs(operation, node.arguments)
                inputs = [value_of(source) for source in tensors]
                if mask is not None:
                    inputs[0] = dataclasses.replace(inputs[0], mask=value_of(mask).name)
                name = type(operation).__name__  # some operations have the names of layers
                if name in self.operations and not isinstance(operation, keras.layers.Layer):
                    write = self.operations[name]
                    results = [write(self.graph, operation, inputs, node.arguments)]
                else:
                    results = self._layer(operation, inputs)
                for result, output in zip(results, node.outputs, strict=True):
                    made[id(output)] = result
            return made[id(tensor)]

        return [value_of(tensor) for tensor in model.outputs]

    def _layer(self, layer: Any, values: Sequence[Value]) -> list[Value]:
        policy = getattr(layer, "dtype_policy", None)
        if policy is not None and policy.compute_dtype != "float32":
            raise ValueError(
                f"Layer {layer.name!r} must have the dtype policy 'float32' to be written as ONNX. "
                f"Received: {policy.name!r}"
            )
        if _is_graph(layer):
            return self.model(layer, values)
        if type(layer) is keras.layers.TimeDistributed:
            return self._time_distributed(layer, values)
        write = self.writers.get(type(layer))
        if write is None:
            raise ValueError(
                f"Layer {layer.name!r} cannot be written as ONNX. Received: a "
                f"{type(layer).__module__}.{type(layer).__qualname__}; known are "
                f"{sorted({kind.__name__ for kind in self.writers} | {'TimeDistributed'})}"
            )
        states = values[1:] if hasattr(layer, "return_state") else ()
        results = write(self.graph, layer, values, states)
        if getattr(layer, "supports_masking", False):
            return results
        return [dataclasses.replace(result, mask=None) for result in results]

    def _time_distributed(self, layer: Any, values: Sequence[Value]) -> list[Value]:
        """Write the layer inside on all steps at once: batch and time become one axis."""
        (value,) = values
        if isinstance(layer.layer, keras.layers.Dense):
            return self._layer(layer.layer, values)
        if value.mask is not None:
            raise ValueError(
                f"Layer {layer.name!r} must get no mask to be written as ONNX, unless it holds a "
                f"Dense layer. Received: a mask, for a {type(layer.layer).__name__}"
            )
        add = self.graph.add
        sizes = add("Concat", [-1], add("Shape", value.name, start=2), axis=0)
        merged = Value(add("Reshape", value.name, sizes), value.rank - 1)
        (result,) = self._layer(layer.layer, [merged])
        front = add("Shape", value.name, start=0, end=2)
        shape = add("Concat", front, add("Shape", result.name, start=1), axis=0)
        return [Value(add("Reshape", result.name, shape), result.rank + 1)]


def _inputs(layer: Any, arguments: Any) -> tuple[list[Any], Any]:
    """Collect the tensors that a layer was called on, and the mask that it was given, or None.

    Keras also lists masks that the tensors carry among the arguments; those do not count.
    """
    given = {**arguments.kwargs}
    masks = keras.tree.flatten(given.pop("mask", None))
    flat = keras.tree.flatten([arguments.args, given])
    tensors = [tensor for tensor in flat if isinstance(tensor, keras.KerasTensor)]
    implied = {id(getattr(tensor, "_keras_mask", None)) for tensor in tensors}
    explicit = [mask for mask in masks if mask is not None and id(mask) not in implied]
    usable = len(explicit) < 2 and all(map(keras.utils.is_keras_tensor, explicit))
    for argument, refused in (("training", bool(given.get("training"))), ("mask", not usable)):
        if refused:
            raise ValueError(
                f"Layer {layer.name!r} must be called without `{argument}` to be written as ONNX. "
                f"Received: {argument}={arguments.kwargs[argument]!r}"
            )
    return tensors, explicit[0] if explicit else None
