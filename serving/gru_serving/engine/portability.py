"""Whether a SavedModel's signatures run the same on any engine, read off its graph.

A signature is portable and pure when nothing it reaches is bound to a device, compiler or Python
process, draws random numbers, writes a variable, or makes TensorFlow write beyond its memory:
stock TensorFlow Serving then gives the same answer to the same request, every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow.core.protobuf import saved_model_pb2

from gru_serving.engine.broadcast_product import Scope, overruns

_FORBIDDEN = {
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
    """What keeps the signatures of a SavedModel directory from being portable and pure.

    Only what a signature reaches counts: restoring variables and filling tables at load time is
    no part of an answer.

    Args:
        saved_model: Directory with a `saved_model.pb`.

    Returns:
        The faults, in the order of signatures; empty for a portable model.
    """
    return [
        Fault(name, node.name, node.op, reason)
        for name, node, scope in _nodes_in_scope(saved_model)
        if (reason := _reason(node, scope))
    ]


def signature_nodes(saved_model: Path) -> Iterator[tuple[str, Any]]:
    """Every graph node that a signature of a SavedModel directory reaches, with its name.

    Args:
        saved_model: Directory with a `saved_model.pb`.
    """
    for name, node, _ in _nodes_in_scope(saved_model):
        yield name, node


def _nodes_in_scope(saved_model: Path) -> Iterator[tuple[str, Any, Scope]]:
    """Signatures' names and the nodes that they reach, with where these stand."""
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
    """The nodes that the outputs depend on, and all nodes of the functions these call."""
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
    for part, reason in _FORBIDDEN.items():
        if part in node.op:
            return reason
    return None
