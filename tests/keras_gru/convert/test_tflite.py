"""Models as TensorFlow Lite files, run in its interpreter."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUEncoder
from keras_gru.convert import to_tflite
from tests.sequences_with_gaps import sequences_with_gaps

# TensorFlow warns that the interpreter has moved to another package.
pytestmark = pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter:UserWarning")

D, U = 5, 4
K = keras.layers

LAYERS = {
    "last": lambda: GRU(U),
    "all": lambda: GRU(U, return_sequences=True),
    "backwards": lambda: GRU(U, return_sequences=True, go_backwards=True),
    "reset before": lambda: GRU(U, return_sequences=True, reset_after=False),
    "zoneout": lambda: GRU(U, zoneout=0.2, dropout=0.3, recurrent_dropout=0.2),
    "hard": lambda: GRU(U, activation="relu", recurrent_activation="hard_sigmoid", use_bias=False),
    "learned state": lambda: GRU(U, learn_initial_state=True, return_sequences=True),
    "both directions": lambda: K.Bidirectional(GRU(U, return_sequences=True)),
    "encoder": lambda: GRUEncoder(U, num_layers=2, bidirectional=True),
    "masked": lambda: keras.Sequential([K.Masking(), GRU(U, return_sequences=True)]),
}


def build(layer, batch, steps):
    inputs = keras.Input((steps, D), batch_size=batch)
    model = keras.Model(inputs, layer(inputs))
    rng = np.random.default_rng(2)
    model.set_weights([rng.normal(size=w.shape) / 2 for w in model.get_weights()])
    return model


def run(content, x):
    interpreter = tf.lite.Interpreter(model_content=content)
    (given,) = interpreter.get_input_details()
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    (result,) = interpreter.get_output_details()
    return interpreter.get_tensor(result["index"])


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("batch", "steps"),
    [
        pytest.param(1, 7, marks=pytest.mark.slow),
        pytest.param(1, None, marks=pytest.mark.slow),
        (None, None),
    ],
)
def test_float32(name, batch, steps):
    model = build(LAYERS[name](), batch, steps)
    x, mask = sequences_with_gaps()
    x[~mask] = 0
    content = to_tflite(model)
    cases = [x[:1]] if batch else [x, x[1:]]
    if steps is None:
        cases.append(x[:batch, :3])
    for fed in cases:
        np.testing.assert_allclose(run(content, fed), model(fed), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantize", "share", "close"), [("float16", 0.6, 2e-3), ("int8", 0.4, 3e-2)]
)
def test_smaller_files(quantize, share, close, tmp_path):
    inputs = keras.Input((20, 16), batch_size=1)
    model = keras.Model(inputs, GRU(128)(inputs))
    x = np.random.default_rng(3).normal(size=(1, 20, 16)).astype("float32")
    small, whole = to_tflite(model, tmp_path / "m.tflite", quantize=quantize), to_tflite(model)
    assert (tmp_path / "m.tflite").read_bytes() == small
    assert len(small) < share * len(whole)
    np.testing.assert_allclose(run(small, x), model(x), rtol=0, atol=close)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "int8"])
@pytest.mark.parametrize("wrap", [lambda layer: layer, K.Bidirectional], ids=["one", "both"])
@pytest.mark.parametrize("steps", [50, None])
def test_files_are_no_larger_than_those_of_keras(wrap, steps, quantize):
    sizes = []
    for gru in (GRU, K.GRU):
        inputs = keras.Input((steps, 8), batch_size=1)
        sizes.append(len(to_tflite(keras.Model(inputs, wrap(gru(64))(inputs)), quantize=quantize)))
    assert sizes[0] <= 1.02 * sizes[1]


@pytest.mark.slow
def test_several_inputs_keep_their_names():
    inputs, state = keras.Input((None, D), name="x"), keras.Input((U,), name="h")
    model = keras.Model({"x": inputs, "h": state}, GRU(U)(inputs, initial_state=state))
    interpreter = tf.lite.Interpreter(model_content=to_tflite(model))
    runner = interpreter.get_signature_runner()
    x, h = sequences_with_gaps()[0], np.random.default_rng(4).normal(size=(3, U)).astype("float32")
    (got,) = runner(x=x, h=h).values()
    np.testing.assert_allclose(got, model({"x": x, "h": h}), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_sequential_that_was_never_called():
    model = keras.Sequential([keras.Input((7, D), batch_size=1), GRU(U)])
    x, _ = sequences_with_gaps()
    np.testing.assert_allclose(run(to_tflite(model), x[:1]), model(x[:1]), rtol=0, atol=1e-5)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"`quantize` must be one of.*'int4'"):
        to_tflite(build(GRU(U), 1, 7), quantize="int4")
    with pytest.raises(ValueError, match="must be a Sequential or functional model"):
        to_tflite(keras.Sequential([GRU(U)]))


def test_the_export_of_keras(tmp_path):
    model = build(K.Bidirectional(GRU(U, return_sequences=True)), None, None)
    x = sequences_with_gaps()[0]
    wanted = model(x)
    model.export(tmp_path / "m.tflite", format="litert", verbose=False)
    got = run((tmp_path / "m.tflite").read_bytes(), x)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
