"""A GRU that is fed its own forecasts, one step after the other."""

from typing import Any

import keras
import tensorflow as tf

from keras_gru import GRUCell


@keras.saving.register_keras_serializable(package="gru_training")
class FeedbackGRU(keras.layers.Layer):
    """The decoder of a sequence-to-sequence forecaster (Sutskever et al. 2014, arXiv:1409.3215).

    Training and inference alike feed back the forecast, never the true value, so that both see
    the same inputs.

    Args:
        units: U.
        steps: H, forecasts to make.
        targets: K, values per step.
        outputs: Q, numbers per value.
        fed_back: Which of the Q numbers is fed back, the point forecast.
        dropout: Share of the state dropped on its way to the forecast while training, the same
            features at all steps.
        zero_head: Start with forecasts of zero.

    Call arguments:
        state: (B, U), where to start.
        first: (B, K), the last known values.

    Returns:
        (B, H, K, Q).
    """

    def __init__(
        self,
        units: int,
        steps: int,
        targets: int,
        outputs: int,
        fed_back: int,
        dropout: float = 0.0,
        zero_head: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.units, self.steps, self.targets, self.outputs = units, steps, targets, outputs
        self.fed_back, self.dropout, self.zero_head = fed_back, dropout, zero_head
        self.cell = GRUCell(units, dtype=self.dtype_policy, name="cell")
        self.drop = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        initial = "zeros" if zero_head else "glorot_uniform"
        self.head = keras.layers.Dense(
            targets * outputs, kernel_initializer=initial, dtype=self.dtype_policy, name="head"
        )

    def build(self, state_shape: Any, first_shape: Any = None) -> None:  # noqa: ARG002
        """Create the weights of the cell and of the head."""
        self.cell.build((None, self.targets))
        self.head.build((None, self.units))
        self.built = True

    def call(self, state: Any, first: Any, training: bool = False) -> Any:
        """See the class."""
        kept = self.drop(tf.ones_like(state), training=training)
        first = tf.repeat(first[..., tf.newaxis], self.outputs, axis=-1)

        def advance(before: Any, _: Any) -> Any:
            h, values = before
            h, _ = self.cell(values[..., self.fed_back], h, training=training)
            values = tf.reshape(self.head(h * kept), (-1, self.targets, self.outputs))
            return h, tf.ensure_shape(values, first.shape)

        _, values = tf.scan(advance, tf.range(self.steps), (state, first))
        return tf.transpose(values, (1, 0, 2, 3))

    def compute_output_shape(self, state_shape: Any, first_shape: Any = None) -> Any:  # noqa: ARG002
        """(B, H, K, Q)."""
        return state_shape[0], self.steps, self.targets, self.outputs

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        names = ("units", "steps", "targets", "outputs", "fed_back", "dropout", "zero_head")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
