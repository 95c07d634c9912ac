"""The measurements: shapes, their tables, and the data that all contenders get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MEASURES = {
    "layer": "the layer alone: training and inference, beside Keras, PyTorch and Flax",
    "bidirectional": "training in both directions",
    "masks": "rows of unequal length, masked at their ends",
    "steps": "whole training steps of a small classifier: fit, and a loop with a GradientTape",
    "streaming": "one step per call, and chunks of 16 steps",
    "one-step": "one step per call of a cell, from 1 row of 64 units to 64 of 512",
    "launch": "a call that adds one: the overhead of a framework before any layer runs",
    "memory": "peak memory of a training step",
}
# Tables that include PyTorch and Flax.
RIVALLED = ("layer", "launch")
SECOND_GRID = 10
# Drawn again because three shapes of seed 2026 had been used to choose `execution.SMALL_WORK`.
_SEED = 2027
# Of B·T·3U(D + U): half of the largest shape of the main grid.
_MOST_WORK = 2_000_000_000


class Shape(NamedTuple):
    """Sizes of one cell of a grid."""

    batch: int
    steps: int
    features: int
    units: int

    def __str__(self) -> str:
        return ",".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Shape:
        """The inverse of `str`."""
        try:
            batch, steps, features, units = (int(size) for size in text.split(","))
        except ValueError:
            raise ValueError(f"a shape is four integers B,T,D,U. Received: {text!r}") from None
        shape = cls(batch, steps, features, units)
        if min(shape) < 1:
            raise ValueError(f"sizes of a shape must be at least 1. Received: {text!r}")
        return shape

    def work(self) -> int:
        """Multiplications in the matrix products of the forward pass."""
        return self.batch * self.steps * 3 * self.units * (self.features + self.units)

    def flop(self, measure: str) -> int:
        """Floating-point operations in matrix products; the backward pass has twice as many."""
        return 2 * self.work() * (3 if measure == "training" else 1)


@dataclass(frozen=True)
class Contest:
    """One shape in one table."""

    table: str
    """A key of `MEASURES`."""

    shape: Shape

    grid: str = ""
    """The grid it comes from: `"main"`, `"second"` or `"own"`."""

    masked: bool = False
    """Whether a classifier's rows are of unequal length."""

    def __str__(self) -> str:
        return f"{self.table} {self.shape}" + (" masked" if self.masked else "")

    def inputs(self) -> Array:
        """Sequences (B, T, D), float32."""
        batch, steps, features, _ = self.shape
        return self._draw(0).standard_normal((batch, steps, features)).astype("float32")

    def weights(self, direction: int = 0) -> tuple[Array, Array, Array]:
        """Kernel (D, 3U), recurrent kernel (U, 3U) and bias (2, 3U), in the layout of Keras."""
        _, _, features, units = self.shape
        draw = self._draw(1 + direction)
        kernel = draw.standard_normal((features, 3 * units)) / np.sqrt(features)
        recurrent_kernel = draw.standard_normal((units, 3 * units)) / np.sqrt(units)
        bias = draw.standard_normal((2, 3 * units)) / 10
        return tuple(v.astype("float32") for v in (kernel, recurrent_kernel, bias))  # type: ignore[return-value]

    def lengths(self, rows: int) -> Array:
        """Row lengths, uniform between 1 and T."""
        return self._draw(9).integers(1, self.shape.steps, rows, endpoint=True)

    def _draw(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([*self.shape, stream])


MAIN = tuple(
    Shape(*sizes)
    for sizes in (
        (1, 100, 64, 128),
        (32, 100, 64, 128),
        (64, 200, 128, 256),
        (256, 24, 7, 64),
        (32, 400, 128, 64),
        (128, 15, 512, 512),
        (16, 1000, 16, 32),
    )
)
QUICK = (MAIN[0], MAIN[1])
FEW = MAIN[:4]
ONE_STEP = tuple(
    Shape(rows, 1, units, units) for units in (64, 128, 256, 512) for rows in (1, 8, 64)
)
STREAMING = (Shape(1, 16, 64, 128), Shape(32, 16, 128, 256))


def second_grid() -> tuple[Shape, ...]:
    """Shapes on which no part of the layer was tuned, log-uniform in every size.

    A Latin hypercube: every size visits every tenth of its range. Drawn again while a shape has
    too much work.
    """
    draw = np.random.default_rng(_SEED)
    low, high = np.log([1, 8, 16, 16]), np.log([256, 1000, 512, 512])
    while True:
        tenths = draw.permuted(np.tile(np.arange(SECOND_GRID), (4, 1)), axis=1).T
        share = (tenths + draw.uniform(size=tenths.shape)) / SECOND_GRID
        sizes = np.exp(low + share * (high - low)).round().astype(int)
        shapes = tuple(Shape(*map(int, row)) for row in sizes)
        if max(shape.work() for shape in shapes) <= _MOST_WORK:
            return shapes


def contests(
    tables: list[str], grid: str = "all", own: list[Shape] | None = None, quick: bool = False
) -> list[Contest]:
    """List the measurements of a run, in order.

    Args:
        tables: Tables to measure, keys of `MEASURES`.
        grid: Name of the grid: `"main"`, `"second"` or `"all"`.
        own: Shapes to measure in every table in place of both grids.
        quick: Whether to measure only a few shapes.
    """
    main = QUICK if quick else MAIN
    grids = {"main": main, "second": () if quick else second_grid()}
    if grid != "all":
        grids = {grid: second_grid()[:3] if quick and grid == "second" else grids[grid]}
    few: tuple[Shape, ...] = main[1:2] if quick else FEW
    streaming: tuple[Shape, ...] = STREAMING[: 1 if quick else None]
    one_step: tuple[Shape, ...] = ONE_STEP[: 1 if quick else None]
    memory: tuple[Shape, ...] = main
    if own:
        grids, few, streaming, memory = {"own": tuple(own)}, tuple(own), tuple(own), tuple(own)
        one_step = tuple(own)
    shapes = {
        "bidirectional": few,
        "masks": few[1:] or few,
        "steps": few[1:2] or few,
        "streaming": streaming,
        "one-step": one_step,
        "launch": tuple(own or main[:1]),
        "memory": memory,
    }
    if own:
        shapes.update(masks=few, steps=few)
    found = []
    for table in MEASURES:
        if table not in tables:
            continue
        if table == "layer":
            found += [Contest(table, shape, name) for name in grids for shape in grids[name]]
        else:
            masked = (False, True) if table == "steps" and not quick else (False,)
            found += [Contest(table, shape, masked=m) for shape in shapes[table] for m in masked]
    return found
