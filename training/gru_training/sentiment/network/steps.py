"""A text classifier with access to its stream steps, its gates, and contributions of words.

Contributions of the GRU are integrated gradients: Sundararajan, Taly and Yan (2017), "Axiomatic
Attribution for Deep Networks", equation (1), along the straight line from zero vectors to the
words' vectors, by Gauss-Legendre quadrature; those of the n-grams are exact. The contributions of a
text's words add up to the difference between the model's answer and the answer to as many words
whose vectors are zero ("completeness", proposition 1), up to the error of the quadrature.

All computations are plain graph operations on the weights of a trained model, for exports.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from gru_serving.preprocessing.texts import PADDING
from gru_training.sentiment.network.model import InChunks, shares_of
from gru_training.sentiment.network.pooling import Pooling
from gru_training.words.ngrams import NgramLogits
from keras_gru import GRU, functional


class Unrolled(NamedTuple):
    """Every step of a batch, in the order of the text: L layers, R directions, U units.

    All values are zero at padding.
    """

    update_gate: Any
    """Update gate z, (B, T, L, R, U)."""
    reset_gate: Any
    """Reset gate r, (B, T, L, R, U)."""
    state: Any
    """State after the step, (B, T, L, R, U)."""
    logits: Any
    """The model's answer to the text up to this token, (B, T, C)."""


class SentimentSteps:
    """A trained classifier with access to its gates and states.

    Args:
        model: Classifier of `gru_training.sentiment.network.model.build_sentiment_model` or of
            `combine`.
        whole: Function from word ids (B, T) to the model's logits, such as a graph of it that
            others call, too; None: the model.
    """

    def __init__(self, model: keras.Model, whole: Callable[[Any], Any] | None = None):
        self._whole = partial(model, training=False) if whole is None else whole
        self._classes = int(model.output_shape[-1])
        self._embedding, self._logits = model.get_layer("embedding"), model.get_layer("logits")
        kinds = GRU | keras.layers.Bidirectional | InChunks
        self._layers = [layer for layer in model.layers if isinstance(layer, kinds)]
        self._pooling: Pooling = model.get_layer("pooling")
        self._width = directions_of(self._layers[-1])[0].units
        self._ngrams = any(isinstance(layer, NgramLogits) for layer in model.layers)

    @property
    def streams(self) -> bool:
        """True if the model can answer token by token: GRUs alone, in one direction."""
        return not self._ngrams and all(isinstance(layer, GRU) for layer in self._layers)

    @property
    def state_sizes(self) -> list[int]:
        """The sizes of the parts of a streaming state: each layer's, and the pooling's."""
        return [*(layer.units for layer in self._layers), self._pooling.carry_size(self._width)]

    @property
    def state_size(self) -> int:
        """The size S of the state that `advance` carries; zeros are a new beginning."""
        return sum(self.state_sizes)

    def advance(self, token_ids: Any, state: Any) -> tuple[Any, Any]:
        """Read further tokens; for models that stream.

        Args:
            token_ids: (B, T) int32, padded with 0 at the end; a row may hold no token at all.
            state: (B, S) float32, zeros at the beginning.

        Returns:
            Logits (B, C) of all that was read so far, and the state after it (B, S).
        """
        *carried, pooled = tf.split(state, self.state_sizes, axis=-1)
        mask = tf.not_equal(token_ids, PADDING)
        reads = tf.reduce_any(mask, axis=1)[:, tf.newaxis]  # (B, 1)
        x = self._embedding(token_ids)
        after = []
        for layer, h in zip(self._layers, carried, strict=True):
            x = layer(x, initial_state=h, mask=mask, training=False)
            # The last output is that of the last token, since masked steps repeat it.
            after.append(tf.where(reads, x[:, -1], h))
        pooled, carry = self._pooling.resume(x, mask, pooled)
        return self._logits(pooled), tf.concat([*after, carry], axis=-1)

    def unroll(self, token_ids: Any) -> Unrolled:
        """Run complete texts, and return every step.

        A model that reads in both directions is run again for every beginning of the text, since
        its answer depends on where the text ends: time and memory grow with T².

        Args:
            token_ids: (B, T) int32, padded with 0 at the end.
        """
        mask = tf.not_equal(token_ids, PADDING)
        x = self._embedding(token_ids)
        shown: list[list[Any]] = [[], [], []]
        for layer in self._layers:
            opened = [_open_chunks(layer, one, x, mask) for one in directions_of(layer)]
            for kind, of_layer in zip(shown, zip(*opened, strict=True), strict=True):
                kind.append(tf.stack(of_layer, axis=2))  # (B, T, R, U)
            x = tf.concat([states for _, _, states in opened], axis=-1)
        update, reset, state = (tf.stack(kind, axis=2) for kind in shown)  # (B, T, L, R, U)
        if self.streams:
            logits = self._logits(self._pooling.so_far(x, mask))
        else:
            logits = self._by_prefix(token_ids)
        kept = tf.cast(mask, logits.dtype)[..., tf.newaxis]
        return Unrolled(update, reset, state, logits * kept)

    def _by_prefix(self, token_ids: Any) -> Any:
        length = tf.shape(token_ids)[1]
        seen = tf.linalg.band_part(tf.ones((length, length), token_ids.dtype), -1, 0)

        @tf.autograph.experimental.do_not_convert  # saves seconds of tracing
        def of_row(row: Any) -> Any:
            return self._whole(row[tf.newaxis] * seen)

        return tf.map_fn(
            of_row,
            token_ids,
            fn_output_signature=tf.TensorSpec((None, self._classes), tf.float32),
        )


