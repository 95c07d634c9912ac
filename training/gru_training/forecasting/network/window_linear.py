"""A linear map from a window to its forecast, as a layer."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="gru_training")
class WindowLinear(keras.layers.Layer):
    """last · share + (window - last) · kernel, for each of the K targets; it is not trained.

    Args:
        lookback: L, steps read: the last ones.
        horizon: H.
        targets: The K column numbers that are forecast.
        own: Whether each target has a matrix to itself.
        share: What is left of the window's last value.

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
        """See the class."""
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
        """The constructor's arguments."""
        config = {key: value for key, value in super().get_config().items() if key != "trainable"}
        names = ("lookback", "horizon", "targets", "own", "share")
        return {**config, **{name: getattr(self, name) for name in names}}
