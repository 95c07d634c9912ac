"""`model.quantize("int8")`: the kernels, and therefore the files, shrink to a quarter."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell, GRUEncoder
from keras_gru.convert import GRUWeights
from tests.sequences_with_gaps import sequences_with_gaps

# Keras warns about its own layers InputLayer and Dropout; it must not warn about ours.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Layer (InputLayer|Dropout) does not have:UserWarning"
)

D, U = 5, 6
K = keras.layers

MODELS = {
    "layer": lambda: GRU(U, return_sequences=True),
    "reset before, no bias": lambda: GRU(U, reset_after=False, use_bias=False),
    "all options": lambda: GRU(U, layer_norm=True, learn_initial_state=True, zoneout=0.1),
    "bidirectional": lambda: K.Bidirectional(GRU(U, return_sequences=True)),
    "encoder": lambda: GRUEncoder(U, num_layers=2, bidirectional=True),
    "cells": lambda: K.RNN(K.StackedRNNCells([GRUCell(U), GRUCell(3)])),
    "bfloat16": lambda: GRU(U, dtype="mixed_bfloat16"),
}


def build(make):
    keras.utils.set_random_seed(3)
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, K.Dense(2)(make()(inputs)))
    rng = np.random.default_rng(2)
    model.set_weights([rng.normal(size=w.shape) / 2 for w in model.get_weights()])
    return model


def rounded(kernel):
    """Each column in steps of 1/127 of its largest value: int8 computed by hand."""
    step = abs(kernel).max(axis=0) / 127
    return np.round(kernel / step) * step


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=() if name == "layer" else pytest.mark.long)
        for name, make in MODELS.items()
    ],
)
def test_quantized_saved_and_loaded(make, tmp_path):
    x = sequences_with_gaps()[0]
    model, plain = build(make), build(make)
    model.quantize("int8")
    # The same float model with kernels rounded by hand.
    for layer in plain._flatten_layers():
        if isinstance(layer, GRUCell):
            layer.kernel.assign(rounded(np.asarray(layer.kernel)))
            layer.recurrent_kernel.assign(rounded(np.asarray(layer.recurrent_kernel)))
    plain.layers[-1].quantize("int8")
    tolerance = 2e-2 if make is MODELS["bfloat16"] else 1e-5
    wanted = plain(x)
    np.testing.assert_allclose(model(x), wanted, rtol=0, atol=tolerance)
    np.testing.assert_allclose(model.predict(x, verbose=0), wanted, rtol=0, atol=tolerance)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    dtypes = {w.path.split("/")[-1]: w.dtype for w in loaded.weights if "cell" in w.path}
    assert dtypes["kernel"] == dtypes["recurrent_kernel"] == "int8"
    np.testing.assert_array_equal(loaded(x), model(x))
    again = keras.Model.from_config(loaded.get_config())
    again.set_weights(loaded.get_weights())
    np.testing.assert_array_equal(again(x), model(x))


def test_files_and_exports_hold_int8(tmp_path):
    sizes = {}
    x = np.random.default_rng(5).normal(size=(2, 4, 64)).astype("float32")
    for name in ("float", "int8"):
        model = keras.Sequential([keras.Input((None, 64)), GRU(128)])
        if name == "int8":
            model.quantize("int8")
        model.save(tmp_path / f"{name}.keras")
        wanted = model(x)
        model.export(tmp_path / name, verbose=False)
        loaded = tf.saved_model.load(tmp_path / name)
        np.testing.assert_allclose(loaded.serve(x), wanted, rtol=0, atol=1e-6)
        data = next((tmp_path / name / "variables").glob("*.data*"))
        sizes[name] = (tmp_path / f"{name}.keras").stat().st_size, data.stat().st_size
    values = 128 * 3 * (64 + 128)
    for whole, small in zip(sizes["float"], sizes["int8"], strict=True):
        assert whole - small > 2.8 * values, "three of four bytes are gone"


@pytest.mark.slow
def test_training_goes_on_around_the_kernels():
    model = build(MODELS["layer"])
    model.quantize("int8")
    names = {w.path.split("/")[-1] for w in model.layers[1].trainable_weights}
    assert names == {"bias"}
    model.compile("sgd", "mse")
    x = sequences_with_gaps()[0]
    losses = model.fit(x, np.ones((3, 7, 2)), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_other_modes_are_told_of():
    model = build(MODELS["layer"])
    with pytest.warns(UserWarning, match=r"'gru_cell' can be quantized to 'int8' only.*'float8'"):
        model.quantize("float8")


def test_weights_can_be_read_but_not_assigned():
    layer = GRU(U)
    layer.build((None, None, D))
    before = GRUWeights.of(layer)
    layer.quantize("int8")
    after = GRUWeights.of(layer)
    np.testing.assert_allclose(after.kernel, rounded(before.kernel), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"'gru.*' must not be quantized"):
        before.assign_to(layer)