def directions_of(layer: Any) -> list[GRU]:
    """Return the GRUs of a layer, the forward one first."""
    if isinstance(layer, InChunks):
        layer = layer.layer
    if isinstance(layer, GRU):
        return [layer]
    return [layer.forward_layer, layer.backward_layer]


def _open_chunks(layer: Any, direction: GRU, x: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Compute the steps of one direction of a layer that may read in chunks, like `_open`."""
    if not isinstance(layer, InChunks):
        return _open(direction, x, mask)
    update, reset, state = _open(direction, layer.cut(x), layer.cut(mask))
    return layer.join(update, x), layer.join(reset, x), layer.join(state, x)


def _open(layer: GRU, x: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Compute update gate, reset gate and state (B, T, U) of a layer, zero at padding."""
    cell = layer.cell
    states = layer(x, mask=mask, training=False)
    if layer.go_backwards:
        states = tf.reverse(states, [1])
    states *= tf.cast(mask, states.dtype)[..., tf.newaxis]
    order = [[0, 0], [0, 1], [0, 0]] if layer.go_backwards else [[0, 0], [1, 0], [0, 0]]
    around = tf.pad(states, order)
    previous = around[:, 1:] if layer.go_backwards else around[:, :-1]
    # The states are known, so all steps of all rows pass through the equations as one batch.
    gates = functional.gates(
        x, previous, cell.kernel, cell.recurrent_kernel, cell.bias, cell.convention
    )
    kept = tf.cast(mask, states.dtype)[..., tf.newaxis]
    return gates.z * kept, gates.r * kept, states


POINTS = 32
"""Number of points of the line at which the gradient is taken."""


def quadrature(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (P,) float32 between 0 and 1, and their weights in an integral, by Gauss-Legendre."""
    places, areas = np.polynomial.legendre.leggauss(points)  # of the interval from -1 to 1
    return ((places + 1) / 2).astype(np.float32), (areas / 2).astype(np.float32)


class Attribution:
    """Contributions of words in units of the weighted logits; B texts, T tokens, C classes.

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
        self._points, self._areas = quadrature(points)

    def __call__(self, token_ids: Any, weights: Any) -> Any:
        """Compute the contribution of each word to a weighted sum of the logits.

        Texts are processed one by one, so that neither memory nor results depend on the others.

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
        """Compute logits (B, C) of as many words whose vectors are zero, without any n-gram."""
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
        """Attribute to n words (n,), with all points of the line as one batch."""
        vectors = self._embedding(ids[tf.newaxis])  # (1, n, D)
        line = vectors * self._points[:, np.newaxis, np.newaxis]  # (points, n, D)
        mask = tf.tile(tf.not_equal(ids, PADDING)[tf.newaxis], [len(self._points), 1])
        with tf.GradientTape() as tape:
            tape.watch(line)
            answer = tf.reduce_sum(self._answer(line, mask) * weights)
        slopes = tf.tensordot(self._areas, tape.gradient(answer, line), 1)  # (n, D)
        return tf.reduce_sum(vectors[0] * slopes, axis=-1)

    def _of_ngrams(self, ids: Any, weights: Any) -> Any:
        """Divide the contribution of an n-gram equally among its words and its occurrences."""
        assert self._ngrams is not None
        keys = self._ngrams.keys_of(ids[tf.newaxis])[0]
        different, which, times = tf.unique_with_counts(keys)
        worth = tf.linalg.matvec(self._ngrams.weights_of(keys), weights)
        worth /= tf.cast(tf.gather(times, which), tf.float32)
        if self._ngrams.unit_length:
            worth /= self._ngrams.lengths_of(different[tf.newaxis])
        count, scores = tf.shape(ids)[0], []
        for length in range(1, self._ngrams.order + 1):
            grams = tf.maximum(count - length + 1, 0)
            part, worth = worth[:grams] / length, worth[grams:]
            scores += [
                tf.pad(part, [[place, length - 1 - place]])[:count] for place in range(length)
            ]
        return tf.add_n(scores)
