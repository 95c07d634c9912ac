"""A matrix product that TensorFlow writes beyond its memory for, and how a graph shows it.

oneDNN's kernel of 2.20 and 2.21 reads a matrix that is broadcast over (B, 1, M, K) as if there were
B of it: from some B on the process crashes, at once or later (tensorflow#117700, #123109; fixed by
#120199 after 2.21).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Shape = tuple[int | None, ...] | None
"""Sizes, None where unknown; None for a tensor of unknown rank."""

_OPS = ("BatchMatMulV2", "_FusedBatchMatMulV2", "_MklBatchMatMulV2")


class Scope:
    """A graph or the body of a function, with the shapes inferred when it was written.

    Args:
        nodes: Of the graph or function.
        function: Whose body it is, or None.
    """

    def __init__(self, nodes: Iterable[Any], function: Any = None) -> None:
        self.nodes = {node.name: node for node in nodes}
        self._arguments = {}
        if function is not None:
            names = [argument.name for argument in function.signature.input_arg]
            self._arguments = {names[i]: attrs.attr for i, attrs in function.arg_attr.items()}

    def shape(self, tensor: str) -> Shape:
        """Of a node's output or a function's argument, as the input of a node names it."""
        name = tensor.split(":")[0]
        attributes = self.nodes[name].attr if name in self.nodes else self._arguments.get(name, {})
        if "_output_shapes" not in attributes:
            return None
        shapes = {_shape(proto) for proto in attributes["_output_shapes"].list.shape}
        return shapes.pop() if len(shapes) == 1 else None


def overruns(node: Any, scope: Scope) -> bool:
    """Whether a node takes the product for which TensorFlow's memory is not safe.

    An unknown size counts as the worst case.

    Args:
        node: Of a graph.
        scope: Where it stands.
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
