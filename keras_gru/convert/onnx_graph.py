"""A graph of ONNX operators that is written operator by operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.convert.gru_weights import Array

# The oldest with LayerNormalization; ONNX Runtime has read it since 1.12.
OPSET = 17
IR_VERSION = 8
ML_OPSET = 2
"""Version of the domain ai.onnx.ml, for graphs with a node of it."""
FLOAT, INT32, INT64, BOOL, DOUBLE = 1, 6, 7, 9, 11
"""Types, as `onnx.TensorProto` numbers them."""
END = np.iinfo(np.int64).max
"""End of a Slice that goes to the end of its axis."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    """Name of the tensor."""
    rank: int
    """Number of its axes, the batch included."""
    mask: str | None = None
    """Name of a bool tensor (B, T), false at steps to pass over; or None."""


class OnnxGraph:
    """Nodes and constants, in the order in which they are added.

    Attributes:
        prefixes: Names of masks that leave the first steps of each row, and behind which nothing
            is read: rows padded at the end. A GRU then needs their lengths alone.

    Raises:
        ImportError: The package `onnx` is missing.
    """

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "Writing ONNX files needs the package `onnx`: pip install onnx"
            ) from error
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._operands: dict[Any, str] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._taken: Counter[str] = Counter()
        self.prefixes: set[str] = set()

    def add(
        self, operator: str, *inputs: Any, count: int = 1, name: str = "", **attributes: Any
    ) -> Any:
        """Add a node; returns its output's name, or with `count` above 1 a list of names.

        Args:
            operator: Name of the operator in the default domain.
            *inputs: Names of tensors, and numbers, arrays or Keras variables, which become
                constants; empty for an optional input left out.
            count: Number of outputs.
            name: Name of the node, by default the operator; a number makes it unique.
            **attributes: Attributes of the node; those that are None are left out.
        """
        name = self._unique(name or operator)
        outputs = [name] if count == 1 else [f"{name}:{i}" for i in range(count)]
        given = {key: value for key, value in attributes.items() if value is not None}
        names = [each if isinstance(each, str) else self._operand(each) for each in inputs]
        self._nodes.append(self._onnx.helper.make_node(operator, names, outputs, name, **given))
        return outputs[0] if count == 1 else outputs

    def constant(self, values: Any, name: str = "constant") -> str:
        """Add a tensor; integers are int64 and floats float64 unless they have a NumPy type."""
        name = self._unique(name)
        array = np.ascontiguousarray(values) if np.ndim(values) else np.asarray(values)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def weight(self, variable: Any) -> str:
        """Add a Keras variable under its own name."""
        return self.constant(np.asarray(variable), variable.path)

    def input(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> str:
        """Declare an input of the model."""
        name = self._unique(name)
        self._inputs.append(self._described(name, dtype, shape))
        return name

    def output(self, name: str, source: str, dtype: str, shape: tuple[int | None, ...]) -> None:
        """Declare an output of the model."""
        name = self._unique(name)
        self._nodes.append(self._onnx.helper.make_node("Identity", [source], [name], name))
        self._outputs.append(self._described(name, dtype, shape))

    def inner(self) -> OnnxGraph:
        """Start a graph for the body of a loop or a branch; it may use the names of this one."""
        inner = OnnxGraph()
        inner._taken = self._taken
        return inner

    def graph(self, name: str) -> Any:
        """Build a `GraphProto` of all that was added; also the body of a loop in another graph.

        Nodes that no output needs are left out: a runtime would run them.
        """
        needed = {one.name for one in self._outputs}
        nodes = []
        for node in reversed(self._nodes):
            if not needed.isdisjoint(node.output):
                nodes.append(node)
                needed.update(_names_read(node))
        constants = [one for one in self._constants if one.name in needed]
        return self._onnx.helper.make_graph(
            nodes[::-1], name, self._inputs, self._outputs, constants
        )

    def model(self, name: str) -> Any:
        """Build and check the model, a `ModelProto`.

        Raises:
            onnx.checker.ValidationError: The graph is not valid.
        """
        onnx = self._onnx
        opsets = {"": OPSET, **{node.domain: ML_OPSET for node in self._nodes if node.domain}}
        model = onnx.helper.make_model(
            self.graph(name),
            opset_imports=[onnx.helper.make_opsetid(*opset) for opset in opsets.items()],
            ir_version=IR_VERSION,
            producer_name="keras_gru",
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def write(self, path: str | Path, name: str) -> None:
        """Check the model and write it.

        Raises:
            onnx.checker.ValidationError: The graph is not valid.
        """
        self._onnx.save(self.model(name), str(path))

    def _operand(self, value: Any) -> str:
        """Add a constant that is written among a node's inputs; equal ones are added once."""
        if hasattr(value, "path"):
            return self.weight(value)
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._operands:
            self._operands[key] = self.constant(array)
        return self._operands[key]

    def _described(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> Any:
        element = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        sizes = [
            ("batch" if axis == 0 else f"{name}_axis_{axis}") if size is None else size
            for axis, size in enumerate(shape)
        ]
        return self._onnx.helper.make_tensor_value_info(name, element, sizes)

    def _unique(self, name: str) -> str:
        self._taken[name] += 1
        return name if self._taken[name] == 1 else f"{name}_{self._taken[name] - 1}"


def _names_read(node: Any) -> Iterator[str]:
    """Yield a node's inputs and those of its inner graphs, with their own tensors among them."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from (one.name for one in attribute.g.output)
            for inner in attribute.g.node:
                yield from _names_read(inner)


def float32(values: Any) -> Array:
    """Convert to the one precision of all operators here."""
    return np.asarray(values, "float32")
