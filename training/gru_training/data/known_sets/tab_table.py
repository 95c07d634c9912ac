"""Files whose records end only with a line feed, and in which quotes have no meaning.

Known data sets are in this form: MR and IMDB contain U+0085, which `splitlines` treats as a line
end.
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
