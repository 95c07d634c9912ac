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

`gru_training.data.known_sets` describes the form of their files.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from gru_training.data.known_sets import IMDB_HEADER, imdb_unlabelled, tab_table, text_lines
from gru_training.errors import DataError
from gru_training.sentiment.rows import Row, SentimentRows
from gru_training.tables.content import chunks, read_bytes
from gru_training.tables.file_form import read_text

CLASSES = ("negative", "positive")
_DIGESTS = {
    "rt-polarity.neg": "4ace77d558c3714723843f1d65b60c01e3417b208180f0728808d76ad0eeeaca",
    "rt-polarity.pos": "2da124ec187a9d5a29c9f04e91c540e02baed5af8868f550a26bd6fd4dbf8bf0",
    "stsa.binary.train.txt": "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338",
    "stsa.binary.dev.txt": "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1",
    "stsa.binary.test.txt": "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b",
    "glue_train.tsv": "e981ceb4fe6c9acd1c79851d0d091b9e78103f1f2a399ca83dda27915d41c56c",
    "imdb_train.tsv.gz": "f6126c251b51b2430a4acc8b5858e4f649261ecd501f7d4f056d254380afef93",
    "imdb_test.tsv.gz": "96fed6bf1768ffb7e3cc313e38daddb19dc5e280b8a33704d5a9ab1ce9c77db9",
    "imdb_unsup.tsv.gz": "907cd1ec01029874239905457539c35d7de50b5d983f5220ce4826cb90a38183",
    "amazon_cells_labelled.txt": "47003fc0a0d4840b00e96e715b6189bad09e7443a3da41c4cbe12ffc79f86ae3",
    "imdb_labelled.txt": "aef2e49e3da25714d61175e3a6e68eeef74a20a2f914318dc3be9947ea86512d",
    "yelp_labelled.txt": "c76468b7b5c6e56a0804d728345c5f84aa2142ddb214420f61cc9cfd4c00d2ea",
}
"""SHA-256 of the unzipped files that produced the figures in the documentation."""


def read_corpus(folder: Path, phrases: bool = False) -> SentimentRows:
    """Read the known set that lies in a folder.

    Args:
        folder: Folder with the files of exactly one known set.
        phrases: Whether to train on SST-2's phrases.

    Raises:
        DataError: No known layout, or a file is unreadable or malformed.
    """
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror or error}") from error
    for files, reader in _READERS:
        if set(files) <= set(found):
            if phrases and reader is not _read_sst2:
                raise DataError(f"--phrases is for SST-2; {folder} holds {files[0]}")
            corpus = _read_sst2(folder, phrases) if reader is _read_sst2 else reader(folder)
            used = (*files, "glue_train.tsv") if phrases else files
            return replace(corpus, notes=corpus.notes + _digest_notes(folder, used))
    layouts = "; ".join(" + ".join(files) for files, _ in _READERS)
    shown = ", ".join(found[:5]) + (" ..." if len(found) > 5 else "") or "nothing"
    raise DataError(
        f"{folder} holds no known data set; expected {layouts}; found {shown}. Texts of your own "
        "are read from a table, such as a CSV file with the columns text and label"
    )


def _read_mr(folder: Path) -> SentimentRows:
    rows = []
    for label, file in enumerate(("rt-polarity.neg", "rt-polarity.pos")):
        rows += [Row(text, label) for _, text in text_lines(folder / file, "cp1252")]
    notes = _count_notes("MR", (("sentences", rows, 10_662),))
    return SentimentRows("mr", CLASSES, rows, notes=notes)


def _read_sst2(folder: Path, phrases: bool = False) -> SentimentRows:
    parts = []
    for part in ("train", "dev", "test"):
        path = folder / f"stsa.binary.{part}.txt"
        rows = []
        for line, record in text_lines(path):
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
    name = "sst2-phrases" if phrases else "sst2"
    return SentimentRows(name, CLASSES, train, dev, test, notes=notes)


def _read_imdb(folder: Path) -> SentimentRows:
    train = _read_tsv(folder / "imdb_train.tsv.gz", IMDB_HEADER)
    test = _read_tsv(folder / "imdb_test.tsv.gz", IMDB_HEADER)
    notes = _count_notes("IMDB", (("train", train, 25_000), ("test", test, 25_000)))
    return SentimentRows("imdb", CLASSES, train, None, test, notes=notes)


