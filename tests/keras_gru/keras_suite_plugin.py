"""pytest plugin for Keras' own test files: replaces `keras.layers.GRU` and `GRUCell` with ours."""

import keras.src.layers

import keras_gru

keras.src.layers.GRU = keras_gru.GRU
keras.src.layers.GRUCell = keras_gru.GRUCell


def pytest_configure(config):
    config.addinivalue_line("markers", "requires_trainable_backend: used by Keras' own tests")
