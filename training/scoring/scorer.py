"""What a model gives so that its answers to a table's rows can be asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class BatchLimits:
    """How much is asked for at once."""

    steps: int = 1 << 15
    """Most steps of a batch: its rows times those of its longest row, padding counted."""
    rows: int = 1024
    """Most rows of a batch, however short they are."""
    in_flight: int = 1
    """Batches that may be asked for at the same time, by a thread each."""


class Reading(Protocol):
    """N rows as a model reads them."""

    @property
    def lengths(self) -> np.ndarray:
        """How many steps each row has, (N,) int64; rows of like length share a batch."""

    def answer(self, rows: np.ndarray) -> "pa.RecordBatch":
        """The answers to some of the rows, in the order asked for.

        Args:
            rows: (B,) numbers of rows, of like length.

        Returns:
            B rows with the columns of `Scorer.answers`.
        """


class Scorer(Protocol):
    """A model that answers rows. What it answers to a row does not depend on the other rows."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that `read` takes."""

    @property
    def answers(self) -> "pa.Schema":
        """The columns of its answers."""

    @property
    def limits(self) -> BatchLimits:
        """The batches that it answers fastest."""

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells the model from every other one: only with the same does a scoring go on."""

    def read(self, rows: "pa.RecordBatch") -> Reading:
        """Read rows, best in the background: the next rows are read before these are answered.

        Args:
            rows: N rows with the columns of `inputs`.

        Raises:
            RowError: A row cannot be read.
        """


class RowError(Exception):
    """A row that a model cannot read.

    Args:
        row: Its number, from 0.
        column: By the model's name of it.
        message: What was expected and what came.
    """

    def __init__(self, row: int, column: str, message: str):
        super().__init__(row, column, message)
        self.row, self.column, self.message = row, column, message

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column!r}: {self.message}"
