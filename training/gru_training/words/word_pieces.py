"""A learned vocabulary of word pieces, and words cut into them inside the TensorFlow graph.

Pieces are learned by merging the most frequent pairs (Sennrich et al. 2016, "Neural Machine
Translation of Rare Words with Subword Units"), which the tokenizers library does, and applied by
looking for the longest one that fits, from left to right (Song et al. 2021, "Fast WordPiece
Tokenization", section 3). Only operations that a stock TensorFlow Serving has are used.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat

import tensorflow as tf

from gru_training.errors import DataError

MOST_CHARACTERS = 64
"""Longer words are not cut: they are unknown."""
_ALPHABET = 1000
"""Characters that are pieces, the most frequent first."""


def learn_pieces(words: Sequence[str], counts: Iterable[int], size: int) -> list[str]:
    """Learn pieces from words.

    Args:
        words: The different words of the training texts; none holds a blank.
        counts: How often each occurs.
        size: Most pieces.

    Returns:
        The pieces in the order of code points, whatever the library's own order.

    Raises:
        DataError: The library is not installed.
    """
    try:
        from tokenizers import Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import WhitespaceSplit
        from tokenizers.trainers import BpeTrainer
    except ImportError as error:
        raise DataError(
            "--pieces needs the package tokenizers: pip install 'keras-gru[pieces]'"
        ) from error
    # Its WordPiece trainer learns something else every time.
    learner = Tokenizer(BPE())
    learner.pre_tokenizer = WhitespaceSplit()
    trainer = BpeTrainer(
        vocab_size=size, limit_alphabet=min(_ALPHABET, size // 2), show_progress=False
    )
    texts = (" ".join(repeat(word, int(n))) for word, n in zip(words, counts, strict=True))
    learner.train_from_iterator(texts, trainer)
    return sorted(learner.get_vocab())


class PieceCutter(tf.Module):
    """Cuts words into pieces.

    Args:
        pieces: Of `learn_pieces`.
    """

    def __init__(self, pieces: Sequence[str]):
        super().__init__(name="piece_cutter")
        self.longest = max(map(len, pieces))
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(pieces), tf.string), tf.ones(len(pieces), tf.int64)
            ),
            default_value=0,
        )

    def __call__(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Cut the words of texts.

        Args:
            words: (B, None) ragged string.

        Returns:
            (B, None) ragged string. A word that no row of pieces makes up stays whole.
        """
        different, place = tf.unique(words.flat_values)
        pieces = tf.gather(self._cut(different), place)  # (N, S)
        there = tf.not_equal(pieces, "")
        counts = tf.reduce_sum(tf.cast(there, tf.int64), axis=1)
        lengths = tf.math.unsorted_segment_sum(counts, words.value_rowids(), words.nrows())
        return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(pieces, there), lengths)

    def _cut(self, words: tf.Tensor) -> tf.Tensor:
        """The pieces (U, S) of words (U,), filled up with empty texts."""
        length = tf.strings.length(words, "UTF8_CHAR")
        fits = length <= MOST_CHARACTERS
        sizes = tf.range(1, self.longest + 1)

        def going_on(place: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
            return tf.reduce_any(place < length)

        def step(
            place: tf.Tensor, known: tf.Tensor, found: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            rows = tf.where(place < length)[:, 0]
            word, begin = tf.gather(words, rows), tf.gather(place, rows)
            rest = tf.gather(length, rows) - begin
            shape = [tf.size(rows), self.longest]
            text = tf.strings.substr(
                tf.broadcast_to(word[:, tf.newaxis], shape),
                tf.broadcast_to(begin[:, tf.newaxis], shape),
                tf.broadcast_to(sizes, shape),
                unit="UTF8_CHAR",
            )
            held = (self._table.lookup(text) > 0) & (sizes <= rest[:, tf.newaxis])
            size = tf.reduce_max(tf.where(held, sizes, 0), axis=1)  # (R,)
            some = size > 0
            piece = tf.gather(text, tf.maximum(size - 1, 0), batch_dims=1)
            rows = rows[:, tf.newaxis]
            ended = tf.gather_nd(length, rows)
            place = tf.tensor_scatter_nd_update(place, rows, tf.where(some, begin + size, ended))
            known = tf.tensor_scatter_nd_update(known, rows, some & tf.gather_nd(known, rows))
            column = tf.tensor_scatter_nd_update(
                tf.fill(tf.shape(words), ""), rows, tf.where(some, piece, "")
            )
            return place, known, tf.concat([found, column[:, tf.newaxis]], axis=1)

        start = tf.where(fits, 0, length)
        empty = tf.fill([tf.size(words), 0], "")
        unknown = [None, None]
        _, known, found = tf.while_loop(
            going_on,
            step,
            (start, fits, empty),
            shape_invariants=(start.shape, fits.shape, tf.TensorShape(unknown)),
            maximum_iterations=MOST_CHARACTERS,
        )
        pieces = tf.where(known[:, tf.newaxis], found, "")
        whole = tf.where(known, "", words)[:, tf.newaxis]
        return tf.concat([whole, pieces], axis=1)
