"""The portability of a SavedModel's signatures, read from its graph.

A signature is portable and pure if nothing that it reaches is bound to a device, compiler or Python
process, draws random numbers, writes a variable, or makes TensorFlow write beyond its memory. Stock
TensorFlow Serving then gives the same answer to the same request every time.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow.core.protobuf import saved_model_pb2

Shape = tuple[int | None, ...] | None
"""Sizes, None where unknown; None for a tensor of unknown rank."""

# A matrix product for which TensorFlow writes beyond its memory: oneDNN's kernel in 2.20 and 2.21
# reads a matrix that is broadcast over (B, 1, M, K) as if there were B of them. From some B on the
# process crashes, at once or later (tensorflow#117700, #123109; fixed by #120199 after 2.21).
_OPS = ("BatchMatMulV2", "_FusedBatchMatMulV2", "_MklBatchMatMulV2")


class Scope:
    """A graph or the body of a function, with the shapes inferred when it was written.

    Args:
        nodes: Nodes of the graph or function.
        function: Function whose body it is, or None.
    """

    def __init__(self, nodes: Iterable[Any], function: Any = None) -> None:
        self.nodes = {node.name: node for node in nodes}
        self._arguments = {}
        if function is not None:
            names = [argument.name for argument in function.signature.input_arg]
            self._arguments = {names[i]: attrs.attr for i, attrs in function.arg_attr.items()}

    def shape(self, tensor: str) -> Shape:
        """Return the shape of a node's output or a function's argument, by the input's name."""
        name = tensor.split(":")[0]
        attributes = self.nodes[name].attr if name in self.nodes else self._arguments.get(name, {})
        if "_output_shapes" not in attributes:
            return None
        shapes = {_shape(proto) for proto in attributes["_output_shapes"].list.shape}
        return shapes.pop() if len(shapes) == 1 else None


def overruns(node: Any, scope: Scope) -> bool:
    """Tell whether a node computes the product for which TensorFlow writes beyond its memory.

    An unknown size counts as the worst case.

    Args:
        node: Node of a graph.
        scope: Scope in which it stands.
    """
    if node.op not in _OPS:
        return False
    left, right = (scope.shape(tensor) for tensor in node.input[:2])
    if left is None or right is None or len(left) != 4:
        return False
    broadcast = all(size == 1 for size in right[:-2])
    return broadcast and left[0] != 1 and left[1] in (1, None)


def _shape(proto: Any) -> Shape:
    if proto.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in proto.dim)


_FORBIDDEN_OPERATIONS = {
    "Cudnn": "runs on an NVIDIA GPU only",
    "PyFunc": "needs the Python process that made it",
    "EagerPyFunc": "needs the Python process that made it",
    "Random": "draws random numbers",
    "Multinomial": "draws random numbers",
    "Assign": "writes a variable",
    "XlaLaunch": "needs XLA, which is disabled in TensorFlow Serving",
}
_XLA_ATTRIBUTES = ("_XlaMustCompile", "_xla_compile_id")
_OVERRUN = (
    "multiplies a tensor of rank 4 by a matrix, which can corrupt the memory of TensorFlow 2.20 "
    "and 2.21 (tensorflow#117700); reshape the tensor to rank 2 before the product, and back "
    "after it, or for a Dense layer use Keras 3.15 or later"
)


class Fault(NamedTuple):
    """Something that keeps a signature from being portable."""

    signature: str
    node: str
    op: str
    reason: str

    def __str__(self) -> str:
        return f"signature {self.signature!r}: node {self.node!r} ({self.op}) {self.reason}"


def portability_faults(saved_model: Path) -> list[Fault]:
    """Find what keeps the signatures of a SavedModel directory from being portable and pure.

    Only what a signature reaches counts: restoring variables and filling tables at load time are
    not part of an answer.

    Args:
        saved_model: Directory with a `saved_model.pb`.

    Returns:
        Faults in the order of signatures; empty for a portable model.
    """
    return [
        Fault(name, node.name, node.op, reason)
        for name, node, scope in _nodes_in_scope(saved_model)
        if (reason := _reason(node, scope))
    ]


def signature_nodes(saved_model: Path) -> Iterator[tuple[str, Any]]:
    """Yield every graph node that a signature of a SavedModel directory reaches, with its name.

    Args:
        saved_model: Directory with a `saved_model.pb`.
    """
    for name, node, _ in _nodes_in_scope(saved_model):
        yield name, node


def _nodes_in_scope(saved_model: Path) -> Iterator[tuple[str, Any, Scope]]:
    """Yield the names of signatures, and the nodes that they reach with their scopes."""
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    for meta_graph in proto.meta_graphs:
        graph = meta_graph.graph_def
        functions = {f.signature.name: Scope(f.node_def, f) for f in graph.library.function}
        scope = Scope(graph.node)
        for name, signature in sorted(meta_graph.signature_def.items()):
            if name.startswith("__"):
                continue
            outputs = (info.name for info in signature.outputs.values())
            for node, around in _reached(outputs, scope, functions):
                yield name, node, around


def _reached(
    outputs: Iterable[str], scope: Scope, functions: dict[str, Scope]
) -> Iterator[tuple[Any, Scope]]:
    """Collect the nodes on which the outputs depend, and all nodes of functions that they call."""
    waiting = [_node_name(name) for name in outputs]
    seen: set[str] = set()
    called: list[Any] = []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in scope.nodes:
            continue
        seen.add(name)
        node = scope.nodes[name]
        yield node, scope
        called.append(node)
        waiting += [_node_name(source) for source in node.input]
    entered: set[str] = set()
    while called:
        for name in _functions_of(called.pop()):
            if name in functions and name not in entered:
                entered.add(name)
                body = functions[name].nodes.values()
                yield from ((node, functions[name]) for node in body)
                called += body


def _node_name(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]


def _functions_of(node: Any) -> Iterator[str]:
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        for function in value.list.func:
            yield function.name


def _reason(node: Any, scope: Scope) -> str | None:
    if overruns(node, scope):
        return _OVERRUN
    for attribute in _XLA_ATTRIBUTES:
        if attribute in node.attr and (node.attr[attribute].b or node.attr[attribute].s):
            return "needs XLA, which is disabled in TensorFlow Serving"
    for part, reason in _FORBIDDEN_OPERATIONS.items():
        if part in node.op:
            return reason
    return None
