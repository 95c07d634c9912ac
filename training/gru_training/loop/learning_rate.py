"""The learning rate over the steps of a training."""

from typing import Any

import keras
import tensorflow as tf

from gru_training.config import TrainingConfig


def learning_rate_schedule(settings: TrainingConfig, steps: int) -> Any:
    """The learning rate over the training steps, `steps` of them per epoch."""
    rate = settings.learning_rate
    if settings.schedule == "constant":
        return rate
    if settings.schedule == "cosine":
        return keras.optimizers.schedules.CosineDecay(rate, settings.epochs * steps)
    return EpochDecay(rate, steps)


@keras.saving.register_keras_serializable(package="gru_training")
class EpochDecay(keras.optimizers.schedules.LearningRateSchedule):
    """The rate of the first epochs, then each epoch's a fixed share of the one before.

    Args:
        rate: Learning rate of the first epochs.
        steps: Training steps per epoch.
        constant: Epochs at the full rate.
        share: Of the epoch before.
    """

    def __init__(self, rate: float, steps: int, constant: int = 4, share: float = 0.8):
        self.rate, self.steps, self.constant, self.share = rate, steps, constant, share

    def __call__(self, step: Any) -> tf.Tensor:
        """The learning rate of a step, counted from 0."""
        epoch = tf.cast(step, tf.int64) // self.steps
        fallen = tf.cast(tf.maximum(epoch - self.constant + 1, 0), tf.float32)
        return self.rate * tf.pow(self.share, fallen)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "rate": self.rate,
            "steps": self.steps,
            "constant": self.constant,
            "share": self.share,
        }
