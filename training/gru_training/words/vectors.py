"""Word vectors: learned from texts without labels, or read from a file.

They are learned as positive pointwise mutual information of words and the words around them,
reduced to its largest singular vectors, with the settings recommended by Levy, Goldberg and Dagan
(2015), "Improving Distributional Similarity with Lessons Learned from Word Embeddings": counts of
frequent words are thinned (by their expected number, not by chance), context counts smoothed with
the power 3/4, singular values taken to the power 1/2. The same texts give the same vectors.
Neighbouring words show which words can replace each other, so good and bad are similar; the texts
in which a word occurs (latent semantics) distinguish them.

Files of pre-trained vectors are plain or gzipped:

======== ==========================================================================
format   content
======== ==========================================================================
GloVe    a word and D numbers in each line; a word may hold blanks
fastText the same below a line with the number of words and D, as word2vec's text
word2vec below that line, for each word: the word, a blank, D float32, little-endian
======== ==========================================================================

They contain millions of words, of which few are needed; the others are skipped while reading.
"""

import gzip
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.extmath import randomized_svd

from gru_serving.preprocessing.texts import PADDING, UNKNOWN
from gru_training.errors import DataError
from gru_training.words.vocabulary import word_counts

_CHUNK = 1_000_000  # tokens whose pairs are counted at once
_MAX_FULL_SHARE = 1e-4  # share of all tokens above which a word counts less
_CONTEXT_POWER = 0.75
_SINGULAR_POWER = 0.5


def word_vectors(
    rows: Sequence[np.ndarray],
    vocabulary_size: int,
    size: int,
    window: int = 5,
    progress: Callable[[str], None] = lambda _: None,
) -> np.ndarray:
    """Compute vectors of all words of a vocabulary.

    Args:
        rows: The word ids of each text, without padding.
        vocabulary_size: V, the reserved ids included.
        size: D, at most the number of words.
        window: Words on either side that count as context.
        progress: Function that is given a line on what is being done.

    Returns:
        (V, D) float32, each with root mean square 1; zeros for the reserved ids and for words
        without neighbours.
    """
    counts = np.zeros(vocabulary_size)
    for row in rows:
        counts += np.bincount(row, minlength=vocabulary_size)
    counts[[PADDING, UNKNOWN]] = 0
    progress("counting neighbours")
    pairs = _co_occurrences(rows, counts, window)
    progress("factorising")
    return _factors(_positive_information(pairs), size)


def _co_occurrences(rows: Sequence[np.ndarray], counts: np.ndarray, window: int) -> sp.csr_matrix:
    """Count how often words stand near each other, (V, V) symmetric; nearer counts more."""
    share = counts / max(1.0, counts.sum())
    kept = np.sqrt(np.minimum(1.0, _MAX_FULL_SHARE / np.maximum(share, 1e-12))) * (counts > 0)
    total = sp.csr_matrix((len(counts), len(counts)))
    for words in _chunks(rows, window):
        for distance in range(1, window + 1):
            left, right = words[:-distance], words[distance:]
            weight = kept[left] * kept[right] * (window + 1 - distance) / window
            known = weight > 0
            pairs = (weight[known], (left[known], right[known]))
            total += sp.coo_matrix(pairs, total.shape).tocsr()
    return total + total.T


def _chunks(rows: Sequence[np.ndarray], window: int) -> Iterator[np.ndarray]:
    """Yield the texts one after the other, with enough padding between them to keep them apart."""
    gap = np.full(window, PADDING, np.int32)
    chunk: list[np.ndarray] = []
    length = 0
    for row in rows:
        chunk += [row, gap]
        length += len(row)
        if length >= _CHUNK:
            yield np.concatenate(chunk)
            chunk, length = [], 0
    if chunk:
        yield np.concatenate(chunk)


def _positive_information(pairs: sp.csr_matrix) -> sp.csr_matrix:
    """Compute the log of the ratio of a context's frequency to chance; 0 if it is below chance."""
    words = np.asarray(pairs.sum(axis=1)).ravel()
    contexts = words**_CONTEXT_POWER
    contexts /= max(contexts.sum(), 1e-12)
    coo = pairs.tocoo()
    information = np.log(coo.data / (words[coo.row] * contexts[coo.col]))
    positive = information > 0
    kept = (information[positive].astype(np.float32), (coo.row[positive], coo.col[positive]))
    return sp.coo_matrix(kept, pairs.shape).tocsr()


def _factors(matrix: sp.csr_matrix, size: int) -> np.ndarray:
    """Compute the words' coordinates along the largest singular vectors, (V, D) float32."""
    u, singular, _ = randomized_svd(matrix, size, n_iter=3, random_state=0)
    # For words without neighbours the factorisation leaves rounding errors.
    return unit_rows(u * singular**_SINGULAR_POWER, matrix.getnnz(axis=1) > 0)


def latent_semantic_vectors(
    rows: Sequence[np.ndarray], vocabulary_size: int, size: int
) -> np.ndarray:
    """Compute vectors of all words of a vocabulary from the texts in which they occur.

    After Deerwester et al. (1990), "Indexing by Latent Semantic Analysis", they are the right
    singular vectors of the texts' weighted word counts, here (1 + log count) times inverse document
    frequency, with texts of length 1.

    Args:
        rows: The word ids of each text, without padding.
        vocabulary_size: V, the reserved ids included.
        size: D, at most the number of words and of texts.

    Returns:
        (V, D) float32, each with root mean square 1; zeros for the reserved ids and for words that
        do not occur.
    """
    counts = word_counts(rows, vocabulary_size)
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    _, _, vectors = randomized_svd(weighted, size, n_iter=3, random_state=0)
    return unit_rows(vectors.T, counts.getnnz(axis=0) > 0)


def unit_rows(vectors: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Scale known rows to root mean square 1, and set others to zero, float32."""
    length = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    scaled = vectors / np.maximum(length, np.finfo(vectors.dtype).tiny)
    return np.where(known[:, None], scaled, 0).astype(np.float32)


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
