"""The graphs of one test file do not stay in memory for all that follow."""

import gc
import weakref

import pytest
import tensorflow as tf

from keras_gru import GRU
from tests.traced_graphs import release_graphs


@pytest.mark.slow
def test_a_function_that_nobody_has_any_more_leaves_no_graph():
    def trace():
        layer = GRU(3)
        function = tf.function(lambda x: layer(x, training=True))
        x = tf.ones((2, 5, 4))
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(function(x))
        assert all(each is not None for each in tape.gradient(total, layer.trainable_variables))
        return weakref.ref(function.get_concrete_function(x).graph)

    graph = trace()
    gc.collect()
    assert graph() is not None  # else TensorFlow has mended this, and `release_graphs` can go
    release_graphs()
    assert graph() is None
    release_graphs()
    assert trace()() is not None
