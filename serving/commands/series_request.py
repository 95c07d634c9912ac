"""The rows of a CSV as a served forecaster reads them: its columns, by their names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from serving.client import Client
from serving.client.series_columns import SeriesColumns, series_columns
from serving.commands.series_csv import Tick, known_ticks, open_csv, read_ticks, uneven_times


def model_columns(
    client: Client, arguments: argparse.Namespace, target: Any
) -> SeriesColumns | None:
    """The columns of the model; None where it does not name them, or `--columns` does."""
    return None if arguments.columns else series_columns(client, arguments.model, **target)


def model_ticks(
    client: Client, arguments: argparse.Namespace, target: Any
) -> tuple[Sequence[Tick], list[str]]:
    """All rows of `--csv`, and what to say of them.

    Raises:
        InvalidArgument: A column is missing; names it.
    """
    columns = model_columns(client, arguments, target)
    names = arguments.columns or (columns.names if columns else ())
    with open_csv(arguments.csv) as lines:
        optional = columns.optional if columns else ()
        ticks: Sequence[Tick] = list(read_ticks(lines, arguments.csv, names, optional))
    notes = []
    if columns is not None:
        places = [columns.names.index(name) for name in columns.forecast]
        ticks, left_out = known_ticks(ticks, places)
        notes += [left_out] if left_out else []
    uneven = uneven_times(ticks)
    return ticks, notes + ([uneven] if uneven else [])
