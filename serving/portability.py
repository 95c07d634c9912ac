"""Whether a SavedModel's signatures run the same on any engine, read off its graph.

A signature is portable and pure when nothing it reaches is bound to a device, compiler or Python
process, draws random numbers, or writes a variable: stock TensorFlow Serving then gives the same
answer to the same request, every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow.core.protobuf import saved_model_pb2

_FORBIDDEN = {
    "Cudnn": "runs on an NVIDIA GPU only",
    "PyFunc": "needs the Python process that made it",
    "EagerPyFunc": "needs the Python process that made it",
    "Random": "draws random numbers",
    "Multinomial": "draws random numbers",
    "Assign": "writes a variable",
    "XlaLaunch": "needs XLA, which TensorFlow Serving has off",
}
_XLA_ATTRIBUTES = ("_XlaMustCompile", "_xla_compile_id")


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
        saved_model: directory with a `saved_model.pb`.

    Returns:
        The faults, in the order of signatures; empty for a portable model.
    """
    return [
        Fault(name, node.name, node.op, reason)
        for name, node in signature_nodes(saved_model)
        if (reason := _reason(node))
    ]


def signature_nodes(saved_model: Path) -> Iterator[tuple[str, Any]]:
    """Every graph node that a signature of a SavedModel directory reaches, with its name.

    Args:
        saved_model: directory with a `saved_model.pb`.
    """
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    for meta_graph in proto.meta_graphs:
        graph = meta_graph.graph_def
        functions = {f.signature.name: f for f in graph.library.function}
        nodes = {node.name: node for node in graph.node}
        for name, signature in sorted(meta_graph.signature_def.items()):
            if name.startswith("__"):
                continue
            outputs = (info.name for info in signature.outputs.values())
            for node in _reached(outputs, nodes, functions):
                yield name, node


def _reached(
    outputs: Iterable[str], nodes: dict[str, Any], functions: dict[str, Any]
) -> Iterator[Any]:
    """The nodes that the outputs depend on, and all nodes of the functions these call."""
    waiting = [_node_name(name) for name in outputs]
    seen: set[str] = set()
    called: list[Any] = []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in nodes:
            continue
        seen.add(name)
        node = nodes[name]
        yield node
        called.append(node)
        waiting += [_node_name(source) for source in node.input]
    entered: set[str] = set()
    while called:
        for name in _functions_of(called.pop()):
            if name in functions and name not in entered:
                entered.add(name)
                yield from functions[name].node_def
                called += functions[name].node_def


def _node_name(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]


def _functions_of(node: Any) -> Iterator[str]:
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        for function in value.list.func:
            yield function.name


def _reason(node: Any) -> str | None:
    for attribute in _XLA_ATTRIBUTES:
        if attribute in node.attr and (node.attr[attribute].b or node.attr[attribute].s):
            return "needs XLA, which TensorFlow Serving has off"
    for part, reason in _FORBIDDEN.items():
        if part in node.op:
            return reason
    return None
