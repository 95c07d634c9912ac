"""What turned out to be true, from a table of texts and labels."""

from __future__ import annotations

from pathlib import Path

from serving.errors import InvalidArgument


def read_outcomes(path: Path) -> dict[str, str]:
    """The label of each text; rows without a label are left out, the last one of a text counts.

    Args:
        path: A .csv, .tsv, .jsonl (also .gz) or .parquet file with a column of texts and one of
            labels, under their usual names.

    Raises:
        InvalidArgument: The file cannot be read, or a column is missing.
    """
    from training.errors import TrainingError
    from training.tables.table_file import open_table
    from training.tables.text_columns import LABEL_COLUMNS, TEXT_COLUMNS, column_called

    try:
        table = open_table(path)
        names = table.schema.names
        text, label = (column_called(usual, names) for usual in (TEXT_COLUMNS, LABEL_COLUMNS))
        for column, usual in ((text, TEXT_COLUMNS), (label, LABEL_COLUMNS)):
            if column is None:
                raise InvalidArgument(
                    f"{path}: expected a column called {' or '.join(usual)}, got {', '.join(names)}"
                )
        found: dict[str, str] = {}
        for piece in table.pieces([str(text), str(label)]):
            for of, true in zip(*(column.to_pylist() for column in piece.columns), strict=True):
                if of is not None and true not in (None, ""):
                    found[str(of)] = str(true)
        return found
    except TrainingError as error:
        raise InvalidArgument(str(error)) from error
