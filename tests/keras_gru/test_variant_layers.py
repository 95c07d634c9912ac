"""MGU and CoupledGRU as layers: the same as RNN around their cells, with a flat config."""

import keras
import numpy as np
import pytest

from keras_gru import MGU, CoupledGRU, CoupledGRUCell, MGUCell

PAIRS = [(MGU, MGUCell), (CoupledGRU, CoupledGRUCell)]
MASK = np.array([[0, 1, 1, 0, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize(("layer_class", "cell_class"), PAIRS)
@pytest.mark.parametrize("options", [{}, {"return_sequences": True, "go_backwards": True}], ids=str)
def test_layer_equals_rnn_around_the_cell(layer_class, cell_class, options):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, 4)).astype("float32")
    layer = layer_class(6, recurrent_activation="hard_sigmoid", **options)
    rnn = keras.layers.RNN(cell_class(6, recurrent_activation="hard_sigmoid"), **options)
    layer.build(x.shape)
    rnn.build(x.shape)
    weights = [rng.normal(size=w.shape) for w in layer.get_weights()]
    layer.set_weights(weights)
    rnn.set_weights(weights)
    np.testing.assert_array_equal(layer(x, mask=MASK), rnn(x, mask=MASK))


@pytest.mark.parametrize(("layer_class", "cell_class"), PAIRS)
def test_bidirectional_model_survives_saving(layer_class, cell_class, tmp_path):
    model = keras.Sequential(
        [
            keras.Input((None, 4)),
            keras.layers.Bidirectional(layer_class(5, return_sequences=True, use_bias=False)),
            layer_class(3, dtype="float32", name="top"),
        ]
    )
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    x = rng.normal(size=(2, 7, 4)).astype("float32")
    np.testing.assert_array_equal(model(x), again(x))
    config = again.layers[-1].get_config()
    assert layer_class.from_config(config).get_config() == config
    assert isinstance(again.layers[-1].cell, cell_class)


def test_unknown_option_is_named():
    with pytest.raises((TypeError, ValueError), match="colour"):
        MGU(4, colour="red")
