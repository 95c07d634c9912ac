"""A batch cut into blocks of rows, and the functions that run them.

XLA compiles anew for every shape. To avoid a compilation for every length of the data, sizes that
the graph does not know are padded: steps to 8, 12, 16, 24, 32, 48 … (the loop ends after the real
ones all the same), rows of a block to 1, 2, 4, 8, 10, 12, 14, 16, 20 …
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel.execution import Plan

Tensor = Any

STEPS = [2**k * m // 2 for k in range(3, 28) for m in (2, 3)]
ROWS = [1, 2, 4] + [2**k * m // 4 for k in range(3, 28) for m in (4, 5, 6, 7)]

_FUNCTIONS_KEPT = 512


class Extent(NamedTuple):
    """Size of a batch, and how it is cut.

    Attributes:
        rows: B, an int where it is known, else a scalar tensor.
        steps: T, the same.
        block_rows: Rows of a block; without padding, at most that.
        capacity: Steps of a block.
        blocks: Number of blocks.
        padded: Whether rows and steps are filled up to `block_rows` and `capacity`.
    """

    rows: Any
    steps: Any
    block_rows: Any
    capacity: Any
    blocks: int
    padded: bool

    @classmethod
    def of(cls, inputs: Tensor, plan: Plan) -> Extent:
        """The extent of inputs (B, T, D)."""
        rows, steps = inputs.shape[:2]
        unknown_rows, unknown_steps = rows is None, steps is None
        rows = tf.shape(inputs)[0] if unknown_rows else rows
        steps = tf.shape(inputs)[1] if unknown_steps else steps
        block_rows = (rows + plan.blocks - 1) // plan.blocks
        capacity = steps
        if plan.compiles_blocks:
            block_rows = _bucket(block_rows, ROWS) if unknown_rows else block_rows
            capacity = _bucket(steps, STEPS) if unknown_steps else steps
        fits = not (unknown_rows or unknown_steps) and rows % plan.blocks == 0
        return cls(
            rows, steps, block_rows, capacity, plan.blocks, plan.compiles_blocks and not fits
        )

    def cut(self, values: Any, timed: bool = False) -> list[Any]:
        """Values per block.

        Args:
            values: A tensor with the batch axis first, a tuple of them, or a scalar or None, which
                all blocks get.
            timed: Whether the second axis is time.
        """
        if isinstance(values, tuple):
            parts = zip(*(self.cut(value, timed) for value in values), strict=True)
            return [type(values)(*part) for part in parts]
        if values is None or values.shape.rank == 0:
            return [values] * self.blocks
        if self.padded:
            values = self._pad(values, timed)
        if self.blocks == 1:
            return [values]
        if self.padded or (isinstance(self.rows, int) and self.rows % self.blocks == 0):
            return list(tf.split(values, self.blocks))
        starts = [block * self.block_rows for block in range(self.blocks)]
        return [values[start : start + self.block_rows] for start in starts]

    def join(self, values: list[Tensor], timed: bool = False) -> Tensor:
        """The inverse of `cut`."""
        whole = values[0] if len(values) == 1 else tf.concat(values, 0)
        if self.padded:
            whole = whole[: self.rows, : self.steps] if timed else whole[: self.rows]
        known = [size if isinstance(size, int) else None for size in (self.rows, self.steps)]
        known = known[: 1 + timed]
        # Not tf.ensure_shape: tf.autodiff.ForwardAccumulator fails at its partly known shapes.
        whole.set_shape([*known, *whole.shape[len(known) :]])
        return whole

    def _pad(self, values: Tensor, timed: bool) -> Tensor:
        paddings = [[0, self.blocks * self.block_rows - self.rows]]
        if timed:
            paddings.append([0, self.capacity - self.steps])
        paddings += [[0, 0]] * (values.shape.rank - len(paddings))
        return tf.pad(values, tf.stack(paddings))


def run_block(
    function: Callable[..., Any], tensors: tuple[Any, ...], *options: Any, jit_compile: bool
) -> Any:
    """`function(*tensors, *options)` as a function of its own, the same for all calls alike.

    A graph holds its body once, however many layers, directions and signatures call it.

    Args:
        function: What to run.
        tensors: Its tensors, in tuples or None.
        *options: Its other arguments.
        jit_compile: Whether XLA compiles it.
    """
    leaves = tf.nest.flatten(tensors)
    shapes = tuple(None if v is None else (v.dtype, tuple(v.shape)) for v in leaves)
    return _function(function, options, shapes, jit_compile or None)(*tensors)


@functools.lru_cache(_FUNCTIONS_KEPT)
def _function(
    function: Callable[..., Any],
    options: Any,
    shapes: Any,  # noqa: ARG001
    jit_compile: bool | None,
) -> Any:
    # One per set of shapes: TensorFlow warns when one function is traced over and over.
    return tf.function(
        lambda *tensors: function(*tensors, *options), jit_compile=jit_compile, autograph=False
    )


def _bucket(size: Tensor, sizes: list[int]) -> Tensor:
    """The least of the sizes that holds `size`."""
    table = tf.constant(sizes)
    return table[tf.searchsorted(table, size[tf.newaxis])[0]]
