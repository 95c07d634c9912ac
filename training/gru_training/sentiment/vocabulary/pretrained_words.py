"""Words and their vectors, learned from texts without their labels before training."""

import tempfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from gru_training.errors import DataError
from gru_training.sentiment.config import PretrainingConfig
from gru_training.sentiment.rows import text_key
from gru_training.sentiment.sources.unlabelled import read_unlabelled
from gru_training.words.latent_semantics import latent_semantic_vectors
from gru_training.words.vectors import word_vectors
from gru_training.words.vocabulary import RESERVED, TokenIndex, index_tokens

_LEAST_COUNT = 5
DEVIATION = 0.3
"""Root mean square of a vector's numbers: about what a GRU's inputs are."""


class PretrainedWords(NamedTuple):
    """Words with a vector each."""

    tokens: tuple[str, ...]
    """The N most frequent words of the texts."""
    vectors: np.ndarray
    """(N, D) float32."""
    texts: int
    """How many texts they were learned from."""


def pretrained_words(
    config: PretrainingConfig,
    training: Sequence[str],
    held_out: Sequence[str],
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
    index: TokenIndex | None = None,
    cleaned: bool = False,
) -> PretrainedWords:
    """Learn the vectors, or take those that were learned before from the same texts.

    Args:
        config: `unlabelled`, `word_vectors` or both must be set.
        training: Texts to learn from if `word_vectors` is set.
        held_out: Validation and test texts; an unlabelled text that is also among them, or among
            the training texts that are learned from, is passed over.
        folder: Where vectors are kept for the next training, as `.word-vectors-<digest>.npz`.
        progress: Told what is being done.
        index: Of the training texts, where it is at hand.
        cleaned: Whether texts are cleaned before they are read.

    Raises:
        DataError: The texts cannot be read, or hold too few different words.
    """
    own = training if config.word_vectors else ()
    texts = list(own)
    if config.unlabelled is not None:
        progress("reading the unlabelled texts")
        others = read_unlabelled(config.unlabelled)
        excluded = {text_key(text) for text in (*held_out, *own)}
        texts += [text for text in others if text_key(text) not in excluded]
    sizes = config.vector_size, config.topic_size, config.vector_words, config.window
    digest = sha256(f"{sizes}{' cleaned' if cleaned else ''}\n".encode())
    for text in texts:
        digest.update(text.encode() + b"\n")
    path = folder / f".word-vectors-{digest.hexdigest()[:16]}.npz"
    kept = _read(path)
    if kept is not None:
        return PretrainedWords(*kept, len(texts))

    if index is None or config.unlabelled is not None:
        progress("tokenizing the texts")
        index = index_tokens(texts, cleaned)
    count = min(config.vector_words, int((index.counts >= _LEAST_COUNT).sum()))
    least = max(config.vector_size, config.topic_size)
    if min(count, len(texts)) <= least:
        raise DataError(
            f"{config.unlabelled or '--word-vectors'}: expected more than {least} texts "
            f"(--vector-size, --topic-size) and as many different words that occur {_LEAST_COUNT} "
            f"times or more, got {len(texts)} texts with {count} such words"
        )
    first, unknown = len(RESERVED), len(RESERVED) - 1
    rows = [np.where(row < count, row + first, unknown) for row in index.rows]
    parts = [word_vectors(rows, count + first, config.vector_size, config.window, progress)]
    if config.topic_size:
        progress("factorising the texts")
        parts.append(latent_semantic_vectors(rows, count + first, config.topic_size))
    vectors = np.concatenate(parts, axis=1)[first:] * np.float32(DEVIATION)
    words = PretrainedWords(tuple(index.tokens[:count]), vectors, len(texts))
    _write(path, words)
    return words


def _read(path: Path) -> tuple[tuple[str, ...], np.ndarray] | None:
    """What `_write` wrote; nothing where it is damaged, so that it is made anew."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as values:
            return tuple(values["tokens"].tolist()), values["vectors"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def _write(path: Path, words: PretrainedWords) -> None:
    """Keep the vectors; failing to keep them does not end the training."""
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
            temporary = file.name
            np.savez(file, tokens=np.array(words.tokens), vectors=words.vectors)
        Path(temporary).replace(path)
    except OSError:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
