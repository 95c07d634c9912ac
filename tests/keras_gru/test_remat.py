"""Layers made in a `keras.RematScope`: the same gradients from less memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.layer.memory import ENVIRONMENT
from keras_gru import GRU
from keras_gru.kernel import sequence as segments

RNG = np.random.default_rng(0)
OPTIONS = {
    "defaults": {},
    "randomness": {"dropout": 0.3, "recurrent_dropout": 0.2, "zoneout": 0.1},
    "backwards": {"return_sequences": True, "go_backwards": True, "reset_after": False},
    "normalised": {"layer_norm": True},
}


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT", 8)


def pair(**options):
    """The same layer twice, the second made in the scope."""
    layers = [GRU(6, seed=3, **options)]
    with keras.RematScope(mode="full"):
        layers.append(GRU(6, seed=3, **options))
    for layer in layers:
        layer.build((None, None, 4))
    layers[1].set_weights(layers[0].get_weights())
    return layers


def gradients(layer, x, mask, run):
    """Outputs, and gradients of the inputs and of all weights."""

    def compute(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, mask=mask, training=True)
            loss = tf.reduce_sum(tf.sin(outputs))
        return [outputs, *tape.gradient(loss, [x, *layer.trainable_variables])]

    return run(compute)(tf.constant(x), tf.constant(mask))


@pytest.mark.slow_cases
@pytest.mark.parametrize("steps", [3, 27])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_gradients(options, steps):
    x = RNG.normal(size=(3, steps, 4)).astype("float32")
    mask = RNG.random((3, steps)) < 0.8
    plain, segmented = (gradients(layer, x, mask, tf.function) for layer in pair(**options))
    for wanted, actual in zip(plain, segmented, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_in_eager_code_and_where_sizes_are_unknown():
    x = RNG.normal(size=(2, 13, 4)).astype("float32")
    mask = np.ones((2, 13), bool)
    specs = [tf.TensorSpec((None, None, 4)), tf.TensorSpec((None, None), tf.bool)]
    plain, segmented = pair()
    wanted = gradients(plain, x, mask, tf.function)
    for run in (lambda f: f, lambda f: tf.function(f, input_signature=specs)):
        for a, b in zip(wanted, gradients(segmented, x, mask, run), strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_training_in_a_bidirectional_wrapper():
    x = RNG.normal(size=(4, 15, 4)).astype("float32")
    names = ["forward_gru", "backward_gru"]  # Keras cannot compute the wrapper itself again
    with keras.RematScope(mode="list_of_layers", layer_names=names):
        layer = keras.layers.Bidirectional(GRU(5, return_sequences=True, name="gru"))
    model = keras.Sequential([keras.Input((15, 4)), layer, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    losses = model.fit(x, x[..., :1], epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no /proc/self/clear_refs")
def test_outputs_and_their_gradients_are_there_once():
    rows, steps, units = 8, 20_000, 64
    command = [sys.executable, "-m", "benchmarks.layer.long", "--worker", "--cases", "all outputs"]
    command += ["--layers", "keras_gru in RematScope", "--shape", f"{rows},{steps},4,{units}"]
    environment = {**os.environ, **ENVIRONMENT, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    outputs = rows * steps * units * 4
    # Twice, and what the segments and their programs need, here about as much again.
    assert json.loads(done.stdout.splitlines()[-1])["bytes"] < 4 * outputs
