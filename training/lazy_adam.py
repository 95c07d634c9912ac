"""Adam that passes over the words that a batch does not hold."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="training")
class LazyAdam(keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015, algorithm 1) that updates only the rows a sparse gradient holds.

    A batch has a gradient for few rows of an embedding. Keras' Adam moves all rows at every step,
    as the moments of earlier gradients go on to act; here the other rows and their moments stay as
    they are, as with ``torch.optim.SparseAdam``, and a step costs what the batch's words cost. With
    ``amsgrad``, and where a gradient is dense, it is Keras' Adam.

    A sparse gradient must hold each row once, as those of
    :func:`training.loop.make_train_step` do.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates a variable and its moments; ``gradient`` may be ``tf.IndexedSlices``."""
        if self.amsgrad or not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        rows, values = gradient.indices, tf.cast(gradient.values, variable.dtype)
        index = self._get_variable_index(variable)
        first, second = self._momentums[index].value, self._velocities[index].value
        m, v = tf.gather(first, rows), tf.gather(second, rows)
        m += (1 - self.beta_1) * (values - m)
        v += (1 - self.beta_2) * (tf.square(values) - v)
        step = tf.cast(self.iterations + 1, variable.dtype)
        alpha = tf.cast(learning_rate, variable.dtype)
        alpha *= tf.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        first.scatter_update(tf.IndexedSlices(m, rows))
        second.scatter_update(tf.IndexedSlices(v, rows))
        variable.scatter_sub(tf.IndexedSlices(alpha * m / (tf.sqrt(v) + self.epsilon), rows))
