"""The known words, and texts as their ids inside the TensorFlow graph.

Only lookup and ragged operations are used, which stock TensorFlow Serving has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import tensorflow as tf

from gru_serving.preprocessing.texts import PADDING, RESERVED, Words, padded_in_graph
from gru_training.errors import DataError
from gru_training.words.tokens import Reading, tokenizer

_CHUNK = 1024  # texts tokenized at once


class Vocabulary(Words):
    """The known words; a word's position is its id.

    Args:
        tokens: Distinct tokens without the two reserved ones; the first gets id 2.
    """

    def __init__(self, tokens: Sequence[str]):
        super().__init__(RESERVED + tuple(tokens))
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError("tokens must be distinct and not [PAD] or [UNK]")

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def extended(self, index: "TokenIndex", room: int, min_count: int = 1) -> "Vocabulary":
        """Append further words to the known ones, which keep their ids.

        Args:
            index: Tokens to take new words from, the most frequent first.
            room: Maximum number of words to add.
            min_count: Least number of occurrences of a word that is added.
        """
        known = set(self.tokens)
        found = [
            token
            for token, count in zip(index.tokens, index.counts, strict=True)
            if count >= min_count and token not in known
        ]
        return Vocabulary([*self.tokens[len(RESERVED) :], *found[: max(0, room)]])

    def save(self, path: Path) -> None:
        """Write one token per line, UTF-8; the line number (from 0) is the id."""
        path.write_text(self.text(), "utf-8", newline="\n")


class TokenIndex(NamedTuple):
    """Texts as numbers of tokens."""

    tokens: list[str]
    """The tokens, the most frequent first, equally frequent ones in the order of code points."""
    counts: np.ndarray
    """Number of occurrences of each word."""
    rows: list[np.ndarray]
    """Positions in `tokens` of each text's tokens, int32."""


def index_tokens(
    texts: Sequence[str],
    cleaned: bool = False,
    reading: Reading = "words",
) -> TokenIndex:
    """Split texts, cleaned or not, and number their tokens."""
    codes: dict[bytes, int] = {}
    parts: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    chunks = tf.data.Dataset.from_tensor_slices(tf.constant(texts, tf.string)).batch(_CHUNK)
    # Python's threads are not used: TensorFlow's eager tensors are not safe there, and crash at
    # times.
    split = tokenizer(cleaned, reading).graph
    tokens = chunks.map(split, num_parallel_calls=tf.data.AUTOTUNE)
    for found in tokens:
        local, seen = pd.factorize(found.flat_values.numpy())
        numbers = np.array([codes.setdefault(token, len(codes)) for token in seen], np.int32)
        parts.append(numbers[local] if len(seen) else np.zeros(0, np.int32))
        lengths.append(found.row_lengths().numpy())
    everything = np.concatenate([np.zeros(0, np.int32), *parts])
    counts = np.bincount(everything, minlength=len(codes))
    # UTF-8 has the order of code points.
    ranked = [token for _, token in sorted(zip((-counts).tolist(), codes, strict=True))]
    place = np.empty(len(codes), np.int32)
    place[[codes[token] for token in ranked]] = np.arange(len(ranked))
    ends = np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))
    return TokenIndex(
        [token.decode() for token in ranked],
        np.sort(counts)[::-1],
        np.split(place[everything], ends[:-1]) if len(ends) else [],
    )


def build_vocabulary(index: TokenIndex, max_size: int, min_count: int = 1) -> Vocabulary:
    """Choose the most frequent tokens, equally frequent ones in the order of code points.

    Args:
        index: Tokens of the training texts, and of nothing else.
        max_size: Most tokens to keep, not counting padding and unknown.
        min_count: Tokens seen less often are left out.

    Raises:
        DataError: No token is left.
    """
    kept = [
        token
        for token, n in zip(index.tokens[:max_size], index.counts, strict=False)
        if n >= min_count
    ]
    if not kept:
        raise DataError(
            f"expected at least one word that occurs {min_count} times in the training texts "
            f"(--min-count), got {max(index.counts, default=0)} times at most"
        )
    return Vocabulary(kept)


def load_vocabulary(path: Path) -> Vocabulary:
    """Read a vocabulary that `Vocabulary.save` wrote.

    Raises:
        DataError: The file is unreadable or does not start with the two reserved tokens.
    """
    try:
        tokens = Words.parse(path.read_text("utf-8")).tokens
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the vocabulary {path}: {error}") from error
    if tokens[:2] != RESERVED:
        raise DataError(f"{path}: expected the lines {' and '.join(RESERVED)}, got {tokens[:2]}")
    return Vocabulary(tokens[2:])


