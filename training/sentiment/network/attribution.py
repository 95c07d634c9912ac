"""Which words an answer is due to: integrated gradients of the GRU, exact shares of the n-grams.

Sundararajan, Taly and Yan (2017), "Axiomatic Attribution for Deep Networks", equation (1), along
the straight line from zero vectors to the words' vectors, by the midpoint rule. The scores of a
text's words add up to the difference between the model's answer and the answer to as many words
whose vectors are zero ("completeness", proposition 1), up to the error of the sum.
"""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_gru import GRU, portable
from training.words.ngram_model import NgramLogits
from training.words.vocabulary import PADDING

STEPS = 32
"""Points of the line at which the gradient is taken."""


class Attribution:
    """Scores of words, in units of logits.

    Args:
        model: Of `training.sentiment.network.model`, or of `combine`.
        shares: Of the GRU and of the n-gram regression in a combined model's logits.
        steps: Points of the line.
    """

    def __init__(
        self, model: keras.Model, shares: tuple[float, float] | None = None, steps: int = STEPS
    ):
        self._embedding = model.get_layer("embedding")
        self._layers = [
            layer for layer in model.layers if isinstance(layer, GRU | keras.layers.Bidirectional)
        ]
        self._pooling, self._logits = model.get_layer("pooling"), model.get_layer("logits")
        self._share, self._ngram_share = shares or (1.0, 0.0)
        found = [layer for layer in model.layers if isinstance(layer, NgramLogits)]
        self._ngrams = found[0] if found else None
        self._points = (np.arange(steps, dtype=np.float32) + 0.5) / steps
        with portable():  # texts are few and of many lengths
            self._integrate = tf.function(
                self._integrated,
                input_signature=[
                    tf.TensorSpec((None, None), tf.int32),
                    tf.TensorSpec((None, self._logits.units), tf.float32),
                ],
            )
            self._integrate.get_concrete_function()

    def __call__(self, token_ids: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The share of each word in a weighted sum of the logits.

        Args:
            token_ids: (B, T) int32, padded with 0 at the end.
            weights: (B, C) float32, of the logits: 1 for the answer, and what it is compared with
                below 0.

        Returns:
            (B, T) float32; zero where there is padding.
        """
        scores = np.array(self._integrate(token_ids, weights)) * np.float32(self._share)
        if self._ngrams is not None:
            for row, ids in enumerate(token_ids):
                words = ids[ids != PADDING]
                scores[row, : len(words)] += self._of_ngrams(words, weights[row])
        return np.where(token_ids == PADDING, 0, scores).astype(np.float32)

    def baseline(self, token_ids: np.ndarray) -> np.ndarray:
        """Logits (B, C) of as many words whose vectors are zero, without any n-gram."""
        mask = tf.not_equal(token_ids, PADDING)
        logits = self._answer(tf.zeros_like(self._embedding(token_ids)), mask)
        answer = self._share * logits.numpy()
        if self._ngrams is not None:
            answer = answer + self._ngram_share * self._ngrams.bias.numpy()
        return np.asarray(answer)

    def _answer(self, vectors: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        for layer in self._layers:
            vectors = layer(vectors, mask=mask, training=False)
        return self._logits(self._pooling(vectors, mask=mask))

    def _integrated(self, token_ids: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        mask = tf.not_equal(token_ids, PADDING)
        vectors = self._embedding(token_ids)
        total = tf.zeros_like(vectors)
        for point in tf.constant(self._points):
            here = vectors * point
            with tf.GradientTape() as tape:
                tape.watch(here)
                answer = tf.reduce_sum(self._answer(here, mask) * weights)
            total += tape.gradient(answer, here)
        return tf.reduce_sum(vectors * total, axis=-1) / len(self._points)

    def _of_ngrams(self, words: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The n-grams' shares: a pair's half to either word, equal shares where one repeats."""
        assert self._ngrams is not None
        size = self._ngrams.vocabulary_size
        ids = words.astype(np.int64)
        keys = np.concatenate([ids, size + ids[:-1] * size + ids[1:]])
        table, values = self._ngrams.keys.numpy(), self._ngrams.values.numpy()
        place = np.minimum(np.searchsorted(table, keys), len(table) - 1)
        known = table[place] == keys
        _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
        worth = np.where(known, values[place] @ weights, 0.0) / times[which.ravel()]
        scores = worth[: len(ids)].copy()
        scores[:-1] += worth[len(ids) :] / 2
        scores[1:] += worth[len(ids) :] / 2
        return np.asarray(scores * self._ngram_share)


def against_others(answers: Sequence[int] | np.ndarray, classes: int) -> np.ndarray:
    """Weights (B, C) of an answer's logit against the mean of the others."""
    weights = np.full((len(answers), classes), -1 / max(1, classes - 1), np.float32)
    weights[np.arange(len(answers)), answers] = 1
    return weights
