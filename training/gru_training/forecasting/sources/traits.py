"""Static covariates: what is known of each series of a panel whatever the time."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gru_training.data.long_form import ID_COLUMNS
from gru_training.data.problems import Problems
from gru_training.errors import ForeignDataError
from gru_training.tables.file_form import AS_FOUND, TextFormat
from gru_training.tables.numbers import MISSING, Numbers
from gru_training.tables.rows import cell_text, read_rows

_LEAST_OF_KIND = 2
"""Series that have a category, for it to be told from others."""
_MOST_KINDS = 30


class Traits(NamedTuple):
    """Of K series."""

    names: tuple[str, ...]
    """Of the columns of the file that vary."""
    values: np.ndarray
    """(K, S) float64 about 0: numbers standardised, and 1 and 0 for each category, centred."""
    absent: tuple[str, ...]
    """Series without a row, which count as average ones."""


def read_traits(
    path: Path, id_column: str | None, ids: Sequence[str], given: TextFormat = AS_FOUND
) -> Traits:
    """Read a table with a row for each series.

    A column of numbers is standardised over the series; any other has categories, of which those of
    two series or more count, at most the 30 that most series have.

    Args:
        path: The file.
        id_column: With the names of the series; by default found as in the table of the series.
        ids: The K series.
        given: How the text is written, where that is known.

    Raises:
        ForeignDataError: There is no column with the names of the series, or nothing else.
        DataError: The file cannot be read, or has a series twice; names the line.
    """
    problems = Problems(str(path))
    rows: dict[str, dict[str, str]] = {}
    table = read_rows(path, given, problems.bad_row)
    problems.unit = table.form.unit
    header, read = table.with_columns()
    known = {each.strip().lower(): each for each in header}
    name = id_column or next((known[each] for each in ID_COLUMNS if each in known), None)
    if name is None or name not in header or len(header) < 2:
        raise ForeignDataError(
            f"--static: {path}: expected a column with the names of the series "
            f"({id_column or 'unique_id; see --id-column'}) and others; its columns are "
            f"{', '.join(header)}"
        )
    for place, row in read:
        cells = {key: (cell_text(row.get(key)) or "").strip() for key in header}
        if cells[name] in rows:
            message = f"expected each series once, got {cells[name]!r} again"
            problems.bad_row("repeated", place, message, name)
        rows.setdefault(cells[name], cells)
    problems.close_rows()
    problems.raise_errors()
    columns = [column for column in header if column != name] if rows else []
    found = [
        (column, _encoded([rows.get(of, {}).get(column, "") for of in ids], table.form.separator))
        for column in columns
    ]
    used = [(column, values) for column, values in found if values.shape[1]]
    values = np.column_stack([np.empty((len(ids), 0)), *(values for _, values in used)])
    return Traits(
        tuple(column for column, _ in used), values, tuple(of for of in ids if of not in rows)
    )


def _encoded(cells: Sequence[str], separator: str) -> np.ndarray:
    """(K, S) of the cells of a column, about 0; without any S where it does not vary."""
    missing = np.array([cell.lower() in MISSING for cell in cells])
    numbers_of = Numbers(separator)
    try:
        numbers = np.array([numbers_of.read(cell) for cell in cells])
    except ValueError:
        kinds = Counter(cell for cell, gone in zip(cells, missing, strict=True) if not gone)
        told = [kind for kind, count in kinds.most_common(_MOST_KINDS) if count >= _LEAST_OF_KIND]
        made = np.array([[float(cell == kind) for kind in told] for cell in cells])
        made = made.reshape(len(cells), len(told))
        return np.asarray(np.where(missing[:, np.newaxis], 0.0, made - made[~missing].mean(axis=0)))
    if not np.isfinite(numbers).any() or np.nanstd(numbers) == 0:
        return np.empty((len(cells), 0))
    standardised = (numbers - np.nanmean(numbers)) / np.nanstd(numbers)
    return np.asarray(np.nan_to_num(standardised)[:, np.newaxis])
