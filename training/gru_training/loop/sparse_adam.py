"""Adam that moves only the rows of a table which a batch has used."""

from typing import Any

import keras
import tensorflow as tf


class SparseAdam(keras.optimizers.Adam):
    """Adam whose moments and values of a table's unused rows stay what they are.

    Adam moves every row in each step, since the moments of a row decay while its gradient is zero.
    Where a gradient says which rows it is of (`tf.IndexedSlices`, that of an embedding), this one
    reads and writes those rows only; everything else it updates as Adam does. That is the "lazy"
    variant of TensorFlow Addons and of PyTorch's `SparseAdam`.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Move one variable; the rows of a sparse gradient must differ from each other."""
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
