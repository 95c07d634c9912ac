"""Whole Keras models: their GRUs replaced by ours, and back."""

import doctest

import keras
import numpy as np
import pytest

import keras_gru
import keras_gru.convert.frameworks
from keras_gru.convert import keras_model
from tests.sequences_with_gaps import sequences_with_gaps

D, U = 5, 4
K = keras.layers


def sequential(options=()):
    return keras.Sequential([keras.Input((None, D)), K.Masking(), K.GRU(U, **dict(options))])


def wrapped():
    inputs = keras.Input((7, D))
    hidden = K.Bidirectional(K.GRU(U, return_sequences=True, reset_after=False))(inputs)
    hidden = K.Reshape((7, 2, U))(hidden)
    hidden = K.TimeDistributed(K.GRU(3, go_backwards=True))(hidden)
    hidden = K.RNN(K.StackedRNNCells([K.GRUCell(4), K.GRUCell(2, use_bias=False)]))(hidden)
    return keras.Model(inputs, K.Dense(2)(hidden))


def nested():
    inputs = keras.Input((None, D))
    inner = keras.Sequential([keras.Input((None, D)), K.GRU(U, return_sequences=True)])
    shared = K.GRU(3)
    hidden = inner(inputs)
    return keras.Model(inputs, [shared(hidden), shared(hidden[:, ::-1]), K.Dense(1)(hidden)])


def libraries(model):
    return {
        type(layer).__module__.split(".")[0]
        for layer in model._flatten_layers()
        if isinstance(layer, keras_gru.GRU | keras_gru.GRUCell | K.GRU | K.GRUCell)
    }


def randomise(model):
    rng = np.random.default_rng(2)
    model.set_weights([rng.normal(size=w.shape) / 2 for w in model.get_weights()])


def assert_same(model, other, x):
    for ours, theirs in zip(
        keras.tree.flatten(model(x)), keras.tree.flatten(other(x)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)


@pytest.mark.parametrize("make", [sequential, wrapped, nested])
def test_there_and_back(make, tmp_path):
    x, mask = sequences_with_gaps()
    x[~mask] = 0
    model = make()
    randomise(model)
    ours = keras_model(model)
    assert libraries(model) == {"keras"}, "the old model stays as it is"
    assert libraries(ours) == {"keras_gru"}
    assert_same(model, ours, x)
    ours.save(tmp_path / "m.keras")
    back = keras_model(tmp_path / "m.keras", to="keras")
    assert libraries(back) == {"keras"}
    assert_same(model, back, x)


@pytest.mark.slow
def test_the_same_training_steps(tmp_path):
    x = sequences_with_gaps()[0]
    model = sequential({"dropout": 0.3, "recurrent_dropout": 0.4, "seed": 3}.items())
    model.compile("sgd", "mse", jit_compile=False)
    randomise(model)
    model.save(tmp_path / "m.keras")
    ours = keras_model(tmp_path / "m.keras")
    targets = np.random.default_rng(4).normal(size=(3, U))
    for each in (model, ours):
        each.fit(x, targets, epochs=3, batch_size=3, shuffle=False, verbose=0)
    for mine, theirs in zip(ours.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-6)


def test_the_other_update_convention_goes_back_as_keras_has_it():
    x = sequences_with_gaps()[0]
    model = keras.Sequential(
        [
            keras.Input((None, D)),
            K.Bidirectional(keras_gru.GRU(U, update_gate="replace", return_sequences=True)),
            K.RNN(keras_gru.GRUCell(3, update_gate="replace")),
        ]
    )
    randomise(model)
    assert_same(model, keras_model(model, to="keras"), x)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (lambda: keras_gru.GRU(U, zoneout=0.1, name="mine"), "'mine' must have zoneout=0.0"),
        (lambda: keras_gru.GRU(U, layer_norm=True, name="mine"), "'mine' must have layer_norm"),
        (lambda: keras_gru.GRU(U, dropconnect=0.1, name="mine"), "'mine' must have dropconnect"),
        (lambda: keras_gru.GRUEncoder(U, name="mine"), "'mine' must be a GRU.*a GRUEncoder"),
        (lambda: K.GRU(U), "must have a GRU or a GRUCell of keras_gru"),
    ],
)
def test_what_keras_lacks_is_refused_by_name(layer, told):
    model = keras.Sequential([keras.Input((None, D)), layer()])
    with pytest.raises(ValueError, match=told):
        keras_model(model, to="keras")


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"`to` must be one of \('keras_gru', 'keras'\)"):
        keras_model(sequential(), to="torch")
    with pytest.raises(ValueError, match="must be built"):
        keras_model(keras.Sequential([K.GRU(3)]))
    with pytest.raises(ValueError, match=r"GRUCell of keras.layers.*Received: layers \['Dense'\]"):
        keras_model(keras.Sequential([keras.Input((3,)), K.Dense(1)]))


def test_custom_objects_do_not_replace_keras_own_layers(tmp_path):
    """The limitation that the docstring warns of; the test notices if Keras changes."""
    sequential().save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects={"GRU": keras_gru.GRU})
    assert libraries(loaded) == {"keras"}


@pytest.mark.parametrize("step", ["normalization", "vectorization"])
def test_what_a_preprocessing_layer_has_adapted_to_is_kept(step):
    if step == "normalization":
        data = np.random.default_rng(0).normal(5, 2, (4, 6, 3)).astype("float32")
        first = [keras.Input((None, 3)), keras.layers.Normalization()]
    else:
        data = np.array(["a good film", "bad film", "a bad one"], object)
        first = [keras.Input((), dtype="string"), keras.layers.TextVectorization(9)]
    first[1].adapt(data)
    embedding = [] if step == "normalization" else [keras.layers.Embedding(9, 3)]
    theirs = keras.Sequential([*first, *embedding, keras.layers.GRU(4)])
    data = keras.ops.convert_to_tensor(data)
    for model in (ours := keras_model(theirs), keras_model(ours, to="keras")):
        np.testing.assert_allclose(model(data), theirs(data), atol=1e-6)


def test_example():
    results = doctest.testmod(keras_gru.convert.frameworks, extraglobs={"keras": keras})
    assert (results.attempted, results.failed) == (3, 0)


def test_a_state_given_to_a_layer_survives_a_file(tmp_path):
    """Keras passed `build` the saved shape of the state under a name that it did not accept."""
    inputs, state = keras.Input((None, D)), keras.Input((U,))
    model = keras.Model([inputs, state], keras_gru.GRU(U)(inputs, initial_state=state))
    x = sequences_with_gaps()[0]
    h = np.random.default_rng(5).normal(size=(3, U)).astype("float32")
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded([x, h]), model([x, h]))
