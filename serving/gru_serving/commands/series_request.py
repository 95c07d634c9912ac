"""The rows of a CSV as a served forecaster reads them: its columns, by their names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gru_serving.client import Client
from gru_serving.client.series_columns import SeriesColumns, series_columns
from gru_serving.commands.files.series_csv import (
    Tick,
    Ticks,
    known_ticks,
    text_format,
    uneven_times,
)
from gru_serving.errors import InvalidArgument


def model_columns(
    client: Client, arguments: argparse.Namespace, target: Any
) -> SeriesColumns | None:
    """The columns of the model; None where it does not name them, or `--columns` does."""
    return None if arguments.columns else series_columns(client, arguments.model, **target)


class SeriesRows(NamedTuple):
    """The rows of a CSV.

    Attributes:
        ticks: Those to forecast from.
        ahead: Those after them that have no value to forecast, but known inputs.
        columns: Of the model; None where it does not name them.
        notes: What to say of the rows.
    """

    ticks: Sequence[Tick]
    ahead: Sequence[Tick]
    columns: SeriesColumns | None
    notes: list[str]

    def future(self, name: str) -> npt.NDArray[np.float32]:
        """(1, H, F), the input `future` of the model; NaN after the last known row.

        Args:
            name: Of the file, for messages.

        Raises:
            InvalidArgument: No row has known inputs.
        """
        columns = self.columns
        if columns is None or not columns.future:
            raise InvalidArgument(
                f"{name}: the model reads known inputs, `future`; send them with --json FILE"
            )
        if not self.ahead:
            raise InvalidArgument(
                f"{name}: the model reads {', '.join(columns.future)} of the steps that it "
                f"forecasts; expected {columns.horizon} rows after {self.ticks[-1].label} with "
                f"these and no value of {', '.join(columns.forecast)}; got none"
            )
        places = [columns.names.index(column) for column in columns.future]
        found = np.full((1, columns.horizon, len(places)), np.nan, np.float32)
        for step, tick in enumerate(self.ahead[: columns.horizon]):
            found[0, step] = tick.values[places]
        return found

    def timestamp(self) -> npt.NDArray[np.object_]:
        """(1,), the input `timestamp` of the model: the time of the last row, as it stands."""
        return np.array([self.ticks[-1].label.strip().encode()], object)


def model_ticks(client: Client, arguments: argparse.Namespace, target: Any) -> SeriesRows:
    """All rows of `--csv`, and what to say of them.

    Raises:
        InvalidArgument: A column is missing; names it.
    """
    columns = model_columns(client, arguments, target)
    names = arguments.columns or (columns.names if columns else ())
    optional = columns.optional if columns else ()
    read = Ticks(arguments.csv, names, optional, text_format(arguments))
    ticks: Sequence[Tick] = list(read)
    uneven = uneven_times(ticks)
    notes, ahead = [*read.notes(), *([uneven] if uneven else [])], list[Tick]()
    if columns is not None:
        places = [columns.names.index(name) for name in columns.forecast]
        every, (ticks, left_out) = ticks, known_ticks(ticks, places)
        if columns.future:
            known = [columns.names.index(name) for name in columns.future]
            ahead = list(every[len(ticks) :])
            while ahead and np.isnan(ahead[-1].values[known]).all():
                ahead.pop()
            left_out = _short(ahead, columns)
        notes += [left_out] if left_out else []
    return SeriesRows(ticks, ahead, columns, notes)


def _short(ahead: Sequence[Tick], columns: SeriesColumns) -> str | None:
    """What to say where known inputs are known of some of the steps only."""
    if not 0 < len(ahead) < columns.horizon:
        return None
    return (
        f"{', '.join(columns.future)} are known of {len(ahead)} of the {columns.horizon} steps "
        f"that the model forecasts; those after {ahead[-1].label} are forecast as if "
        "nothing changed"
    )
