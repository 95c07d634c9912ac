"""The sum of two tensors, in place of Keras' own, which mistakes some for a bias of channels."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="gru_training")
class TensorSum(keras.layers.Layer):
    """Adds two tensors of the same size or broadcast against each other, as NumPy does.

    With TensorFlow `keras.ops.add`, and so `+` between Keras tensors, takes the second one for a
    bias of channels where all of its sizes but one are 1 and that one is the second or last size
    of the first tensor (Keras 3.15.1, `keras/src/backend/tensorflow/numpy.py`). To (1, 4, 4, 1) it
    adds (1, 1, 4, 1) along the second axis: a batch of one then gets another answer than the same
    row among others.

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
        """See the class."""
        return tf.add(x, y)

    def compute_output_shape(self, x_shape: Any, y_shape: Any) -> Any:
        """The broadcast shape."""
        return tuple(tf.broadcast_static_shape(tf.TensorShape(x_shape), tf.TensorShape(y_shape)))
