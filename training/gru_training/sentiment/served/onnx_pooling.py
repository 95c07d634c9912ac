"""The poolings of `..network.pooling` in ONNX, and the way back through them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gru_training.sentiment.network.pooling import (
    AttentionPooling,
    LastPooling,
    MaskedMaxPooling,
    MaskedMeanPooling,
    Pooling,
    pooling_layer,
)
from keras_gru.convert.onnx_graph import END, FLOAT, INT64, OnnxGraph, Value, float32

_LEAST_FLOAT = float(np.finfo(np.float32).min)


class PoolingGraph:
    """The graph of one pooling over a sequence.

    Args:
        graph: Graph to add to.
        layer: The pooling.
        sequence: (B, T, D).
        mask: bool (B, T), false at steps to pass over, which are the last ones of each row.
    """

    def __init__(self, graph: OnnxGraph, layer: Pooling, sequence: str, mask: str) -> None:
        self._graph, self._layer, self._sequence, self._mask = graph, layer, sequence, mask
        self._columns = graph.add("Unsqueeze", mask, graph.constant([2]))  # (B, T, 1)
        self._shown = graph.add("Cast", self._columns, to=FLOAT)
        self._zero = graph.constant(float32(0))
        self._axis = graph.constant([1])

    def pool(self) -> str:
        """Pool the sequence into one vector per row, (B, D)."""
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMaxPooling):
            greatest = g.add("ReduceMax", self._lowered(), axes=[1], keepdims=0)
            return str(g.add("Where", self._any(), greatest, self._zero))
        if isinstance(layer, LastPooling):
            return self._last(layer)
        return self._ratio(*self._totals(self._weights()[0]))

    def gradient(self, d_pooled: str) -> str:
        """Add the gradient (B, T, D) of the sequence, given that of what `pool` makes of it."""
        g, layer = self._graph, self._layer
        d_steps = g.add("Unsqueeze", d_pooled, [1])  # (B, 1, D)
        if isinstance(layer, MaskedMaxPooling):  # in equal parts to all greatest ones
            greatest = g.add("ReduceMax", self._lowered(), axes=[1], keepdims=1)
            chosen = g.add("Cast", g.add("Equal", self._sequence, greatest), to=FLOAT)
            chosen = g.add("Mul", chosen, self._shown)
            count = g.add("ReduceSum", chosen, self._axis, keepdims=1)
            return str(g.add("Mul", g.add("Div", chosen, g.add("Max", count, float32(1))), d_steps))
        if isinstance(layer, LastPooling):
            return self._gradient_of_last(layer, d_steps)
        weights = self._weights()[0]
        norm = g.add("ReduceSum", weights, self._axis, keepdims=1)
        empty = g.add("Equal", norm, self._zero)
        shares = g.add("Div", weights, g.add("Where", empty, float32(1), norm))  # (B, T, 1)
        if isinstance(layer, AttentionPooling):  # the scores of steps depend on them, too
            mean = g.add("ReduceSum", g.add("Mul", self._sequence, shares), self._axis, keepdims=1)
            worth = g.add("Mul", g.add("Sub", self._sequence, mean), d_steps)
            d_scores = g.add("ReduceSum", worth, [2], keepdims=1)
            score = g.add("Transpose", g.weight(layer.score), perm=[1, 0])  # (1, D)
            d_steps = g.add("Add", d_steps, g.add("Mul", d_scores, score))
        return str(g.add("Mul", shares, d_steps))

    def so_far(self, most_steps: int) -> str:
        """Pool up to each step, (B, T, D).

        Args:
            most_steps: Upper bound of T.
        """
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMaxPooling):
            return self._where_begun(self._running_maximum(self._lowered(), most_steps))
        if isinstance(layer, LastPooling):
            return self._where_begun(self._sequence)
        weights = self._weights()[0]
        axis = g.constant(np.int64(1))
        total = g.add("CumSum", g.add("Mul", self._sequence, weights), axis)
        return self._ratio(total, g.add("CumSum", weights, axis))

    def resume(self, carry: str, features: int) -> tuple[str, str]:
        """Pool further steps: returns the result so far, (B, D), and the new carry (B, size)."""
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMaxPooling):
            pooled, count = self._split(carry, [features, 1])
            greatest = g.add("ReduceMax", self._lowered(), axes=[1], keepdims=0)
            begun = g.add("Greater", count, self._zero)
            seen = g.add("Where", begun, g.add("Max", pooled, greatest), greatest)
            pooled = g.add("Where", self._any(), seen, pooled)
            count = g.add("Add", count, g.add("ReduceSum", self._shown, self._axis, keepdims=0))
            return pooled, g.add("Concat", pooled, count, axis=-1)
        if isinstance(layer, LastPooling):
            pooled = g.add("Where", self._any(), self._last(layer), carry)
            return pooled, pooled
        weights, greatest = self._weights()
        total, norm = self._totals(weights)
        if not isinstance(layer, AttentionPooling):
            carry = g.add("Add", carry, g.add("Concat", total, norm, axis=-1))
            return self._ratio(*self._split(carry, [features, 1])), carry
        before, norm_before, greatest_before = self._split(carry, [features, 1, 1])
        fresh = g.add("Equal", norm_before, self._zero)
        nothing = g.add("Equal", norm, self._zero)
        highest = g.add("Max", greatest, greatest_before)
        highest = g.add("Where", fresh, greatest, highest)
        highest = g.add("Where", nothing, greatest_before, highest)
        old = g.add("Exp", g.add("Sub", greatest_before, highest))
        old = g.add("Where", fresh, self._zero, old)
        new = g.add("Exp", g.add("Sub", greatest, highest))
        new = g.add("Where", nothing, self._zero, new)
        total = g.add("Add", g.add("Mul", before, old), g.add("Mul", total, new))
        norm = g.add("Add", g.add("Mul", norm_before, old), g.add("Mul", norm, new))
        return self._ratio(total, norm), g.add("Concat", total, norm, highest, axis=-1)

    def _weights(self) -> tuple[str, str]:
        """Weigh each step, (B, T, 1), 0 where masked.

        Also returns the greatest attention score, (B, 1).
        """
        g, layer = self._graph, self._layer
        if isinstance(layer, MaskedMeanPooling):
            return self._shown, ""
        if not isinstance(layer, AttentionPooling):
            raise ValueError(f"Layer {layer.name!r} is of a kind that is not written as ONNX")
        scores = g.add("MatMul", self._sequence, g.weight(layer.score))
        scores = g.add("Where", self._columns, scores, g.constant(float32(_LEAST_FLOAT)))
        greatest = g.add("ReduceMax", scores, axes=[1], keepdims=1)
        weights = g.add("Mul", g.add("Exp", g.add("Sub", scores, greatest)), self._shown)
        return weights, g.add("Squeeze", greatest, self._axis)

    def _totals(self, weights: str) -> tuple[str, str]:
        """Compute weighted sum (B, D) and sum of the weights (B, 1)."""
        g = self._graph
        total = g.add("ReduceSum", g.add("Mul", self._sequence, weights), self._axis, keepdims=0)
        return total, g.add("ReduceSum", weights, self._axis, keepdims=0)

    def _ratio(self, total: str, norm: str) -> str:
        g = self._graph
        empty = g.add("Equal", norm, self._zero)
        return str(g.add("Div", total, g.add("Where", empty, g.constant(float32(1)), norm)))

    def _lowered(self) -> str:
        """Replace masked values by the least number."""
        lowest = self._graph.constant(float32(_LEAST_FLOAT))
        return str(self._graph.add("Where", self._columns, self._sequence, lowest))

    def _any(self) -> str:
        """Mark the rows that have a step, (B, 1)."""
        g = self._graph
        return str(
            g.add("Greater", g.add("ReduceMax", self._shown, axes=[1], keepdims=0), self._zero)
        )

    def _where_begun(self, pooled: str) -> str:
        g = self._graph
        seen = g.add("CumSum", self._shown, g.constant(np.int64(1)))
        return str(g.add("Where", g.add("Greater", seen, self._zero), pooled, self._zero))

    def _running_maximum(self, steps: str, most: int) -> str:
        """Compute a running maximum by doublings: ONNX has a running sum, but no such maximum."""
        g = self._graph
        lowest = g.constant(float32(_LEAST_FLOAT))
        zero = g.constant([0])
        length = g.add("Shape", steps, start=1, end=2)
        for doubling in range(math.ceil(math.log2(max(most, 2)))):
            reach = 2**doubling
            moved = g.add("Pad", steps, g.constant([0, reach, 0, 0, 0, 0]), lowest)
            moved = g.add("Slice", moved, zero, length, self._axis)
            steps = g.add("Max", steps, moved)
        return steps

    def _last(self, layer: LastPooling) -> str:
        g = self._graph
        count = g.add("ReduceSum", g.add("Cast", self._columns, to=INT64), self._axis, keepdims=0)
        place = g.add("Max", g.add("Sub", count, g.constant([1])), g.constant([0]))  # (B, 1)
        pooled = g.add("GatherND", self._sequence, place, batch_dims=1)
        if layer.bidirectional:
            first = g.add("Gather", self._sequence, g.constant(np.int64(0)), axis=1)
            ahead, _ = g.add("Split", pooled, count=2, axis=-1)
            _, back = g.add("Split", first, count=2, axis=-1)
            pooled = g.add("Concat", ahead, back, axis=-1)
        return str(g.add("Where", self._any(), pooled, self._zero))

    def _gradient_of_last(self, layer: LastPooling, d_steps: str) -> str:
        """Put the gradient (B, 1, D) at the last step, and that of what was read back at the first.

        A step is the last where none is shown behind it.
        """
        g = self._graph
        ends = [g.constant(at) for at in ([0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0])]
        one, end = g.constant([1]), g.constant([END])
        after = g.add("Slice", g.add("Pad", self._shown, ends[0]), one, end, self._axis)
        last = g.add("Mul", g.add("Sub", self._shown, after), d_steps)
        if not layer.bidirectional:
            return str(last)
        before = g.add("Slice", g.add("Pad", self._shown, ends[1]), [0], [-1], self._axis)
        first = g.add("Relu", g.add("Sub", self._shown, before))
        ahead, _ = g.add("Split", last, count=2, axis=-1)
        _, back = g.add("Split", g.add("Mul", first, d_steps), count=2, axis=-1)
        return str(g.add("Concat", ahead, back, axis=-1))

    def _split(self, values: str, sizes: Sequence[int]) -> Any:
        return self._graph.add(
            "Split", values, self._graph.constant(sizes), count=len(sizes), axis=1
        )


def add_pooling(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """Add a pooling layer of a model."""
    (value,) = values
    if value.mask is None or value.mask not in graph.prefixes:
        raise ValueError(f"Layer {layer.name!r} must get rows padded at the end to become ONNX")
    return [Value(PoolingGraph(graph, layer, value.name, value.mask).pool(), 2)]


POOLINGS = {
    type(pooling_layer(kind, False)): add_pooling for kind in ("max", "mean", "attention", "last")
}
"""Writers by kind of pooling."""
