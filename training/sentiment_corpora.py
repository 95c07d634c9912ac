"""Readers for the known sentiment sets, each recognised by its file names.

======== ============================================== =======================================
set      files                                          split
======== ============================================== =======================================
MR       rt-polarity.{pos,neg}                          none official
SST-2    stsa.binary.{train,dev,test}.txt,              official
         with phrases glue_train.tsv
IMDB     imdb_{train,test}.tsv.gz                       official train and test
UCI      {amazon_cells,imdb,yelp}_labelled.txt          none official
======== ============================================== =======================================

Records end with a line feed and nothing else (MR and IMDB hold U+0085, which ``splitlines``
takes for a line end), and quotes mean nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from training.errors import DataError
from training.text_files import read_bytes

CLASSES = ("negative", "positive")
_IMDB_HEADER = ["id", "label", "rating", "movie", "text"]


class Row(NamedTuple):
    """One labelled text."""

    text: str
    label: int
    """0 negative, 1 positive."""
    group: str | None = None
    """Rows of one group must stay in one part of a split (IMDB: the movie)."""


@dataclass(frozen=True)
class Corpus:
    """A set as published: parts it has no official split for are None."""

    name: str
    train: list[Row]
    validation: list[Row] | None
    test: list[Row] | None
    notes: tuple[str, ...] = ()
    """What a reader of the report should know."""


def read_corpus(folder: Path, phrases: bool = False) -> Corpus:
    """Reads the known set that lies in a folder.

    Args:
        folder: holds the files of exactly one known set.
        phrases: train on SST-2's phrases.

    Raises:
        DataError: no known layout, or a file is unreadable or malformed.
    """
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror or error}") from error
    for files, reader in _READERS:
        if set(files) <= set(found):
            if phrases and reader is not _read_sst2:
                raise DataError(f"--phrases is for SST-2; {folder} holds {files[0]}")
            return _read_sst2(folder, phrases) if reader is _read_sst2 else reader(folder)
    layouts = "; ".join(" + ".join(files) for files, _ in _READERS)
    shown = ", ".join(found[:5]) + (" ..." if len(found) > 5 else "") or "nothing"
    raise DataError(f"{folder} holds no known data set; expected {layouts}; found {shown}")


def _read_mr(folder: Path) -> Corpus:
    rows = []
    for label, file in enumerate(("rt-polarity.neg", "rt-polarity.pos")):
        rows += [Row(text, label) for _, text in _lines(folder / file, "cp1252")]
    return Corpus("mr", rows, None, None, _count_notes("MR", (("sentences", rows, 10_662),)))


def _read_sst2(folder: Path, phrases: bool = False) -> Corpus:
    parts = []
    for part in ("train", "dev", "test"):
        path = folder / f"stsa.binary.{part}.txt"
        rows = []
        for line, record in _lines(path):
            label, _, text = record.partition(" ")
            rows.append(Row(text, _binary(path, line, label)))
        parts.append(rows)
    train, dev, test = parts
    expected = 6_920
    if phrases:
        train, expected = _read_tsv(folder / "glue_train.tsv", ["label", "sentence"]), 67_349
    notes = _count_notes(
        "SST-2", (("train", train, expected), ("dev", dev, 872), ("test", test, 1_821))
    )
    return Corpus("sst2-phrases" if phrases else "sst2", train, dev, test, notes)


def _read_imdb(folder: Path) -> Corpus:
    train = _read_tsv(folder / "imdb_train.tsv.gz", _IMDB_HEADER)
    test = _read_tsv(folder / "imdb_test.tsv.gz", _IMDB_HEADER)
    notes = _count_notes("IMDB", (("train", train, 25_000), ("test", test, 25_000)))
    return Corpus("imdb", train, None, test, notes)


def imdb_unlabelled(folder: Path) -> list[str]:
    """The texts of IMDB's unlabelled and training reviews; those of its test reviews left out.

    Raises:
        DataError: the files are not there, unreadable or malformed.
    """
    texts = []
    for name, header in (("unsup", ["id", "movie", "text"]), ("train", _IMDB_HEADER)):
        texts += [cells["text"] for _, cells in _read_table(folder / f"imdb_{name}.tsv.gz", header)]
    test = _read_table(folder / "imdb_test.tsv.gz", _IMDB_HEADER)
    tested = {cells["text"] for _, cells in test}
    return [text for text in texts if text not in tested]


def _read_uci(folder: Path) -> Corpus:
    rows = []
    for file in _UCI_FILES:
        path = folder / file
        for line, record in _lines(path):
            text, tab, label = record.rpartition("\t")
            if not tab:
                raise DataError(f"{path}, line {line}: expected text, tab, label")
            rows.append(Row(text, _binary(path, line, label)))
    return Corpus("uci", rows, None, None, _count_notes("UCI", (("sentences", rows, 3_000),)))


_UCI_FILES = ("amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt")
_READERS: tuple[tuple[tuple[str, ...], Callable[[Path], Corpus]], ...] = (
    (("rt-polarity.pos", "rt-polarity.neg"), _read_mr),
    (tuple(f"stsa.binary.{part}.txt" for part in ("train", "dev", "test")), _read_sst2),
    (("imdb_train.tsv.gz", "imdb_test.tsv.gz"), _read_imdb),
    (_UCI_FILES, _read_uci),
)


def _read_tsv(path: Path, header: list[str]) -> list[Row]:
    rows = []
    for line, cells in _read_table(path, header):
        text = cells["text"] if "text" in cells else cells["sentence"]
        rows.append(Row(text, _binary(path, line, cells["label"]), cells.get("movie")))
    return rows


def _read_table(path: Path, header: list[str]) -> list[tuple[int, dict[str, str]]]:
    """Line numbers and cells by column."""
    lines = _lines(path)
    if not lines or lines[0][1].split("\t") != header:
        raise DataError(f"{path}: expected the header {' '.join(header)} with tabs between")
    rows = []
    for line, record in lines[1:]:
        cells = record.split("\t")
        if len(cells) != len(header):
            raise DataError(f"{path}, line {line}: expected {len(header)} cells, got {len(cells)}")
        rows.append((line, dict(zip(header, cells, strict=True))))
    return rows


def _lines(path: Path, encoding: str = "utf-8") -> list[tuple[int, str]]:
    """Line numbers and records, stripped of surrounding blanks; every record must hold text."""
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


def _binary(path: Path, line: int, label: str) -> int:
    if label not in ("0", "1"):
        raise DataError(f"{path}, line {line}: expected the label 0 or 1, got {label!r}")
    return int(label)


def _count_notes(name: str, parts: tuple[tuple[str, list[Row], int], ...]) -> tuple[str, ...]:
    notes = []
    for part, rows, published in parts:
        if len(rows) != published:
            notes.append(
                f"{name} {part}: {len(rows):,} rows, the published set has {published:,}; "
                "figures from it cannot be set beside published ones"
            )
    return tuple(notes)