def _read_uci(folder: Path) -> SentimentRows:
    rows = []
    for file in _UCI_FILES:
        path = folder / file
        for line, record in text_lines(path):
            text, tab, label = record.rpartition("\t")
            if not tab:
                raise DataError(f"{path}, line {line}: expected text, tab, label")
            rows.append(Row(text, _binary(path, line, label)))
    notes = _count_notes("UCI", (("sentences", rows, 3_000),))
    return SentimentRows("uci", CLASSES, rows, notes=notes)


_UCI_FILES = ("amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt")
_READERS: tuple[tuple[tuple[str, ...], Callable[[Path], SentimentRows]], ...] = (
    (("rt-polarity.pos", "rt-polarity.neg"), _read_mr),
    (tuple(f"stsa.binary.{part}.txt" for part in ("train", "dev", "test")), _read_sst2),
    (("imdb_train.tsv.gz", "imdb_test.tsv.gz"), _read_imdb),
    (_UCI_FILES, _read_uci),
)


def _read_tsv(path: Path, header: Sequence[str]) -> list[Row]:
    rows = []
    for line, cells in tab_table(path, header):
        text = cells["text"] if "text" in cells else cells["sentence"]
        rows.append(Row(text, _binary(path, line, cells["label"]), cells.get("movie")))
    return rows


def _binary(path: Path, line: int, label: str) -> int:
    if label not in ("0", "1"):
        raise DataError(f"{path}, line {line}: expected the label 0 or 1, got {label!r}")
    return int(label)


def _digest_notes(folder: Path, files: Sequence[str]) -> tuple[str, ...]:
    other = [
        name for name in files if sha256(read_bytes(folder / name)).hexdigest() != _DIGESTS[name]
    ]
    if not other:
        return ()
    return (
        f"{', '.join(other)}: not the known copy of the set, by SHA-256; figures may differ from "
        "the documented ones",
    )


def _count_notes(name: str, parts: tuple[tuple[str, list[Row], int], ...]) -> tuple[str, ...]:
    notes = []
    for part, rows, published in parts:
        if len(rows) != published:
            notes.append(
                f"{name} {part}: {len(rows):,} rows, the published set has {published:,}; "
                "do not compare its figures with published ones"
            )
    return tuple(notes)


_HEAD = 256 * 1024
"""Number of bytes of a file that are examined before it is read."""
_MIN_NUMBERS = 10
"""Fewest numbers in a line of a word vector; the smallest vectors in use have 25."""


def read_unlabelled(path: Path) -> list[str]:
    """Read texts without their labels: a folder with IMDB, or a .txt file with one text per line.

    Raises:
        DataError: The path is neither, or cannot be read.
    """
    require_prose(path)
    if path.is_dir():
        return imdb_unlabelled(path)
    text, said = read_text(path)
    if said:
        raise DataError(
            f"--unlabelled: expected {path} to be UTF-8, got a file that would be {said}; convert "
            "it, as with `iconv -f cp1252 -t utf-8`"
        )
    return [line.strip() for line in text.split("\n") if line.strip()]


def require_prose(path: Path) -> None:
    """Check by the first lines of a file that it contains texts; a folder is accepted.

    Raises:
        DataError: The file is missing, has another name than texts have, or holds word vectors.
    """
    if path.is_dir():
        return
    if not path.name.endswith((".txt", ".txt.gz")):
        raise DataError(
            "--unlabelled: expected a folder with imdb_unsup.tsv.gz, or a file ending in .txt or "
            f".txt.gz with one text per line; got {path}"
        )
    head = next(chunks(path), b"")[:_HEAD]
    *lines, last = head.decode("utf-8", "replace").split("\n")
    if not lines:
        lines = [last]
    lines = [line for line in lines if line.strip()]
    if holds_vectors(lines):
        raise DataError(
            f"--unlabelled: expected one text per line; {path} holds word vectors, as GloVe's "
            f"({lines[-1]:.32} ...); give it as --vectors"
        )


def holds_vectors(lines: Sequence[str]) -> bool:
    """Tell whether nearly all lines hold a word and many numbers, as in files of word vectors."""
    found = sum(map(_is_vector, lines))
    return found > 0 and found >= 0.9 * len(lines)


def _is_vector(line: str) -> bool:
    numbers = line.split()[1:]
    if len(numbers) < _MIN_NUMBERS:
        return False
    try:
        list(map(float, numbers))
    except ValueError:
        return False
    return True
