"""The moving average of weights, which does better than the last ones where these jitter."""

from typing import Any

import tensorflow as tf

from gru_training.language.network.model import LanguageModel

_EVERY = 8
"""Steps between two updates: a large table takes long to read."""


class MovingAverage:
    """A second model, whose weights follow those of the first.

    Args:
        model: That is trained.
        follower: A model of the same sizes; gets the averages.
        kept: Share of the average that is kept at each step; at the beginning less, so that the
            initial weights are soon forgotten.
    """

    def __init__(self, model: LanguageModel, follower: LanguageModel, kept: float):
        self.model, self.follower, self._kept = model, follower, kept
        follower.set_weights(model.get_weights())

    def follow(self, step: Any) -> None:
        """After a step of this number, from 1, move the averages; in a graph."""

        def move() -> Any:
            number = tf.cast(tf.convert_to_tensor(step), tf.float32)
            kept = tf.minimum(self._kept, (1 + number) / (10 + number)) ** _EVERY
            for own, average in zip(
                self.model.trainable_variables, self.follower.trainable_variables, strict=True
            ):
                average.value.assign_sub((1 - kept) * (average.value - own.value))
            return tf.constant(True)

        tf.cond(tf.equal(step % _EVERY, 0), move, lambda: tf.constant(False))
