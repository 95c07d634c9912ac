"""A batch cut into blocks of rows, and the functions that run them.

XLA compiles anew for every shape. To avoid a compilation for every length of the data, sizes are
padded to a few: those that the graph does not know, and known lengths once there are several of
them. Padded steps cost memory and hardly any time: the loop ends after the real ones, and the
products around it see no others. Padded rows cost as much as real ones, so there are more sizes of
them.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_gru.kernel import execution
from keras_gru.kernel.execution import Plan
from keras_gru.kernel.recurrence import Shared

Tensor = Any

STEPS = [32, *(2**k for k in range(7, 10)), *(2**k * m // 2 for k in range(9, 27) for m in (3, 4))]
# The least for blocks whose state has at most so many elements: there a program costs more than the
# memory.
SMALL_CAPACITY, SMALL_STATE = 128, 1 << 11
ROWS = [1, 2, 4] + [2**k * m // 4 for k in range(3, 28) for m in (4, 5, 6, 7)]
# Of sequences whose length the graph knows, so many lengths are not padded.
EXACT_LENGTHS = 4

_FUNCTIONS_KEPT = 512
_exact_lengths: dict[Any, list[int]] = {}


class Extent(NamedTuple):
    """Size of a batch, and how it is cut.

    Attributes:
        rows: B, an int where it is known, else a scalar tensor.
        steps: T, the same.
        block_rows: Rows of a block; unless `pads_rows`, at most that.
        capacity: Steps of a block.
        blocks: Number of blocks.
        pads_rows: Whether rows are filled up to `block_rows` in every block.
        pads_steps: Whether steps are filled up to `capacity`.
    """

    rows: Any
    steps: Any
    block_rows: Any
    capacity: Any
    blocks: int
    pads_rows: bool
    pads_steps: bool

    @classmethod
    def of(cls, inputs: Tensor, plan: Plan, units: int) -> Extent:
        """The extent of inputs (B, T, D) to a state (B, U)."""
        rows, steps = inputs.shape[:2]
        unknown_rows = rows is None
        rows = tf.shape(inputs)[0] if unknown_rows else rows
        block_rows = (rows + plan.blocks - 1) // plan.blocks
        pads_rows = pads_steps = False
        if plan.compiles_blocks:
            block_rows = _padded_rows(rows, block_rows, units) if unknown_rows else block_rows
            pads_rows = unknown_rows or rows % plan.blocks > 0
            pads_steps = steps is None or _is_one_of_many(steps, (inputs.shape[-1], plan))
        steps = tf.shape(inputs)[1] if steps is None else steps
        capacity = _capacity(steps, block_rows * units) if pads_steps else steps
        return cls(rows, steps, block_rows, capacity, plan.blocks, pads_rows, pads_steps)

    def is_small(self, units: int) -> bool:
        """Whether a state is known to have few elements."""
        return isinstance(self.rows, int) and self.rows * units <= SMALL_STATE // 2

    def steps_by_block(self) -> list[Tensor]:
        """Steps to take in each block, a scalar: none where all its rows are padding."""
        steps = tf.convert_to_tensor(self.steps)
        if isinstance(self.rows, int) or not self.pads_rows:
            return [steps] * self.blocks
        firsts = [block * self.block_rows for block in range(1, self.blocks)]
        return [steps, *(tf.where(self.rows > first, steps, 0) for first in firsts)]

    def cut(self, values: Any, timed: bool = False) -> list[Any]:
        """Values per block.

        Args:
            values: A tensor with the batch axis first, a tuple of them, or a scalar or None, which
                all blocks get.
            timed: Whether the second axis is time, to be filled up.
        """
        if isinstance(values, tuple):
            parts = zip(*(self.cut(value, timed) for value in values), strict=True)
            return [type(values)(*part) for part in parts]
        if values is None or values.shape.rank == 0:
            return [values] * self.blocks
        if self.pads_rows or (timed and self.pads_steps):
            values = self._pad(values, timed and self.pads_steps)
        if self.blocks == 1:
            return [values]
        if self.pads_rows or (isinstance(self.rows, int) and self.rows % self.blocks == 0):
            return list(tf.split(values, self.blocks))
        starts = [block * self.block_rows for block in range(self.blocks)]
        return [values[start : start + self.block_rows] for start in starts]

    def join(self, values: list[Tensor], timed: bool = False) -> Tensor:
        """The inverse of `cut`; of time, what was filled up may be gone already."""
        whole = values[0] if len(values) == 1 else tf.concat(values, 0)
        whole = whole[: self.rows] if self.pads_rows else whole
        known = [size if isinstance(size, int) else None for size in (self.rows, self.steps)]
        known = known[: 1 + timed]
        # Not tf.ensure_shape: tf.autodiff.ForwardAccumulator fails at its partly known shapes.
        whole.set_shape([*known, *whole.shape[len(known) :]])
        return whole

    def without_padded_steps(self, values: Any) -> Any:
        """Time-major values (capacity, …), one or several, as (T, …); None stays None."""
        if not self.pads_steps:
            return values
        return tf.nest.map_structure(lambda v: None if v is None else v[: self.steps], values)

    def _pad(self, values: Tensor, timed: bool) -> Tensor:
        missing = self.blocks * self.block_rows - self.rows if self.pads_rows else 0
        paddings = [[0, missing]]
        if timed:
            paddings.append([0, self.capacity - self.steps])
        paddings += [[0, 0]] * (values.shape.rank - len(paddings))
        return tf.pad(values, tf.stack(paddings))


def run_block(
    function: Callable[..., Any], tensors: tuple[Any, ...], *options: Any, jit_compile: bool
) -> Any:
    """`function(*tensors, *options)` as a function of its own, the same for all calls alike.

    A graph holds its body once, however many layers, directions and signatures call it. What XLA
    compiles is traced once for batches of all sizes.

    Args:
        function: What to run.
        tensors: Its tensors, in tuples or None.
        *options: Its other arguments.
        jit_compile: Whether XLA compiles it.
    """
    specs = tuple(
        tf.nest.map_structure(_spec if isinstance(part, Shared) or not jit_compile else _any, part)
        for part in tensors
    )
    leaves = [v for v in tf.nest.flatten(tensors) if v is not None]
    return _function(function, specs, options, jit_compile or None)(*leaves)


@functools.lru_cache(_FUNCTIONS_KEPT)
def _function(
    function: Callable[..., Any], specs: Any, options: Any, jit_compile: bool | None
) -> Any:
    # One per set of shapes: TensorFlow warns when one function is traced over and over.
    def run(*leaves: Tensor) -> Any:
        rest = iter(leaves)
        tensors = tf.nest.map_structure(lambda spec: None if spec is None else next(rest), specs)
        return function(*tensors, *options)

    run.__name__ = f"gru_{function.__name__.strip('_')}"  # `compilations` tells by it
    signature = [spec for spec in tf.nest.flatten(specs) if spec is not None]
    return tf.function(run, signature, jit_compile=jit_compile, autograph=False)


def _spec(value: Tensor | None) -> tf.TensorSpec | None:
    return None if value is None else tf.TensorSpec(value.shape, value.dtype)


def _any(value: Tensor | None) -> tf.TensorSpec | None:
    """For batches of any size: the last axis of all but masks is that of the units or features."""
    if value is None:
        return None
    rank = value.shape.rank
    known = () if value.dtype == tf.bool else value.shape[-1:]
    return tf.TensorSpec([None] * (rank - len(known)) + list(known), value.dtype)


def _bucket(size: Any, sizes: list[int]) -> Any:
    """The least of the sizes that holds `size`."""
    if isinstance(size, int):
        return sizes[bisect.bisect_left(sizes, size)]
    table = tf.constant(sizes)
    return table[tf.searchsorted(table, size[tf.newaxis])[0]]


def _padded_rows(rows: Tensor, block_rows: Tensor, units: int) -> Tensor:
    """Rows of a block to fill up to.

    A small batch is one block, always of the same size: the smaller last batch of an epoch then
    runs in the program of the others.
    """
    few = execution.rows_of_one_block(units)
    alone = tf.where(rows == 1, 1, few)
    return tf.where(rows <= few, alone, _bucket(block_rows, ROWS))


def _capacity(steps: Any, state: Any) -> Any:
    """Steps to fill up to, where the state of a block has so many elements."""
    capacity = _bucket(steps, STEPS)
    if isinstance(capacity, int) and isinstance(state, int):
        return max(capacity, SMALL_CAPACITY) if state <= SMALL_STATE else capacity
    return tf.where(state <= SMALL_STATE, tf.maximum(capacity, SMALL_CAPACITY), capacity)


def _is_one_of_many(steps: int, alike: Any) -> bool:
    """Whether sequences that run alike had several other lengths before."""
    exact = _exact_lengths.setdefault(alike, [])
    if steps not in exact and len(exact) < EXACT_LENGTHS:
        exact.append(steps)
    return steps not in exact
