"""Layers with random weights, how to run them from any state, and central differences."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from keras_gru import GRU

B, T, D, U = 3, 6, 4, 5
MASK = np.array([[0, 0, 1, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], bool)
CONVENTIONS = list(itertools.product((True, False), ("keep", "replace")))
LAYERS = {
    "gru": GRU,
    "keras gru": keras.layers.GRU,
    "lstm": keras.layers.LSTM,
    "rnn": keras.layers.SimpleRNN,
}


def problem(layer_class=GRU, seed=0, **options):
    layer = layer_class(U, dtype="float64", **options)
    layer.build((None, None, D))
    rng = np.random.default_rng(seed)
    layer.set_weights([0.7 * rng.normal(size=w.shape) for w in layer.get_weights()])
    states = [rng.normal(size=(B, U)) for _ in tf.nest.flatten(layer.cell.state_size)]
    return layer, rng.normal(size=(B, T, D)), np.concatenate(states, -1)


def runner(layer):
    """(x, h, mask) → the state (N, S) after the layer has run from h; N is a multiple of B."""
    twin = type(layer).from_config({**layer.get_config(), "return_state": True})
    twin.build((None, None, D))
    twin.set_weights(layer.get_weights())

    def final_state(x, h, mask):
        if x.shape[1] == 0:
            return h
        copies = len(h) // B
        start = [tf.constant(part) for part in np.split(h, h.shape[-1] // U, -1)]
        mask = None if mask is None else np.tile(mask, (copies, 1))
        _, *states = twin(np.tile(x, (copies, 1, 1)), initial_state=start, mask=mask)
        return np.concatenate(states, -1)

    return final_state


def central_differences(function, h, size=1e-5):
    """Jacobians (B, S, S) of a function of states (2·S·B, S) that treats rows independently."""
    S = h.shape[-1]
    steps = size * np.concatenate([np.eye(S), -np.eye(S)])[:, np.newaxis]  # (2S, 1, S)
    values = function((h + steps).reshape(-1, S)).reshape(2, S, len(h), -1)
    return np.moveaxis((values[0] - values[1]) / (2 * size), 0, -1)
