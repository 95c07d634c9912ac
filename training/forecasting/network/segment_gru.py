"""A GRU over segments of a series that decodes all output segments in parallel.

Lin et al. 2023, "SegRNN: Segment Recurrent Neural Network for Long-Term Time Series Forecasting"
(arXiv:2308.11200), section 4: the decoder takes one single step of the encoder's own GRU from its
last state for each output segment, with a learned query in place of an input.
"""

from typing import Any

import keras
import tensorflow as tf

from keras_gru import GRU, functional


@keras.saving.register_keras_serializable(package="training")
class SegmentGRU(keras.layers.Layer):
    """Encodes N segments and answers with M states, one for each output segment.

    The query of an output segment is a learned vector of its position; where there are several
    channels, half of it is a learned vector of the channel.

    Args:
        units: U, an even number.
        output_segments: M.
        channels: K; the rows of a batch are K consecutive channels of each window.

    Call arguments:
        segments: (B·K, N, D), embedded segments.

    Returns:
        (B·K, M, U), the states.
    """

    def __init__(
        self,
        units: int,
        output_segments: int,
        channels: int = 1,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if units < 2 or units % 2:
            raise ValueError(f"units must be an even number above 0, got {units}")
        self.units, self.output_segments, self.channels = units, output_segments, channels
        self.encoder = GRU(units, dtype=self.dtype_policy, name="encoder")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the GRU's weights, whose input size D must be U, and the queries."""
        if input_shape[-1] != self.units:
            raise ValueError(
                f"segments must have {self.units} features, as the queries go through the same "
                f"weights; got shape {tuple(input_shape)}"
            )
        self.encoder.build(input_shape)
        normal = keras.initializers.RandomNormal(stddev=1.0)
        halves = 2 if self.channels > 1 else 1
        self.position = self.add_weight(
            shape=(self.output_segments, self.units // halves), initializer=normal, name="position"
        )
        self.channel = None
        if self.channels > 1:
            self.channel = self.add_weight(
                shape=(self.channels, self.units // 2), initializer=normal, name="channel"
            )
        self.built = True

    def call(self, segments: Any) -> Any:
        """See the class."""
        return self.decode(self.encoder(segments))

    def decode(self, h: Any) -> Any:
        """One step of the GRU from each state for each query: (B·K, U) to (B·K, M, U).

        Neither x·W, the same for all windows, nor h·U, the same for all output segments, is
        computed more than once.
        """
        cell = self.encoder.cell
        states = functional.step(
            self._queries(),  # (K, M, U)
            tf.reshape(h, (-1, self.channels, 1, self.units)),
            cell.kernel,
            cell.recurrent_kernel,
            cell.bias,
            cell.convention,
        )
        return tf.reshape(states, (-1, self.output_segments, self.units))

    def _queries(self) -> Any:
        """(K, M, U)."""
        position = tf.convert_to_tensor(self.position)
        if self.channel is None:
            return position[tf.newaxis]
        shape = (self.channels, self.output_segments, self.units // 2)
        channel = tf.convert_to_tensor(self.channel)[:, tf.newaxis]
        return tf.concat(
            [tf.broadcast_to(position, shape), tf.broadcast_to(channel, shape)], axis=-1
        )

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B·K, M, U)."""
        return input_shape[0], self.output_segments, self.units

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "output_segments": self.output_segments,
            "channels": self.channels,
        }
