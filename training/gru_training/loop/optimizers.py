"""Adam for large tables, of which only the rows used by a batch are moved."""

from typing import Any

import keras
import tensorflow as tf

from gru_training.config import TrainingConfig


def learning_rate_schedule(settings: TrainingConfig, steps: int) -> Any:
    """Make the schedule of the learning rate, with `steps` training steps per epoch."""
    rate = settings.learning_rate
    if settings.schedule == "constant":
        return rate
    if settings.schedule == "cosine":
        return keras.optimizers.schedules.CosineDecay(rate, settings.epochs * steps)
    return EpochDecay(rate, steps)


_CONSTANT_EPOCHS, _SHARE_KEPT = 4, 0.8


@keras.saving.register_keras_serializable(package="gru_training")
class EpochDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that is constant in the first four epochs, then multiplied by 0.8 per epoch.

    Args:
        rate: Learning rate of the first epochs.
        steps: Training steps per epoch.
    """

    def __init__(self, rate: float, steps: int):
        self.rate, self.steps = rate, steps

    def __call__(self, step: Any) -> tf.Tensor:
        """Return the learning rate of a step, counted from 0."""
        epoch = tf.cast(step, tf.int64) // self.steps
        fallen = tf.cast(tf.maximum(epoch - _CONSTANT_EPOCHS + 1, 0), tf.float32)
        return self.rate * tf.pow(_SHARE_KEPT, fallen)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"rate": self.rate, "steps": self.steps}


class SparseAdam(keras.optimizers.Adam):
    """Adam that leaves moments and values of a table's unused rows unchanged.

    Adam moves every row in each step, since the moments of a row decay while its gradient is zero.
    For a gradient with row numbers (`tf.IndexedSlices`, that of an embedding), this optimizer reads
    and writes only these rows; all other variables are updated as in Adam. It is the "lazy" variant
    of TensorFlow Addons and of PyTorch's `SparseAdam`.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable; the rows of a sparse gradient must be distinct."""
        if not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        m, v = self._momentums[index].value, self._velocities[index].value
        rows, values = gradient.indices, tf.cast(gradient.values, variable.dtype)
        step = tf.cast(self.iterations + 1, variable.dtype)
        scale = tf.sqrt(1 - tf.pow(self.beta_2, step)) / (1 - tf.pow(self.beta_1, step))
        # (R, D) each
        m_rows, v_rows = tf.gather(m, rows), tf.gather(v, rows)
        m_rows += (values - m_rows) * (1 - self.beta_1)
        v_rows += (tf.square(values) - v_rows) * (1 - self.beta_2)
        m.scatter_update(tf.IndexedSlices(m_rows, rows))
        v.scatter_update(tf.IndexedSlices(v_rows, rows))
        moved = tf.cast(learning_rate, variable.dtype) * scale * m_rows
        moved /= tf.sqrt(v_rows) + self.epsilon
        raw = variable.value if isinstance(variable, keras.Variable) else variable
        raw.scatter_sub(tf.IndexedSlices(moved, rows))
