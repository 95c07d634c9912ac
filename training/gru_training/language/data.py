"""Documents, split into those to train, to validate and to test on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from gru_training.data.check import DataCheck, DataTable
from gru_training.data.digest import data_digest
from gru_training.data.known_sets import imdb_test, imdb_unlabelled
from gru_training.data.problems import DataProblemsError, counted
from gru_training.data.text_files import find_column
from gru_training.errors import DataError, ForeignDataError
from gru_training.language.config import LanguageConfig, LanguageDataConfig
from gru_training.tables.file_form import read_text
from gru_training.tables.rows import cell_text, read_rows
from gru_training.tables.text_columns import TEXT_COLUMNS, column_called, own_column

BUILT_IN_CORPUS = "python-help"
"""Name of the documents that come with Python."""
_TEXT = (".txt", ".txt.gz", ".txt.zst")
_IMDB = ("imdb_unsup.tsv.gz", "imdb_train.tsv.gz", "imdb_test.tsv.gz")


def built_in_documents() -> list[str]:
    """Return the texts of `help()` on Python's syntax and built-in types, one document each.

    They are about 500 kB of English with code, `pydoc_data.topics` of the running Python; they
    differ slightly between versions.
    """
    from pydoc_data.topics import topics

    return [topics[name] for name in sorted(topics)]


def is_imdb(path: Path) -> bool:
    """Tell whether a folder holds IMDB's reviews."""
    return path.is_dir() and all((path / name).is_file() for name in _IMDB)


