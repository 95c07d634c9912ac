"""The layers of the forecasting networks.

`SegmentGRU` follows Lin et al. 2023, "SegRNN: Segment Recurrent Neural Network for Long-Term Time
Series Forecasting" (arXiv:2308.11200), section 4: the decoder takes one single step of the
encoder's own GRU from its last state for each output segment, with a learned query in place of an
input. In `WindowNormalisation` `last` is that of NLinear (Zeng et al. 2023) and SegRNN,
`reversible` that of RevIN (Kim et al. 2022) without its learned affine map.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_gru import GRU, functional


@keras.saving.register_keras_serializable(package="gru_training")
class SegmentGRU(keras.layers.Layer):
    """Encodes N segments and decodes M states, one for each output segment.

    The query of an output segment is a learned vector of its position; with several channels, half
    of it is a learned vector of the channel.

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
        """Run encoder and decoder over segments, as the class describes."""
        return self.decode(self.encoder(segments), ids)

    def decode(self, h: Any, ids: Any = None) -> Any:
        """Take one step of the GRU from each state for each query: (B·K, U) to (B·K, M, U).

        x·W, which is the same for all windows, and h·U, which is the same for all output segments,
        are computed only once; with `ids` the former is computed per row.
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
        """Return the query (M, U) of an unknown channel: the `position` of a single one."""
        if not self.unknown:
            raise ValueError("there is a query of unknown channels only with unknown=True")
        return np.asarray(self._queries(every=True)[-1])

    def _queries(self, every: bool = False) -> Any:
        """Return the queries (K, M, U).

        With `every`, the last one is that of the unknown channel.
        """
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
        """Return (B·K, M, U)."""
        return input_shape[0], self.output_segments, self.units

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "output_segments": self.output_segments,
            "channels": self.channels,
            "unknown": self.unknown,
        }


@keras.saving.register_keras_serializable(package="gru_training")
class TensorSum(keras.layers.Layer):
    """Adds two tensors of the same size or broadcast against each other, as NumPy does.

    With TensorFlow, `keras.ops.add`, and therefore `+` between Keras tensors, treats the second
    tensor as a bias of channels if all of its sizes but one are 1 and that one is the second or
    last size of the first tensor (Keras 3.15.1, `keras/src/backend/tensorflow/numpy.py`). To (1, 4,
    4, 1) it adds (1, 1, 4, 1) along the second axis, so a batch of one gets another answer than the
    same row among others.

    Call arguments:
        x: A tensor of any shape.
        y: A tensor whose shape broadcasts with that of `x`.

    Returns:
        Their sum.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.built = True

    def call(self, x: Any, y: Any) -> Any:
        """Add the two tensors, as the class describes."""
        return tf.add(x, y)

    def compute_output_shape(self, x_shape: Any, y_shape: Any) -> Any:
        """Return the broadcast shape."""
        return tuple(tf.broadcast_static_shape(tf.TensorShape(x_shape), tf.TensorShape(y_shape)))


@keras.saving.register_keras_serializable(package="gru_training")
class WindowLinear(keras.layers.Layer):
    """Computes last · share + (window - last) · kernel for each of the K targets.

    It is not trained.

    Args:
        lookback: L, steps read: the last ones.
        horizon: H.
        targets: The K column numbers that are forecast.
        own: Whether each target has a matrix to itself.
        share: Share of the window's last value that is left in it.

    Call arguments:
        history: (B, T, C), T at least L.

    Returns:
        (B, H, K, 1).
    """

    def __init__(
        self,
        lookback: int,
        horizon: int,
        targets: tuple[int, ...],
        own: bool = False,
        share: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**{**kwargs, "trainable": False})
        self.lookback, self.horizon, self.own, self.share = lookback, horizon, own, share
        self.targets = tuple(targets)

    def build(self, input_shape: Any) -> None:  # noqa: ARG002
        """Create the kernel: (L, H), or (K, L, H)."""
        of_each = (len(self.targets),) if self.own else ()
        self.kernel = self.add_weight(
            shape=(*of_each, self.lookback, self.horizon), initializer="zeros", name="kernel"
        )
        self.built = True

    def call(self, history: Any) -> Any:
        """Forecast the targets from the last steps, as the class describes."""
        read = history[:, -self.lookback :]
        if self.targets != tuple(range(history.shape[-1])):
            read = ops.take(read, self.targets, axis=-1)
        last = read[:, -1:]
        columns = ops.transpose(read - last, (2, 0, 1))  # (K, B, L)
        if self.own:
            ahead = ops.matmul(columns, self.kernel)
        else:
            flat = ops.matmul(ops.reshape(columns, (-1, self.lookback)), self.kernel)
            ahead = ops.reshape(flat, (len(self.targets), -1, self.horizon))
        return ops.expand_dims(ops.transpose(ahead, (1, 2, 0)) + self.share * last, -1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """(B, H, K, 1)."""
        return input_shape[0], self.horizon, len(self.targets), 1

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = {key: value for key, value in super().get_config().items() if key != "trainable"}
        names = ("lookback", "horizon", "targets", "own", "share")
        return {**config, **{name: getattr(self, name) for name in names}}


KINDS = ("none", "last", "reversible", "difference")
EPSILON = 1e-5


@keras.saving.register_keras_serializable(package="gru_training")
class WindowNormalisation(keras.layers.Layer):
    """Removes the level, and for `reversible` the spread, of each window and column.

    Args:
        kind: `"none"`; `"last"`: the last value is the level; `"reversible"`: the mean is the
            level, and the standard deviation, with a variance of 1e-5 added, the spread;
            `"difference"`: the changes from step to step in place of the values, zero at the
            first step, with the last value as the level of the forecast.

    Call arguments:
        history: Values of the steps read, (B, L, C).

    Returns:
        The normalised history (B, L, C), its level (B, 1, C) and its spread (B, 1, C); level and
        spread carry no gradient.
    """

    def __init__(self, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        self.kind = kind
        self.built = True

    def call(self, history: Any) -> tuple[Any, Any, Any]:
        """Normalise a window, see the class."""
        last = history[:, -1:]
        level, spread = ops.zeros_like(last), ops.ones_like(last)
        if self.kind in ("last", "difference"):
            level = last
        elif self.kind == "reversible":
            level = ops.mean(history, axis=1, keepdims=True)
            spread = ops.sqrt(ops.var(history, axis=1, keepdims=True) + EPSILON)
        level, spread = ops.stop_gradient(level), ops.stop_gradient(spread)
        if self.kind == "difference":
            return history - ops.concatenate([history[:, :1], history[:, :-1]], 1), level, spread
        return (history - level) / spread, level, spread

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[Any, Any, Any]:
        """Return the shapes of the three results."""
        batch, _, channels = input_shape
        return input_shape, (batch, 1, channels), (batch, 1, channels)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "kind": self.kind}
