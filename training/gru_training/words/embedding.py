"""Word vectors: trained ones beside those learned earlier from unlabelled texts."""

from collections.abc import Sequence
from itertools import islice
from typing import Any
from zlib import crc32

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from gru_serving.preprocessing.texts import PADDING, UNKNOWN


@keras.saving.register_keras_serializable(package="gru_training")
class WordEmbedding(keras.layers.Layer):
    """A fixed vector for every word, and a trained one for the first words.

    After the two channels of Kim (2014), "Convolutional Neural Networks for Sentence
    Classification", section 3.1: words that occur in no training text keep a meaning, and the
    trained part learns what the task needs.

    With pieces, the vectors of a word's pieces are added to its trained vector, divided by the
    square root of their number, so that its size does not depend on this number.

    Args:
        vocabulary_size: V, number of ids, padding and unknown included.
        fixed_size: Numbers in a fixed vector; 0 for none.
        trained_words: Ids below it have a trained vector; the others share the unknown word's.
        trained_size: Numbers in a trained vector.
        most_pieces: P, pieces of the word with the most; 0 for none.
    """

    def __init__(
        self,
        vocabulary_size: int,
        fixed_size: int,
        trained_words: int,
        trained_size: int,
        most_pieces: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size, self.fixed_size = vocabulary_size, fixed_size
        self.trained_words, self.trained_size = trained_words, trained_size
        self.most_pieces = most_pieces

    def build(self, input_shape: tuple[int | None, ...]) -> None:  # noqa: ARG002
        """Create the tables (V, fixed_size), (trained_words, trained_size), (V, P)."""
        self.fixed = self.pieces = None
        if self.fixed_size:
            shape = (self.vocabulary_size, self.fixed_size)
            self.fixed = self.add_weight(shape, "zeros", trainable=False, name="fixed")
        shape = (self.trained_words, self.trained_size)
        self.trained = self.add_weight(shape, "uniform", name="trained")
        if self.most_pieces:
            shape = (self.vocabulary_size, self.most_pieces)
            self.pieces = self.add_weight(shape, "zeros", "int32", trainable=False, name="pieces")
            shape = (BUCKETS + 1, self.trained_size)
            self.piece_vectors = self.add_weight(shape, "uniform", name="piece_vectors")

    def set_tables(self, fixed: np.ndarray | None, pieces: np.ndarray | None) -> None:
        """Set the fixed vectors, (V, fixed_size), and the words' pieces, (V, P)."""
        if self.fixed is not None:
            self.fixed.assign(fixed)
        if self.pieces is not None:
            self.pieces.assign(pieces)

    def call(self, token_ids: Any) -> Any:
        """Map ids (B, T) to vectors (B, T, fixed_size + trained_size)."""
        trained = ops.take(self.trained, self._trained_ids(token_ids), axis=0)
        if self.pieces is not None:
            trained += self._of_pieces(token_ids)
        if self.fixed is None:
            return trained
        return ops.concatenate([ops.take(self.fixed, token_ids, axis=0), trained], axis=-1)

    def _trained_ids(self, token_ids: Any) -> Any:
        if self.trained_words == self.vocabulary_size:
            return token_ids
        return ops.where(
            token_ids < self.trained_words, token_ids, ops.full_like(token_ids, UNKNOWN)
        )

    def _of_pieces(self, token_ids: Any) -> Any:
        """Add up the pieces' vectors, (B, T, trained_size)."""
        words, places = tf.unique(tf.reshape(token_ids, [-1]))  # a batch repeats most of its words
        pieces = ops.take(self.pieces, words, axis=0)
        there = ops.cast(ops.not_equal(pieces, 0), self.compute_dtype)
        vectors = ops.take(self.piece_vectors, pieces, axis=0) * there[..., None]
        count = ops.maximum(ops.sum(there, axis=1, keepdims=True), 1)
        summed = ops.sum(vectors, axis=1) / ops.sqrt(count)
        return ops.reshape(
            ops.take(summed, places, axis=0), (*ops.shape(token_ids), self.trained_size)
        )

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:  # noqa: ARG002
        """Mask the padding."""
        return ops.not_equal(inputs, PADDING)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape (B, T, fixed_size + trained_size) for (B, T)."""
        return (*input_shape, self.fixed_size + self.trained_size)


BUCKETS = 20_000
"""Number of hash values that distinguish pieces."""
_LENGTHS = (3, 4, 5)
_MAX_PIECES = 32  # pieces of one word


def word_pieces(tokens: Sequence[str]) -> np.ndarray:
    """Compute the pieces of each word: substrings of 3 to 5 letters, with both ends marked.

    After Bojanowski et al. (2017), "Enriching Word Vectors with Subword Information", section 3.2.
    Tokens that do not begin with a letter, including the reserved ones, have none.

    Args:
        tokens: V of them.

    Returns:
        (V, P) int32: numbers 1 to `BUCKETS`, padded with 0 for a word with fewer than P; of longer
        words the first 32 pieces, short ones first.
    """
    rows = [list(islice(_pieces(token), _MAX_PIECES)) for token in tokens]
    table = np.zeros((len(rows), max(map(len, rows), default=0)), np.int32)
    for row, pieces in zip(table, rows, strict=True):
        row[: len(pieces)] = pieces
    return table


def _pieces(token: str) -> dict[int, None]:
    """Return the numbers of a word's pieces, distinct and in order."""
    if not token[:1].isalpha():
        return {}
    marked = f"<{token}>"
    return dict.fromkeys(
        1 + crc32(marked[start : start + length].encode()) % BUCKETS
        for length in _LENGTHS
        for start in range(len(marked) - length + 1)
    )
