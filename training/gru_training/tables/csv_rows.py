"""The rows of CSV and TSV text: one reader for data to train on and for files to score."""

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gru_training.errors import DataError
from gru_training.tables.lines import LONGEST_LINE

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}

Misfit = Callable[[int, str], None]
"""Takes the line on which a row begins, and what is wrong with it."""


class Row(NamedTuple):
    """A row, and the line on which it begins."""

    line: int
    cells: list[str]


def csv_rows(
    path: Path, lines: Iterable[str], delimiter: str, misfit: Misfit | None = None
) -> Iterator[Row]:
    """Read the header, then the rows; blank lines are skipped.

    A cell may be put in double quotes and then hold the delimiter, line breaks and doubled quotes.

    Args:
        path: For messages.
        lines: Of the file, with their line breaks.
        delimiter: Between cells.
        misfit: Told of the rows that have more or fewer cells than the header, which are left out;
            by default they raise.

    Yields:
        The header as the first row, then rows with as many cells.

    Raises:
        DataError: There is no header, a quote has no end or, without `misfit`, a row does not fit
            the header; names the line.
    """
    # The default limit of a cell is 131,072 characters; a text may be longer.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1
    header: list[str] | None = None
    try:
        for cells in reader:
            if cells and header is None:
                header = _checked_header(path, line, cells, delimiter)
            if cells:
                wanted = len(header or ())
                if len(cells) == wanted:
                    yield Row(line, cells)
                else:
                    problem = f"expected {wanted} cells as in the header, got {len(cells)}"
                    if misfit is None:
                        raise DataError(f"{path}, line {line}: {problem}")
                    misfit(line, problem)
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: not well-formed ({error}); is a quote unbalanced?"
        ) from error
    if header is None:
        raise DataError(f"{path} is empty; expected a header line")


def _checked_header(path: Path, line: int, header: list[str], delimiter: str) -> list[str]:
    if len(header) == 1:
        found = [other for other in _DELIMITERS if other != delimiter and other in header[0]]
        if found:
            other = max(found, key=header[0].count)
            raise DataError(
                f"{path}, line {line}: expected columns separated by {_DELIMITERS[delimiter]}, got "
                f"{_DELIMITERS[other]}: {header[0]!r:.60}"
            )
    if len(set(header)) < len(header):
        raise DataError(f"{path}: two columns have the same name: {header}")
    return header