class TextPreprocessor(tf.Module):
    """The conversion of texts to padded word ids, with one graph in training and SavedModels.

    Args:
        vocabulary: The known words.
        max_tokens: Number of tokens that are kept; of longer texts the last ones.
        cleaned: Whether texts are cleaned before.
        reading: Rule by which texts are cut into tokens.
        backoff: Whether unknown words are read as known ones that begin alike.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        max_tokens: int,
        cleaned: bool = False,
        reading: Reading = "words",
        backoff: bool = False,
    ):
        super().__init__(name="text_preprocessor")
        self.max_tokens, self.cleaned, self.reading = max_tokens, cleaned, reading
        self.backoff = backoff
        self._tokenizer = partial(tokenizer, cleaned, reading)  # not one that is tracked
        self._words = partial(vocabulary.graph, backoff=backoff)
        self._tables = [vocabulary.table, *([vocabulary.beginnings_table] if backoff else [])]

    def tokens(self, text: tf.Tensor, limit: bool = True) -> tf.RaggedTensor:
        """Return the tokens that are read, (B, None) ragged string, of texts (B,) string.

        They are in display form, without the marks of tokens that do not follow a blank.
        """
        return self._tokenizer().shown_in_graph(self._read(text, limit))

    def split(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Split texts (B,) string into all tokens, (B, None) ragged string."""
        return self._tokenizer().graph(text)

    def _read(self, text: tf.Tensor, limit: bool) -> tf.RaggedTensor:
        tokens = self.split(text)
        return tokens[:, -self.max_tokens :] if limit else tokens

    def ragged_ids(self, text: tf.Tensor, limit: bool = True) -> tf.RaggedTensor:
        """Look up word ids, (B, None) ragged int32; empty texts have none."""
        return self._words(self._read(text, limit))

    def __call__(self, text: tf.Tensor, limit: bool = True) -> tf.Tensor:
        """Look up the words of texts.

        Args:
            text: (B,) string.
            limit: Whether to pass over all but the last `max_tokens` tokens.

        Returns:
            (B, T) int32, padded with 0 at the end; T is the longest row's length, at least 1.
        """
        return padded_in_graph(self.ragged_ids(text, limit), PADDING)


def token_ids(preprocessor: TextPreprocessor, texts: Sequence[str]) -> list[np.ndarray]:
    """Look up the word ids of each text without padding, int32; empty texts have one padding id."""
    rows: list[np.ndarray] = []
    for start in range(0, len(texts), _CHUNK):
        ids = preprocessor(tf.constant(texts[start : start + _CHUNK])).numpy()
        lengths = np.maximum(1, (ids != PADDING).sum(axis=1))
        rows += [row[:length].copy() for row, length in zip(ids, lengths, strict=True)]
    return rows


@dataclass(frozen=True)
class TokenRows:
    """The rows of one part of a data set."""

    ids: Sequence[np.ndarray]
    """N rows of word ids, each (T_i,) int32."""
    labels: np.ndarray
    """Class numbers, (N,) int32; 0 and 1 for each label, (N, C) float32; or numbers (N,)
    float32.
    """
    weights: np.ndarray | None = None
    """Weights of the rows in the loss, (N,) float64; None for equal weights."""

    @property
    def row_weights(self) -> np.ndarray | None:
        """Scale the weights to a mean of 1, (N,), so that only their ratios matter."""
        return None if self.weights is None else self.weights / self.weights.mean()


def members_of(labels: np.ndarray, number: int) -> np.ndarray:
    """Mark the rows of a class or label, (N,) bool."""
    return np.asarray(labels == number if labels.ndim == 1 else labels[:, number] > 0.5)


def word_counts(rows: Sequence[np.ndarray], words: int) -> sp.csr_matrix:
    """Count each word in each text.

    Args:
        rows: N rows of word ids.
        words: W; ids from there on are passed over, and so are the reserved ones.

    Returns:
        (N, W) float32.
    """
    ids = np.concatenate([np.zeros(0, np.int32), *rows])
    texts = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    known = (ids >= len(RESERVED)) & (ids < words)
    ones = np.ones(known.sum(), np.float32)
    return sp.csr_matrix((ones, (texts[known], ids[known])), (len(rows), words))
