"""The text classifier token by token: as a stream with a state, and with its gates shown.

Everything here is plain graph operations on the weights of a trained model, for exports.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from gru_training.sentiment.network.chunks import InChunks
from gru_training.sentiment.network.pooling import Pooling
from gru_training.words.ngram_layer import NgramLogits
from gru_training.words.vocabulary import PADDING
from keras_gru import GRU, functional


class Unrolled(NamedTuple):
    """Every step of a batch; L layers, R directions, U units, steps in the order of the text.

    Where there is padding, all are zero.
    """

    update_gate: Any
    """z, (B, T, L, R, U)."""
    reset_gate: Any
    """r, (B, T, L, R, U)."""
    state: Any
    """State after the step, (B, T, L, R, U)."""
    logits: Any
    """The model's answer to the text up to this token, (B, T, C)."""


class SentimentSteps:
    """A trained classifier, opened.

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
        """Whether the model can answer token by token: GRUs alone, in one direction."""
        return not self._ngrams and all(isinstance(layer, GRU) for layer in self._layers)

    @property
    def state_sizes(self) -> list[int]:
        """Sizes of the parts of the state of a model that streams: each layer's, the pooling's."""
        return [*(layer.units for layer in self._layers), self._pooling.carry_size(self._width)]

    @property
    def state_size(self) -> int:
        """Size S of the state that `advance` carries; zeros are a new beginning."""
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
            # The last output is that of the last token: masked steps repeat it.
            after.append(tf.where(reads, x[:, -1], h))
        pooled, carry = self._pooling.resume(x, mask, pooled)
        return self._logits(pooled), tf.concat([*after, carry], axis=-1)

    def unroll(self, token_ids: Any) -> Unrolled:
        """Run whole texts and show every step.

        A model that reads in both directions is run anew for every beginning of the text, as its
        answer to the text so far depends on where the text ends: time and memory grow with T².

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
    """The GRUs of a layer, the forward one first."""
    if isinstance(layer, InChunks):
        layer = layer.layer
    if isinstance(layer, GRU):
        return [layer]
    return [layer.forward_layer, layer.backward_layer]


def _open_chunks(layer: Any, direction: GRU, x: Any, mask: Any) -> tuple[Any, Any, Any]:
    """As `_open` of one direction of a layer, which may read in chunks."""
    if not isinstance(layer, InChunks):
        return _open(direction, x, mask)
    update, reset, state = _open(direction, layer.cut(x), layer.cut(mask))
    return layer.join(update, x), layer.join(reset, x), layer.join(state, x)


def _open(layer: GRU, x: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Update gate, reset gate and state (B, T, U) of a layer, zero where there is padding."""
    cell = layer.cell
    states = layer(x, mask=mask, training=False)
    if layer.go_backwards:
        states = tf.reverse(states, [1])
    states *= tf.cast(mask, states.dtype)[..., tf.newaxis]
    order = [[0, 0], [0, 1], [0, 0]] if layer.go_backwards else [[0, 0], [1, 0], [0, 0]]
    around = tf.pad(states, order)
    previous = around[:, 1:] if layer.go_backwards else around[:, :-1]
    # The states are known, so all steps of all rows go through the equations as one batch.
    gates = functional.gates(
        x, previous, cell.kernel, cell.recurrent_kernel, cell.bias, cell.convention
    )
    kept = tf.cast(mask, states.dtype)[..., tf.newaxis]
    return gates.z * kept, gates.r * kept, states
