"""Which words an answer is due to: integrated gradients of the GRU, exact shares of the n-grams.

Sundararajan, Taly and Yan (2017), "Axiomatic Attribution for Deep Networks", equation (1), along
the straight line from zero vectors to the words' vectors, by Gauss-Legendre quadrature. The scores
of a text's words add up to the difference between the model's answer and the answer to as many
words whose vectors are zero ("completeness", proposition 1), up to the error of the quadrature.

Everything here is plain graph operations on the weights of a trained model, for exports.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_training.sentiment.network.chunks import InChunks
from gru_training.sentiment.network.combination import shares_of
from gru_training.words.ngram_layer import NgramLogits
from gru_training.words.vocabulary import PADDING
from keras_gru import GRU

POINTS = 32
"""Of the line at which the gradient is taken."""


class Attribution:
    """Scores of words, in units of the weighted logits; B texts, T tokens, C classes.

    Args:
        model: Classifier of `gru_training.sentiment.network.model` or of `combine`.
        points: Number of points of the line.
    """

    def __init__(self, model: keras.Model, points: int = POINTS):
        self._embedding = model.get_layer("embedding")
        self._layers = [
            layer
            for layer in model.layers
            if isinstance(layer, GRU | keras.layers.Bidirectional | InChunks)
        ]
        self._pooling, self._logits = model.get_layer("pooling"), model.get_layer("logits")
        self._share, self._ngram_share = shares_of(model)
        found = [layer for layer in model.layers if isinstance(layer, NgramLogits)]
        self._ngrams = found[0] if found else None
        places, areas = np.polynomial.legendre.leggauss(points)  # of the interval from -1 to 1
        self._points = ((places + 1) / 2).astype(np.float32)
        self._areas = (areas / 2).astype(np.float32)

    def __call__(self, token_ids: Any, weights: Any) -> Any:
        """The share of each word in a weighted sum of the logits.

        Text by text, so that neither memory nor a text's scores depend on the others.

        Args:
            token_ids: (B, T) int32, padded with 0 at the end.
            weights: (B, C) float32, of the logits: 1 for the answer, and what it is compared with
                below 0.

        Returns:
            (B, T) float32; zero where there is padding.
        """
        count = tf.shape(token_ids)[0]
        more = [[0, tf.cast(count == 0, tf.int32)], [0, 0]]  # the loop needs a row
        scores = tf.map_fn(
            tf.autograph.experimental.do_not_convert(self._of_row),  # saves seconds of tracing
            (tf.pad(token_ids, more), tf.pad(weights, more)),
            fn_output_signature=tf.TensorSpec((None,), tf.float32),
            parallel_iterations=1,
        )
        return scores[:count]

    def baseline(self, token_ids: Any) -> Any:
        """Logits (B, C) of as many words whose vectors are zero, without any n-gram."""
        mask = tf.not_equal(token_ids, PADDING)
        answer = self._share * self._answer(tf.zeros_like(self._embedding(token_ids)), mask)
        if self._ngrams is not None:
            answer += self._ngram_share * self._ngrams.bias
        return answer

    def _answer(self, vectors: Any, mask: Any) -> Any:
        for layer in self._layers:
            vectors = layer(vectors, mask=mask, training=False)
        return self._logits(self._pooling(vectors, mask=mask))

    def _of_row(self, row: tuple[Any, Any]) -> Any:
        padded, weights = row
        count = tf.reduce_sum(tf.cast(tf.not_equal(padded, PADDING), tf.int32))
        ids = padded[: tf.maximum(1, count)]  # the layers need a step, be it masked
        scores = self._share * self._of_gru(ids, weights)
        if self._ngrams is not None:
            scores += self._ngram_share * self._of_ngrams(ids, weights)
        scores = tf.where(tf.not_equal(ids, PADDING), scores, 0.0)
        return tf.pad(scores, [[0, tf.shape(padded)[0] - tf.shape(ids)[0]]])

    def _of_gru(self, ids: Any, weights: Any) -> Any:
        """Of n words (n,), with all points of the line as one batch."""
        vectors = self._embedding(ids[tf.newaxis])  # (1, n, D)
        line = vectors * self._points[:, np.newaxis, np.newaxis]  # (points, n, D)
        mask = tf.tile(tf.not_equal(ids, PADDING)[tf.newaxis], [len(self._points), 1])
        with tf.GradientTape() as tape:
            tape.watch(line)
            answer = tf.reduce_sum(self._answer(line, mask) * weights)
        slopes = tf.tensordot(self._areas, tape.gradient(answer, line), 1)  # (n, D)
        return tf.reduce_sum(vectors[0] * slopes, axis=-1)

    def _of_ngrams(self, ids: Any, weights: Any) -> Any:
        """An n-gram's share in equal parts to its words, and equal ones where it repeats."""
        assert self._ngrams is not None
        keys = self._ngrams.keys_of(ids[tf.newaxis])[0]
        _, which, times = tf.unique_with_counts(keys)
        worth = tf.linalg.matvec(self._ngrams.weights_of(keys), weights)
        worth /= tf.cast(tf.gather(times, which), tf.float32)
        count, scores = tf.shape(ids)[0], []
        for length in range(1, self._ngrams.order + 1):
            grams = tf.maximum(count - length + 1, 0)
            part, worth = worth[:grams] / length, worth[grams:]
            scores += [
                tf.pad(part, [[place, length - 1 - place]])[:count] for place in range(length)
            ]
        return tf.add_n(scores)
