"""Files of public data sets, with tabs between their cells.

Their records end with a line feed only, and quotes have no meaning in them: MR and
IMDB (Maas et al. 2011) contain U+0085, which `splitlines` treats as a line end.
"""

from collections.abc import Sequence
from pathlib import Path

from gru_training.errors import DataError
from gru_training.tables.content import read_bytes


def tab_table(path: Path, header: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Read the rows of a file with tabs between its cells: line numbers, and cells by column.

    Args:
        path: The file, gzipped or not.
        header: The columns that it must have.

    Raises:
        DataError: The file cannot be read, or a line is not as expected; names it.
    """
    lines = text_lines(path)
    if not lines or lines[0][1].split("\t") != list(header):
        raise DataError(f"{path}: expected the header {' '.join(header)} separated by tabs")
    rows = []
    for line, record in lines[1:]:
        cells = record.split("\t")
        if len(cells) != len(header):
            raise DataError(f"{path}, line {line}: expected {len(header)} cells, got {len(cells)}")
        rows.append((line, dict(zip(header, cells, strict=True))))
    return rows


def text_lines(path: Path, encoding: str = "utf-8") -> list[tuple[int, str]]:
    """Read line numbers and records without surrounding blanks; every record must contain text.

    Raises:
        DataError: The file cannot be read, or a line is not as expected; names it.
    """
    content = read_bytes(path)
    try:
        records = content.decode(encoding).removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected {encoding} text ({error})") from error
    lines = [(number, record.strip(" \r")) for number, record in enumerate(records, start=1)]
    for number, record in lines:
        if not record.strip():
            raise DataError(f"{path}, line {number}: the text is empty")
        if "\0" in record:
            raise DataError(f"{path}, line {number}: a NUL character")
    return lines


IMDB_HEADER = ("id", "label", "rating", "movie", "text")
"""Columns of the labelled parts, `imdb_train.tsv.gz` and `imdb_test.tsv.gz`."""
_UNLABELLED_HEADER = ("id", "movie", "text")


def imdb_unlabelled(folder: Path) -> list[str]:
    """Read the texts of IMDB's unlabelled and training reviews, without those of its test reviews.

    Raises:
        DataError: The files are not there, unreadable or malformed.
    """
    unlabelled = tab_table(folder / "imdb_unsup.tsv.gz", _UNLABELLED_HEADER)
    train = tab_table(folder / "imdb_train.tsv.gz", IMDB_HEADER)
    tested = set(imdb_test(folder))
    return [cells["text"] for _, cells in (*unlabelled, *train) if cells["text"] not in tested]


def imdb_test(folder: Path) -> list[str]:
    """Read the texts of IMDB's test reviews.

    Raises:
        DataError: The file is not there, unreadable or malformed.
    """
    return [cells["text"] for _, cells in tab_table(folder / "imdb_test.tsv.gz", IMDB_HEADER)]
