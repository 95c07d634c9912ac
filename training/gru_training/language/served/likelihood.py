"""How likely whole texts are, as plain graph operations."""

from typing import Any

import tensorflow as tf

from gru_training.language.network.model import LanguageModel
from gru_training.language.network.softmax import target_log_probabilities
from gru_training.language.reading import END_ID
from gru_training.words.vocabulary import PADDING


def log_probabilities(model: LanguageModel, token_ids: Any) -> tuple[Any, Any]:
    """Log-probabilities of the tokens of texts, each given those before it.

    Args:
        model: That reads.
        token_ids: (B, T) int32, padded with 0 at the end.

    Returns:
        Of each token (B, T), zero where there is padding, and of the end of each text (B,), in
        nats.
    """
    shape = tf.shape(token_ids)
    ends = tf.fill([shape[0], 1], END_ID)
    lengths = tf.math.count_nonzero(token_ids, axis=1, dtype=tf.int32)  # (B,)
    places = tf.range(shape[1] + 1)
    last = tf.equal(places, lengths[:, tf.newaxis])  # (B, T + 1)
    padded = tf.pad(token_ids, [[0, 0], [0, 1]], constant_values=PADDING)
    targets = tf.where(last, END_ID, padded)
    # Padding stands behind the text, where nothing that is read from it matters.
    features, _ = model.read(tf.concat([ends, token_ids], axis=1))
    there = tf.not_equal(targets, PADDING)
    found = target_log_probabilities(
        model, tf.boolean_mask(features, there), tf.boolean_mask(targets, there)
    )
    whole = tf.scatter_nd(tf.where(there), found, tf.shape(targets, out_type=tf.int64))
    zero = tf.zeros((), whole.dtype)
    of_end = tf.reduce_sum(tf.where(last, whole, zero), axis=1)
    return tf.where(last, zero, whole)[:, :-1], of_end
