"""Vocabulary, vectors and n-grams with more words and classes than before."""

import numpy as np

from gru_training.words.ngram_model import NgramModel, first_key, require_keys
from gru_training.words.vocabulary import RESERVED, UNKNOWN, TokenIndex, Vocabulary


def grown_vocabulary(known: Vocabulary, index: TokenIndex, room: int, min_count: int) -> Vocabulary:
    """The known words with their ids, then new ones, the most frequent first.

    Args:
        known: The words so far.
        index: Of the training texts.
        room: Most words to add.
        min_count: Words seen less often are left out.
    """
    there = set(known.tokens)
    found = [
        token
        for token, count in zip(index.tokens, index.counts, strict=True)
        if count >= min_count and token not in there
    ]
    return Vocabulary([*known.tokens[len(RESERVED) :], *found[: max(0, room)]])


def grown_table(table: np.ndarray, rows: int) -> np.ndarray:
    """Word vectors (V, D) with further rows, the unknown word's: (rows, D)."""
    further = np.broadcast_to(table[UNKNOWN], (rows - len(table), table.shape[1]))
    return np.concatenate([table, further])


def grown_ngrams(model: NgramModel, vocabulary_size: int, odds: np.ndarray) -> NgramModel:
    """The same regression over more words and classes; it answers known n-grams as before.

    Args:
        model: Over fewer words.
        vocabulary_size: V, number of ids.
        odds: (C,), logarithms of the odds of each class or label in the training rows: what is
            answered of a new one, whatever the n-grams.

    Raises:
        ConfigError: As of `require_keys`.
    """
    require_keys(vocabulary_size, model.order)
    before, keys = model.vocabulary_size, model.keys.copy()  # in the order that they have
    for length in range(2, model.order + 1):
        first = first_key(before, length)
        of_length = (model.keys >= first) & (model.keys < first_key(before, length + 1))
        words = np.unravel_index(model.keys[of_length] - first, (before,) * length)
        grown = np.ravel_multi_index(words, (vocabulary_size,) * length)
        keys[of_length] = first_key(vocabulary_size, length) + grown
    further = np.zeros((len(keys), len(odds) - model.weights.shape[1]), np.float32)
    return NgramModel(
        vocabulary_size,
        keys,
        np.concatenate([model.weights, further], 1),
        np.concatenate([model.bias, odds[len(model.bias) :]]),
        model.penalty,
        model.order,
    )
