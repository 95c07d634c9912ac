"""Word vectors from a file: GloVe, word2vec (text and binary) and fastText, plain or gzipped.

======== ==========================================================================
format   content
======== ==========================================================================
GloVe    a word and D numbers in each line; a word may hold blanks
fastText the same below a line with the number of words and D, as word2vec's text
word2vec below that line, for each word: the word, a blank, D float32, little-endian
======== ==========================================================================

Files of pre-trained vectors contain millions of words, of which few are needed; the others are
skipped while reading.
"""

import gzip
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from gru_training.errors import DataError

_HEAD = 1 << 16
_LEAST_SIZE = 2
_LONGEST_WORD = 4096
_BYTES = np.dtype("<f4").itemsize


class FileVectors(NamedTuple):
    """Words with a vector each."""

    tokens: tuple[str, ...]
    """N words, in the order of the file."""
    vectors: np.ndarray
    """(N, D) float32, unchanged from the file."""
    words: int
    """Number of words in the file."""


def read_vectors(path: Path, wanted: Collection[str], further: int = 0) -> FileVectors:
    """Read the vectors of some words.

    Args:
        path: The file; its format is found from its first lines.
        wanted: Words to read, in lower case. A word of the file that is among them only once
            it is written small gives its vector where the file does not have the small one.
        further: Number of further words to read, the first of the file, which are the most frequent
            as a rule; those that are not in lower case are left out.

    Raises:
        DataError: The file cannot be read, holds no vectors, or a line does not fit; names it.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(_HEAD)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _chosen(path, _entries(path, cast(BinaryIO, file), head), set(wanted), further)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _chosen(
    path: Path, entries: "Iterator[tuple[str, bytes | list[bytes]]]", wanted: set[str], further: int
) -> FileVectors:
    exact: dict[str, np.ndarray] = {}
    folded: dict[str, np.ndarray] = {}
    count = 0
    for word, values in entries:
        count += 1
        small = word.lower()
        if word in wanted or (count <= further and small == word):
            exact.setdefault(word, _vector(path, count, values))
        elif small in wanted:
            folded.setdefault(small, _vector(path, count, values))
    found = {**exact, **{word: vector for word, vector in folded.items() if word not in exact}}
    if not found:
        raise DataError(
            f"--vectors: {path}: expected vectors of words in the training texts, got {count:,} "
            "words, none of which occurs there"
        )
    return FileVectors(tuple(found), np.stack(list(found.values())), count)


def _vector(path: Path, number: int, values: bytes | list[bytes]) -> np.ndarray:
    try:
        if isinstance(values, bytes):
            vector = np.frombuffer(values, "<f4")
        else:
            vector = np.array(values).astype(np.float32)
    except ValueError as error:
        raise DataError(f"--vectors: {path}, word {number}: expected numbers: {error}") from error
    if not np.isfinite(vector).all():
        raise DataError(f"--vectors: {path}, word {number}: expected finite numbers")
    return np.asarray(vector, np.float32)


def _entries(
    path: Path, file: BinaryIO, head: bytes
) -> "Iterator[tuple[str, bytes | list[bytes]]]":
    """Yield each word with its numbers, as bytes or as texts."""
    first = head.split(b"\n", 1)[0].split()
    size = 0
    if len(first) == 2 and all(part.isdigit() for part in first):
        size = int(first[1])
        if size >= _LEAST_SIZE and not _is_text(head, size):
            file.readline()
            yield from _binary(path, file, int(first[0]), size)
            return
        file.readline()
    yield from _lines(path, file, size)


def _is_text(head: bytes, size: int) -> bool:
    """Tell whether the line after the header is a word with numbers."""
    fields = head.split(b"\n", 2)[1].split()
    try:
        list(map(float, fields[-size:]))
    except ValueError:
        return False
    return len(fields) > size


def _lines(path: Path, file: BinaryIO, size: int) -> "Iterator[tuple[str, bytes | list[bytes]]]":
    for number, line in enumerate(file, 1):
        fields = line.rstrip().split(b" ") if b"\t" not in line else line.split()
        if len(fields) < 2:
            if not line.strip():
                continue
            raise DataError(
                f"--vectors: {path}, word {number}: expected a word and numbers, got "
                f"{line.decode('utf-8', 'replace').strip()!r:.60}"
            )
        size = size or _size(fields)
        if size < _LEAST_SIZE or len(fields) <= size:
            raise DataError(
                f"--vectors: {path}, word {number}: expected a word and {size or 'many'} numbers, "
                f"got {line.decode('utf-8', 'replace').strip()!r:.60}; is this a file of vectors "
                "in GloVe, word2vec or fastText format?"
            )
        yield b" ".join(fields[:-size]).decode("utf-8", "replace"), fields[-size:]


def _size(fields: list[bytes]) -> int:
    """Count the numbers at the end of a line."""
    size = 0
    for field in reversed(fields[1:]):
        try:
            float(field)
        except ValueError:
            break
        size += 1
    return size


def _binary(
    path: Path, file: BinaryIO, count: int, size: int
) -> "Iterator[tuple[str, bytes | list[bytes]]]":
    buffer = b""
    for number in range(1, count + 1):
        end = buffer.find(b" ")
        while end < 0 or len(buffer) < end + 1 + size * _BYTES:
            more = file.read(_HEAD)
            if not more or (end < 0 and len(buffer) > _LONGEST_WORD):
                raise DataError(
                    f"--vectors: {path}: expected {count:,} words of {size} numbers, got "
                    f"{number - 1:,}; is the file complete?"
                )
            buffer += more
            end = buffer.find(b" ")
        word = buffer[:end].lstrip(b"\n").decode("utf-8", "replace")
        stop = end + 1 + size * _BYTES
        yield word, buffer[end + 1 : stop]
        buffer = buffer[stop:]
