"""Settings, files and precisions of the layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell
from tests.keras_gru.layer.twins import inputs

FULL_CONFIG = {
    "units": 3,
    "activation": "relu",
    "recurrent_activation": "hard_sigmoid",
    "use_bias": False,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "glorot_normal",
    "kernel_regularizer": "l2",
    "recurrent_constraint": "max_norm",
    "activity_regularizer": "l1",
    "dropout": 0.25,
    "recurrent_dropout": 0.5,
    "seed": 7,
    "return_sequences": True,
    "return_state": True,
    "go_backwards": True,
    "stateful": True,
    "unroll": True,
    "reset_after": False,
    "zero_output_for_mask": True,
    "use_cudnn": False,
    "update_gate": "replace",
    "implementation": 1,
    "zoneout": 0.1,
    "dropconnect": 0.2,
    "layer_norm": True,
    "learn_initial_state": True,
    "name": "mine",
}


def test_config_round_trips_every_argument():
    layer = GRU(**FULL_CONFIG)
    config = layer.get_config()
    again = GRU.from_config(config)
    assert again.get_config() == config
    for key, value in FULL_CONFIG.items():
        if isinstance(value, int | float | bool | str) and isinstance(
            getattr(again, key), int | float | bool | str
        ):
            assert getattr(again, key) == value, key
    revived = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert isinstance(revived, GRU)
    assert revived.get_config() == config


def test_attributes_of_the_cell_cannot_be_set_on_the_layer():
    given = [name for name, v in vars(keras.layers.GRU).items() if isinstance(v, property)]
    assert "dropout" in given
    for name in [*given, "zoneout"]:
        layer = GRU(3)
        with pytest.raises(AttributeError, match=f"`{name}` .*: {name}=0.5"):
            setattr(layer, name, 0.5)


def of_each_weight():
    """Initializers, regularizers and constraints, all different from each other."""
    return {
        f"{weight}_{role}": make(0.1 * (i + 1))
        for i, weight in enumerate(("kernel", "recurrent", "bias"))
        for role, make in (
            ("initializer", keras.initializers.Constant),
            ("regularizer", keras.regularizers.L1),
            ("constraint", keras.constraints.MaxNorm),
        )
    }


@pytest.mark.parametrize(
    ("keras_class", "our_class"),
    [(keras.layers.GRU, GRU), (keras.layers.GRUCell, GRUCell)],
    ids=["GRU", "GRUCell"],
)
def test_what_is_asked_for_each_weight_reaches_it_as_in_keras(keras_class, our_class):
    theirs = keras_class(4, **of_each_weight())
    ours = our_class(4, **of_each_weight())
    again = our_class.from_config(ours.get_config())
    for layer in (theirs, ours, again):
        layer.build((2, 3, 5) if our_class is GRU else (2, 5))
    for layer in (ours, again):
        for name in of_each_weight():
            wanted = keras.saving.serialize_keras_object(getattr(theirs, name))
            assert keras.saving.serialize_keras_object(getattr(layer, name)) == wanted, name
            assert layer.get_config()[name] == theirs.get_config()[name], name
        np.testing.assert_allclose(layer.losses, theirs.losses, rtol=1e-6)
        for weight, theirs_weight in zip(layer.weights[:3], theirs.weights[:3], strict=True):
            assert weight.name == theirs_weight.name
            np.testing.assert_array_equal(weight, theirs_weight)
            assert weight.constraint.max_value == theirs_weight.constraint.max_value


def test_saved_model_file_keeps_values(tmp_path):
    model = keras.Sequential(
        [
            keras.layers.Input((None, 4)),
            keras.layers.Bidirectional(GRU(5, return_sequences=True, update_gate="replace")),
            keras.layers.RNN(GRUCell(3, reset_after=False)),
        ]
    )
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    x, _ = inputs()
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(model(x), loaded(x))
    assert isinstance(loaded.layers[0].forward_layer, GRU)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", ["auto", False, True])
def test_fit_learns(jit_compile):
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(256, 8, 3)).astype("float32")
    y = (x[:, 0, 0] > x[:, -1, 1]).astype("float32")
    model = keras.Sequential([GRU(16, dropout=0.1), keras.layers.Dense(1)])
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.BinaryCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    # Keras warns if a layer keeps the model from being compiled as a whole.
    assert model.jit_compile == (jit_compile is True)
    losses = model.fit(x, y, batch_size=32, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_unrolled_layer_converts_to_tensorflow_lite(tmp_path):
    model = keras.Sequential([keras.Input((6, 3)), GRU(4, unroll=True, update_gate="replace")])
    model.export(tmp_path, verbose=False)
    converted = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    runner = tf.lite.Interpreter(model_content=converted).get_signature_runner()
    (name,) = runner.get_input_details()
    x = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
    (answer,) = runner(**{name: x}).values()
    np.testing.assert_allclose(answer, model(x), atol=1e-6)


@pytest.mark.parametrize(
    ("outer", "inner"), [("mixed_float16", "float32"), ("float32", "mixed_float16")]
)
def test_inside_a_wrapper_of_another_precision(outer, inner):
    """TimeDistributed runs `call` itself, with variables that its own policy has cast."""
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 4)).astype("float32")
    plain = keras.layers.GRU(3)
    wrapped = keras.layers.TimeDistributed(GRU(3, dtype=inner), dtype=outer)
    wrapped.build(x.shape)
    plain.build((2, 5, 4))
    wrapped.set_weights(plain.get_weights())
    wanted = np.stack([plain(x[:, t]) for t in range(3)], 1)
    np.testing.assert_allclose(tf.cast(wrapped(x), tf.float32), wanted, atol=0.003)