def read_documents(
    path: Path,
    config: LanguageDataConfig,
    notes: list[str],
    columns: dict[str, str] | None = None,
) -> list[str]:
    """Read the documents of a file or folder, without empty ones.

    Args:
        path: File or folder, as for `--data`.
        config: The column of tables, and what a document is.
        notes: List that receives notes for a reader.
        columns: Column of the first table by input, preferred in further ones; set where empty.

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
        for text in _documents_of(file, config, notes, {} if columns is None else columns):
            if text.strip():
                documents.append(text)
            else:
                empty += 1
    if empty:
        notes.append(f"{path}: {counted(empty, 'empty document')} left out")
    if not documents:
        raise DataError(f"{path}: expected texts, got none")
    return documents


def _documents_of(
    path: Path, config: LanguageDataConfig, notes: list[str], like: dict[str, str]
) -> Iterator[str]:
    if path.name.endswith(_TEXT):
        text, said = read_text(path, config.encoding)
        if said:
            notes.append(f"{path}: {said}")
        yield from [text] if config.document == "file" else text.removesuffix("\n").split("\n")
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
            f"{table.form.named(path)}: expected a folder, or a file name ending in .txt, or a "
            f"table with a column of texts (see --text-column), got the column "
            f"{columns[0]!r:.40} alone"
        )
    if columns:
        wanted = config.text_column or own_column(like, "text", columns)
        column = find_column(table.form.named(path), columns, wanted, TEXT_COLUMNS, "text")
        like.setdefault("text", column)
        for _, cells in rows:
            yield cell_text(cells.get(column)) or ""


_MIN_DOCUMENTS = 20
"""Number of documents below which each is cut into three parts, rather than assigned to one."""


@dataclass(frozen=True)
class LanguageData:
    """Documents ready for training."""

    name: str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Notes for a reader of the report."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column of the texts in tables, by input."""

    def parts(self) -> dict[str, tuple[str, ...]]:
        """Return the documents by part: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def contents(self) -> Iterator[str | np.ndarray]:
        """Yield the contents for a digest."""
        for part, documents in self.parts().items():
            yield part
            yield from documents


def load_language_data(config: LanguageDataConfig, seed: int) -> LanguageData:
    """Read the documents, and split them unless files for all parts are given.

    Copies of held-out documents are removed from the training part.

    Args:
        config: Settings of the documents and of their split.
        seed: Seed of the training; also of the split, where the settings name no other for it.

    Raises:
        DataError: The source cannot be used; the message says why.
    """
    notes, columns = list[str](), dict[str, str]()
    test: Sequence[str] | None = None
    if config.data is None:
        name, documents = BUILT_IN_CORPUS, built_in_documents()
    elif is_imdb(config.data):
        name = "imdb"
        documents = imdb_unlabelled(config.data)  # none of which is a test review
        test = imdb_test(config.data) if config.test is None else None
    else:
        name = config.data.resolve().name.split(".")[0]
        documents = read_documents(config.data, config, notes, columns)
    for path in config.more_data:
        documents += read_documents(path, config, notes, columns)
    validation: Sequence[str] | None = None
    if config.validation is not None:
        validation = read_documents(config.validation, config, notes, columns)
    if config.test is not None:
        test = read_documents(config.test, config, notes, columns)
    rng = np.random.default_rng(config.drawn_with(seed))
    drawn = [part for part, given in (("validation", validation), ("test", test)) if given is None]
    if drawn and len(documents) >= _MIN_DOCUMENTS:
        documents = _distinct(documents, notes)
    shares = {"validation": config.validation_fraction, "test": config.test_fraction}
    parts = _deal(documents, {part: shares[part] for part in drawn}, rng)
    validation = parts["validation"] if validation is None else validation
    test = parts["test"] if test is None else test
    found = {"train": parts["train"], "validation": validation, "test": test}
    given = {part: rows for part, rows in found.items() if part not in ("train", *drawn)}
    _note_copies(documents, given, notes)
    for part, rows in found.items():
        if not rows:
            told = "".join(f" ({note})" for note in notes)
            fewer = len(documents) < _MIN_DOCUMENTS and part in ("train", *drawn)
            cut = f", as each of fewer than {_MIN_DOCUMENTS} is cut, and these are too short"
            raise DataError(
                f"{config.data or name}: expected at least one document for {part}, got none"
                f"{cut * fewer}{told}; give more texts, or files with --validation and --test"
            )
    return LanguageData(
        name, tuple(parts["train"]), tuple(validation), tuple(test), tuple(notes), columns
    )


def _distinct(documents: Sequence[str], notes: list[str]) -> list[str]:
    """Return the documents without copies, which could end up in two parts."""
    kept = list(dict.fromkeys(documents))
    copies = len(documents) - len(kept)
    if copies:
        notes.append(f"{counted(copies, 'document')} left out that another one repeats")
    return kept


def _note_copies(
    learned: Sequence[str], held_out: dict[str, Sequence[str]], notes: list[str]
) -> None:
    """Note which documents of given parts are also among those to learn from."""
    found = set(learned)
    for part, documents in held_out.items():
        copies = sum(document in found for document in documents)
        if copies:
            notes.append(f"{counted(copies, 'document')} of {part} found in train, too")


def _deal(
    documents: list[str], shares: dict[str, float], rng: np.random.Generator
) -> dict[str, list[str]]:
    """Draw the documents of train and of the missing parts, with these shares."""
    parts: dict[str, list[str]] = {"train": [], **{part: [] for part in shares}}
    if len(documents) < _MIN_DOCUMENTS:
        for document in documents:
            for part, text in _cut(document, shares).items():
                if text.strip():
                    parts[part].append(text)
        return parts
    order = rng.permutation(len(documents))
    for part, share in shares.items():
        count = max(1, round(share * len(documents)))
        parts[part] = [documents[number] for number in order[:count]]
        order = order[count:]
    parts["train"] = [documents[number] for number in np.sort(order)]
    return parts


def _cut(document: str, shares: dict[str, float]) -> dict[str, str]:
    """Cut a document at blanks: its beginning for train, followed by the other parts."""
    begin = 0
    pieces = {}
    ends = {"train": 1 - sum(shares.values()), **shares}
    reached = 0.0
    for number, (part, share) in enumerate(ends.items(), start=1):
        reached += share
        end = len(document)
        if number < len(ends):
            end = _next_blank(document, max(begin, round(reached * len(document))))
        pieces[part], begin = document[begin:end], end
    return pieces


def _next_blank(text: str, place: int) -> int:
    """Find the first position from here on after a blank; the end if there is none."""
    for end in range(place, len(text)):
        if end and text[end - 1].isspace():
            return end
    return len(text)


def source_of(config: LanguageDataConfig) -> Path | str:
    """Return the name of the data in messages and names of runs."""
    return config.data or BUILT_IN_CORPUS


def check_language(config: LanguageConfig) -> DataCheck:
    """Read and split the documents of a training.

    Raises:
        ForeignDataError: A table has no column of texts.
    """
    source = str(source_of(config.data))
    data: LanguageData | None = None
    errors: tuple[str, ...] = ()
    try:
        data = load_language_data(config.data, config.training.seed)
    except ForeignDataError:
        raise
    except DataProblemsError as error:
        errors = error.messages
    except DataError as error:
        errors = (str(error),)
    if data is None:
        return DataCheck(source, "cannot be used as it is", None, errors, (), (), None)
    notes = data.notes
    if config.data.data is None:
        notes = (*notes, f"texts of {source}: SHA-256 {data_digest(data.contents())[:16]}")
    return DataCheck(source, _summary(data), partial(_table, data), (), (), notes, data)


def _summary(data: LanguageData) -> str:
    counts = ", ".join(f"{len(rows):,} {part}" for part, rows in data.parts().items())
    letters = sum(len(text) for rows in data.parts().values() for text in rows)
    return f"{letters:,} characters; documents: {counts}"


def _table(data: LanguageData) -> DataTable:
    """List each part with its documents, characters and words."""
    rows = []
    for part, documents in data.parts().items():
        lengths = [len(text) for text in documents]
        words = sum(len(text.split()) for text in documents)
        cells = len(documents), sum(lengths), words, max(lengths)
        rows.append((part, *(f"{cell:,}" for cell in cells)))
    return DataTable(("part", "documents", "characters", "words", "longest"), rows)
