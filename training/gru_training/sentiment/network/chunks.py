"""Long texts in chunks, which a recurrent layer reads all at once."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="gru_training")
class InChunks(keras.layers.Wrapper):
    """Runs a recurrent layer over adjoining chunks of the time axis, as further rows of the batch.

    Every chunk begins with the layer's first state, so T steps take the time of `size` steps, and
    nothing is carried from one chunk to the next: what follows must pool over all steps.

    Args:
        layer: Of sequences (B, T, D), with a mask, to sequences (B, T, F).
        size: Steps of a chunk; the last one of a row may have fewer.
    """

    def __init__(self, layer: keras.Layer, size: int, **kwargs: Any):
        super().__init__(layer, **kwargs)
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        self.size, self.supports_masking = size, True

    def call(self, sequence: Any, mask: Any = None, training: bool = False) -> Any:
        """Map (B, T, D) to (B, T, F); the mask is (B, T) bool, by default without padding."""
        if mask is None:
            mask = tf.ones(tf.shape(sequence)[:2], tf.bool)
        cut = self.cut(sequence), self.cut(mask)
        return self.join(self.layer(cut[0], mask=cut[1], training=training), sequence)

    def cut(self, values: Any) -> Any:
        """(B, T, ...) as chunks (B · K, S, ...), S at most `size`; zeros, or False, fill up."""
        rows, steps, width, count = self._sizes(values)
        further = values.shape[2:]
        more = [[0, 0], [0, count * width - steps], *([[0, 0]] * len(further))]
        return tf.reshape(tf.pad(values, more), [rows * count, width, *further])

    def join(self, chunks: Any, values: Any) -> Any:
        """The inverse of `cut`: chunks (B · K, S, ...) as (B, T, ...), as long as `values`."""
        rows, steps, width, count = self._sizes(values)
        return tf.reshape(chunks, [rows, count * width, *chunks.shape[2:]])[:, :steps]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:  # noqa: ARG002
        """That of the input."""
        return mask

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> Any:
        """As of the layer."""
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "size": self.size}

    def _sizes(self, values: Any) -> tuple[Any, Any, Any, Any]:
        """B, T, S and K; where a chunk ends does not depend on the other rows."""
        rows, steps = tf.unstack(tf.shape(values)[:2])
        width = tf.clip_by_value(steps, 1, self.size)
        return rows, steps, width, -(-steps // width)
