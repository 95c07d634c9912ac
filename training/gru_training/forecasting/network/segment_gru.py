"""A GRU over segments of a series that decodes all output segments in parallel.

Lin et al. 2023, "SegRNN: Segment Recurrent Neural Network for Long-Term Time Series Forecasting"
(arXiv:2308.11200), section 4: the decoder takes one single step of the encoder's own GRU from its
last state for each output segment, with a learned query in place of an input.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_gru import GRU, functional


@keras.saving.register_keras_serializable(package="gru_training")
class SegmentGRU(keras.layers.Layer):
    """Encodes N segments and answers with M states, one for each output segment.

    The query of an output segment is a learned vector of its position; where there are several
    channels, half of it is a learned vector of the channel.

    Args:
        units: U, an even number.
        output_segments: M.
        channels: K; the rows of a batch are K consecutive channels of each window.
        unknown: Whether there is one more vector, the last, for channels that are none of the K.

    Call arguments:
        segments: (B·K, N, D), embedded segments.
        ids: (R,) int32: of R rows in any order the number of the channel, K where it is unknown;
            None: the rows are K consecutive channels.

    Returns:
        (B·K, M, U) or (R, M, U), the states.
    """

    def __init__(
        self,
        units: int,
        output_segments: int,
        channels: int = 1,
        unknown: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if units < 2 or units % 2:
            raise ValueError(f"units must be an even number above 0, got {units}")
        self.units, self.output_segments, self.channels = units, output_segments, channels
        self.unknown = unknown
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
                shape=(self.channels + self.unknown, self.units // 2),
                initializer=normal,
                name="channel",
            )
        self.built = True

    def call(self, segments: Any, ids: Any = None) -> Any:
        """See the class."""
        return self.decode(self.encoder(segments), ids)

    def decode(self, h: Any, ids: Any = None) -> Any:
        """One step of the GRU from each state for each query: (B·K, U) to (B·K, M, U).

        Neither x·W, the same for all windows, nor h·U, the same for all output segments, is
        computed more than once; with `ids` the former is.
        """
        cell = self.encoder.cell
        if ids is None:
            queries, h = self._queries(), tf.reshape(h, (-1, self.channels, 1, self.units))
        else:
            queries, h = tf.gather(self._queries(every=True), ids), h[:, tf.newaxis]
        states = functional.step(
            queries,  # (K, M, U), or (R, M, U)
            h,
            cell.kernel,
            cell.recurrent_kernel,
            cell.bias,
            cell.convention,
        )
        return tf.reshape(states, (-1, self.output_segments, self.units))

    def unknown_query(self) -> np.ndarray:
        """(M, U): the `position` of a layer of one channel, which then is an unknown one."""
        if not self.unknown:
            raise ValueError("there is a query of unknown channels only with unknown=True")
        return np.asarray(self._queries(every=True)[-1])

    def _queries(self, every: bool = False) -> Any:
        """(K, M, U); every: the unknown channel is the last."""
        position = tf.convert_to_tensor(self.position)
        if self.channel is None:
            return position[tf.newaxis]
        vectors = tf.convert_to_tensor(self.channel)
        vectors = vectors if every else vectors[: self.channels]
        shape = (vectors.shape[0], self.output_segments, self.units // 2)
        channel = vectors[:, tf.newaxis]
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
            "unknown": self.unknown,
        }
