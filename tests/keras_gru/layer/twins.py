"""A Keras layer and ours with the same weights, and what both compute."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from keras_gru import GRU

MASK = np.array([[0, 0, 1, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], bool)


def twins(keras_class=keras.layers.GRU, our_class=GRU, units=5, features=4, **options):
    """A Keras layer and ours with the same asymmetric random weights."""
    theirs = keras_class(units, **options, **({"use_cudnn": False} if our_class is GRU else {}))
    ours = our_class(units, **options)
    rng = np.random.default_rng(0)
    for layer in (theirs, ours):
        layer.build((3, 6, features) if our_class is GRU else (3, features))
    weights = [rng.normal(size=w.shape).astype("float32") for w in theirs.get_weights()]
    theirs.set_weights(weights)
    ours.set_weights(weights)
    return theirs, ours


def inputs(units=5, features=4):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 6, features)).astype("float32")
    return tf.constant(x), tf.constant(rng.normal(size=(3, units)).astype("float32"))


def outputs_and_gradients(layer, x, h0, mask):
    with tf.GradientTape() as tape:
        tape.watch([x, h0])
        results = layer(x, initial_state=h0, mask=mask)
        results = list(results) if isinstance(results, list | tuple) else [results]
        weigh = [np.random.default_rng(i).normal(size=r.shape) for i, r in enumerate(results)]
        loss = tf.add_n(
            [tf.reduce_sum(r * tf.cast(w, r.dtype)) for r, w in zip(results, weigh, strict=True)]
        )
    return results, tape.gradient(loss, [x, h0, *layer.trainable_variables])


OPTIONS = [
    {"reset_after": reset_after, "go_backwards": go_backwards, **returns}
    for reset_after, go_backwards, returns in itertools.product(
        (True, False),
        (False, True),
        (
            {},
            {"return_sequences": True},
            {"return_sequences": True, "return_state": True},
            {"return_sequences": True, "zero_output_for_mask": True},
            {"return_state": True, "zero_output_for_mask": True, "use_bias": False},
        ),
    )
]
