"""Columns by name: what a forecaster makes of those of a caller."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gru_serving.engine.native.refusals import failed
from gru_serving.errors import InvalidArgument


class ColumnNames:
    """As `gru_training.forecasting.export.inputs.ColumnNames`, whose words the errors have.

    B rows, N names that a caller has, C columns of the model, K that it forecasts.

    Args:
        columns: The C names in the order of the model's `history`.
        targets: The K column numbers that are forecast.
        read: Numbers of the columns without which there is no forecast.
    """

    def __init__(self, columns: Sequence[str], targets: Sequence[int], read: Sequence[int]) -> None:
        self._columns, self._targets, self._read = tuple(columns), tuple(targets), sorted(read)
        self._numbers = {name.encode(): number for number, name in enumerate(columns)}

    def places(self, names: np.ndarray) -> dict[str, np.ndarray]:
        """What to send, for a caller that has columns of these names (B, N).

        Returns:
            `columns` (B, C), `place` (B, C) int32, `needed` (B, C) int32, and `forecast_columns`
            (B, K).
        """
        rows = len(names)
        needed = np.isin(np.arange(len(self._columns)), self._read).astype(np.int32)
        return {
            "columns": np.tile(self._encoded, (rows, 1)),
            "place": self._places(names)[0],
            "needed": np.tile(needed, (rows, 1)),
            "forecast_columns": np.tile(self._encoded[list(self._targets)], (rows, 1)),
        }

    def ordered(self, history: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The history (B, T, C) as the model reads it, of one (B, T, N) with these columns (B, N).

        Raises:
            InvalidArgument: The columns are not as many as those of the history, or one is there
                twice, or one is missing that is read.
        """
        width, named = history.shape[2], columns.shape[1]
        if width != named:
            raise failed(
                f"columns: expected a name for each of the {width} columns of history, got {named}"
            )
        if len(columns) != len(history):
            raise InvalidArgument(
                f"columns: expected {len(history)} rows, as history has, got {len(columns)}"
            )
        place, twice = self._places(columns)
        if twice is not None:
            raise failed(f"columns: expected each name once, got {self._columns[twice]} again")
        read = self._read
        if (place[:, read] < 0).any():
            row, column = np.argwhere(place[:, read] < 0)[0]
            expected = ", ".join(self._columns[number] for number in read)
            got = b", ".join(columns[row].tolist()).decode("utf-8", "replace")
            raise failed(
                f"columns: row {row} has no column {self._columns[read[column]]}; expected "
                f"{expected}, got {got}"
            )
        at = np.maximum(place, 0)[:, np.newaxis]
        picked = np.take_along_axis(history, at, axis=2)
        nan = np.asarray(np.nan, history.dtype)
        return np.where(place[:, np.newaxis] >= 0, picked, nan)

    @cached_property
    def _encoded(self) -> Any:
        encoded = np.empty(len(self._columns), object)
        encoded[:] = [name.encode() for name in self._columns]
        return encoded

    def _places(self, names: np.ndarray) -> tuple[Any, int | None]:
        """Where each column stands, (B, C) int32, -1 where it does not; one that is there twice."""
        place = np.full((len(names), len(self._columns)), -1, np.int32)
        twice: int | None = None
        for at, row in zip(place, names.tolist(), strict=True):
            repeated = []
            for position, name in enumerate(row):
                number = self._numbers.get(name)
                if number is None:
                    continue
                if at[number] >= 0:
                    repeated.append(number)
                else:
                    at[number] = position
            if repeated and twice is None:
                twice = min(repeated)
        return place, twice
