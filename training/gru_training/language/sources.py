"""Documents from files, folders and tables, and those that come with Python."""

from collections.abc import Iterator
from pathlib import Path

from gru_training.data.known_sets.imdb import imdb_test, imdb_unlabelled
from gru_training.data.problems import counted
from gru_training.data.text_files import find_column
from gru_training.errors import DataError, ForeignDataError
from gru_training.language.config import LanguageDataConfig
from gru_training.tables.file_form import read_text
from gru_training.tables.rows import cell_text, read_rows
from gru_training.tables.text_columns import TEXT_COLUMNS, column_called

BUILT_IN = "python-help"
"""What the documents are called that come with Python."""
_TEXT = (".txt", ".txt.gz", ".txt.zst")
_IMDB = ("imdb_unsup.tsv.gz", "imdb_train.tsv.gz", "imdb_test.tsv.gz")


def built_in_documents() -> list[str]:
    """The texts that `help()` shows on Python's syntax and built-in types, one document each.

    About 500 kB of English with code in it, `pydoc_data.topics` of the running Python; each version
    of Python has slightly others.
    """
    from pydoc_data.topics import topics

    return [topics[name] for name in sorted(topics)]


def is_imdb(path: Path) -> bool:
    """Whether a folder holds IMDB's reviews."""
    return path.is_dir() and all((path / name).is_file() for name in _IMDB)


def read_imdb(folder: Path) -> tuple[list[str], list[str]]:
    """IMDB's training and unlabelled reviews, none of which is a test review; and those.

    Raises:
        DataError: A file is unreadable or malformed.
    """
    return imdb_unlabelled(folder), imdb_test(folder)


def read_documents(path: Path, config: LanguageDataConfig, notes: list[str]) -> list[str]:
    """The documents of a file or folder, without empty ones.

    Args:
        path: As of `--data`.
        config: The column of tables, and what a document is.
        notes: Gets what a reader should know.

    Raises:
        ForeignDataError: A table has no column of texts.
        DataError: There is nothing that can be read; names the file.
    """
    if path.is_dir():
        files = [each for each in sorted(path.rglob("*")) if each.name.endswith(_TEXT)]
        if not files:
            raise DataError(f"{path}: expected .txt files, or IMDB's {', '.join(_IMDB)}; got none")
    else:
        files = [path]
    documents: list[str] = []
    empty = 0
    for file in files:
        for text in _documents_of(file, config, notes):
            if text.strip():
                documents.append(text)
            else:
                empty += 1
    if empty:
        notes.append(f"{path}: {counted(empty, 'empty document')} left out")
    if not documents:
        raise DataError(f"{path}: expected texts, got none")
    return documents


def _documents_of(path: Path, config: LanguageDataConfig, notes: list[str]) -> Iterator[str]:
    if path.name.endswith(_TEXT):
        text, said = read_text(path, config.encoding)
        if said:
            notes.append(f"{path}: {said}")
        yield from [text] if config.document == "file" else _lines(text)
        return
    table = read_rows(path, config.text_format, bounded=True)
    notes += [f"{path}: {note}" for note in table.form.notes]
    columns, rows = table.with_columns()
    if (
        len(columns) == 1
        and config.text_column is None
        and not column_called(TEXT_COLUMNS, columns)
    ):
        raise ForeignDataError(
            f"{path}: expected a folder, or a file name ending in .txt, or a table with a column "
            f"of texts (see --text-column), got the column {columns[0]!r:.40} alone"
        )
    if columns:
        column = find_column(path, columns, config.text_column, TEXT_COLUMNS, "text")
        for _, cells in rows:
            yield cell_text(cells.get(column)) or ""


def _lines(text: str) -> Iterator[str]:
    yield from text.removesuffix("\n").split("\n")
