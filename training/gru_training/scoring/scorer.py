"""The interface of a model that scores the rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class BatchLimits:
    """Limits of one request to a model."""

    steps: int = 1 << 15
    """Most steps of a batch: its rows times the steps of its longest row, with padding."""
    rows: int = 1024
    """Most rows of a batch, however short they are."""
    in_flight: int = 1
    """Number of batches that may be requested at the same time, by one thread each."""


class Reading(Protocol):
    """N rows in the form that a model reads."""

    @property
    def lengths(self) -> np.ndarray:
        """The number of steps of each row, (N,) int64; rows of similar length share a batch."""

    def answer(self, rows: np.ndarray) -> "pa.RecordBatch":
        """Answer some of the rows, in the requested order.

        Args:
            rows: (B,) numbers of rows of similar length.

        Returns:
            B rows with the columns of `Scorer.answers`.
        """


class Scorer(Protocol):
    """A model that scores rows; the answer to a row does not depend on other rows."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that `read` takes."""

    @property
    def answers(self) -> "pa.Schema":
        """The columns of the answers."""

    @property
    def limits(self) -> BatchLimits:
        """The batch sizes that the model answers fastest."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Facts that distinguish the model from every other.

        Scoring continues only with the same.
        """

    def read(self, rows: "pa.RecordBatch") -> Reading:
        """Read rows, preferably in the background: the next rows are read while these are answered.

        Args:
            rows: N rows with the columns of `inputs`.

        Raises:
            RowError: A row cannot be read.
        """


class RowError(Exception):
    """A row that a model cannot read.

    Args:
        row: Number of the row, from 0.
        column: Name that the model has for the column.
        message: Expected and received value, in words.
    """

    def __init__(self, row: int, column: str, message: str):
        super().__init__(row, column, message)
        self.row, self.column, self.message = row, column, message

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column!r}: {self.message}"
