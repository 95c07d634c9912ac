"""The true classes or labels of texts, from a table of texts and labels."""

import json
from pathlib import Path
from typing import Any

from gru_serving.errors import InvalidArgument


def read_outcomes(path: Path, separator: str | None = None) -> dict[str, frozenset[str]]:
    """Read the labels of each text.

    Rows without a label are left out, and the last row of a text counts.

    Several labels of a text stand in one cell as a list.

    Args:
        path: A table, such as a CSV file, with a column of texts and one of labels, under their
            usual names.
        separator: Character between several labels in a cell that is no list.

    Raises:
        InvalidArgument: The file cannot be read, or a column is missing.
    """
    from gru_training.errors import TrainingError
    from gru_training.tables.table_file import open_table
    from gru_training.tables.text_columns import LABEL_COLUMNS, TEXT_COLUMNS, column_called

    try:
        table = open_table(path)
        names = table.schema.names
        text, label = (column_called(usual, names) for usual in (TEXT_COLUMNS, LABEL_COLUMNS))
        for column, usual in ((text, TEXT_COLUMNS), (label, LABEL_COLUMNS)):
            if column is None:
                raise InvalidArgument(
                    f"{path}: expected a column called {' or '.join(usual)}, got {', '.join(names)}"
                )
        found: dict[str, frozenset[str]] = {}
        for piece in table.pieces([str(text), str(label)]):
            for of, true in zip(*(column.to_pylist() for column in piece.columns), strict=True):
                if of is not None and true not in (None, ""):
                    found[str(of)] = _names(true, separator)
        return found
    except TrainingError as error:
        raise InvalidArgument(str(error)) from error


def _names(cell: Any, separator: str | None) -> frozenset[str]:
    if isinstance(cell, list):
        return frozenset(map(str, cell))
    text = str(cell)
    try:
        listed = json.loads(text) if text.startswith("[") else None
    except ValueError:
        listed = None
    if isinstance(listed, list):
        return frozenset(map(str, listed))
    parts = [text] if separator is None else text.split(separator)
    return frozenset(name for part in parts if (name := part.strip()))
