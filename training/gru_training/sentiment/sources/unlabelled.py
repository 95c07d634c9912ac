"""Texts without labels, from which word vectors are learned."""

from collections.abc import Sequence
from pathlib import Path

from gru_training.data.known_sets.imdb import imdb_unlabelled
from gru_training.errors import DataError
from gru_training.tables.content import chunks
from gru_training.tables.file_form import read_text

_HEAD = 256 * 1024
"""Bytes of a file that are looked at before it is read."""
_FEWEST_NUMBERS = 10
"""In a line that counts as a word's vector; the smallest vectors in use have 25."""


def read_unlabelled(path: Path) -> list[str]:
    """Texts without their labels: a folder with IMDB, or a .txt file with one text per line.

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
    """Check, from the first lines of a file, that it can be texts; a folder is let through.

    Raises:
        DataError: It is not there, has another name than texts have, or holds word vectors.
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
    """Whether nearly all of these lines hold a word and many numbers, as files of vectors do."""
    found = sum(map(_is_vector, lines))
    return found > 0 and found >= 0.9 * len(lines)


def _is_vector(line: str) -> bool:
    numbers = line.split()[1:]
    if len(numbers) < _FEWEST_NUMBERS:
        return False
    try:
        list(map(float, numbers))
    except ValueError:
        return False
    return True
