"""A regression on n-grams as a layer of a network."""

from typing import Any

import keras
import tensorflow as tf

from gru_training.words.ngram_model import NgramModel, first_key
from gru_training.words.vocabulary import PADDING


@keras.saving.register_keras_serializable(package="gru_training")
class NgramLogits(keras.layers.Layer):
    """An `NgramModel` in a network; its weights are not trained further.

    Args:
        count: K, number of n-grams.
        classes: C.
        vocabulary_size: V.
        order: Words in the longest n-grams.
    """

    def __init__(
        self, count: int, classes: int, vocabulary_size: int, order: int = 2, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.count, self.classes, self.vocabulary_size = count, classes, vocabulary_size
        self.order = order

    def build(self, input_shape: tuple[int | None, ...]) -> None:  # noqa: ARG002
        """Make keys (K,), weights (K, C) and bias (C,)."""
        fixed = {"initializer": "zeros", "trainable": False}
        self.keys = self.add_weight((self.count,), dtype="int64", name="keys", **fixed)
        self.values = self.add_weight((self.count, self.classes), name="values", **fixed)
        self.bias = self.add_weight((self.classes,), name="bias", **fixed)

    def set_model(self, model: NgramModel) -> None:
        """Take over its numbers."""
        self.keys.assign(model.keys)
        self.values.assign(model.weights)
        self.bias.assign(model.bias)

    def call(self, token_ids: Any) -> Any:
        """Map ids (B, T) to logits (B, C)."""
        keys = tf.sort(self.keys_of(token_ids), axis=1)
        first = tf.pad(keys[:, 1:] != keys[:, :-1], [[0, 0], [1, 0]], constant_values=True)
        keys = tf.where(first, keys, PADDING)
        found = self.weights_of(tf.reshape(keys, [-1]))
        shape = tf.concat([tf.shape(keys), [self.classes]], 0)
        return tf.reduce_sum(tf.reshape(found, shape), axis=1) + self.bias

    def keys_of(self, token_ids: Any) -> Any:
        """The n-grams of ids (B, T): of each word, then of each pair, (B, 2T - 1) int64, and so on.

        Where there is padding they are 0.
        """
        ids = tf.cast(token_ids, tf.int64)
        size = tf.constant(self.vocabulary_size, tf.int64)
        numbers, there, keys = ids, ids != PADDING, [ids]
        for length in range(2, self.order + 1):
            last = ids[:, length - 1 :]
            numbers = numbers[:, :-1] * size + last
            there = there[:, :-1] & (last != PADDING)
            first = tf.constant(first_key(self.vocabulary_size, length), tf.int64)
            keys.append(tf.where(there, first + numbers, PADDING))
        return tf.concat(keys, axis=1)

    def weights_of(self, keys: Any) -> Any:
        """What n-grams (n,) add to the logits, (n, C); zero for unknown ones and padding."""
        table = tf.convert_to_tensor(self.keys)
        place = tf.minimum(tf.searchsorted(table, keys), self.count - 1)
        known = (keys != PADDING) & (tf.gather(table, place) == keys)
        return tf.where(known[:, tf.newaxis], tf.gather(self.values, place), 0.0)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B, T) becomes (B, C)."""
        return (input_shape[0], self.classes)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "count": self.count,
            "classes": self.classes,
            "vocabulary_size": self.vocabulary_size,
            "order": self.order,
        }
