"""Models of public examples with our GRU: same results as with Keras' own, in every file format."""

import functools

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from keras_gru.convert import keras_model, to_onnx_model, to_tflite
from tests.ecosystem import model_shapes

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter:UserWarning"),
    # tf2onnx, and what Keras patches in it
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

every_model = pytest.mark.parametrize("shape", model_shapes.ALL, ids=lambda shape: shape.__name__)
onnx_models = pytest.mark.parametrize(
    "shape", model_shapes.NATIVE, ids=lambda shape: shape.__name__
)


@functools.cache
def example(shape):
    """A model with our GRUs, its inputs, and the answers of the same model with Keras' GRUs."""
    rng = np.random.default_rng(7)
    theirs = shape(keras.layers.GRU)
    theirs.set_weights(
        [
            abs(w) if "variance" in variable.path else rng.normal(size=w.shape) / 2
            for variable, w in zip(theirs.weights, theirs.get_weights(), strict=True)
        ]
    )
    inputs = [values(rng, tensor) for tensor in theirs.inputs]
    model = keras_model(theirs)
    model(inputs if len(inputs) > 1 else inputs[0])  # otherwise Keras refuses to export it
    return model, inputs, answers(theirs, inputs)


def values(rng, tensor):
    """Three rows for an input: tokens with padding at the end, masks with gaps."""
    size = (3, *(7 if axis is None else axis for axis in tensor.shape[1:]))
    if tensor.dtype == "int32":
        tokens = rng.integers(1, 20, size).astype("int32")
        tokens[0, ..., -2:] = 0
        return tokens
    if tensor.dtype == "bool":
        return rng.random(size) < 0.7
    return rng.normal(size=size).astype("float32")


def answers(model, inputs):
    outputs = model(inputs if len(inputs) > 1 else inputs[0])
    return [np.asarray(output) for output in keras.tree.flatten(outputs)]


def assert_close(got, wanted):
    assert len(got) == len(wanted)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5)


def run_onnx(path, inputs):
    session = onnxruntime.InferenceSession(str(path))
    names = [given.name for given in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


@pytest.mark.slow_cases
@every_model
def test_equal_to_keras_saved_and_loaded(shape, tmp_path):
    model, inputs, wanted = example(shape)
    assert_close(answers(model, inputs), wanted)
    model.save(tmp_path / "m.keras")
    assert_close(answers(keras.models.load_model(tmp_path / "m.keras"), inputs), wanted)


@pytest.mark.long
@every_model
def test_saved_model(shape, tmp_path):
    model, inputs, wanted = example(shape)
    model.export(tmp_path / "m", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "m")
    served = loaded.serve(inputs if len(inputs) > 1 else inputs[0])
    assert_close(keras.tree.flatten(served), wanted)


@onnx_models
def test_onnx_of_our_own(shape, tmp_path):
    model, inputs, wanted = example(shape)
    to_onnx_model(model, tmp_path / "m.onnx")
    assert_close(run_onnx(tmp_path / "m.onnx", inputs), wanted)


@every_model
def test_onnx_of_keras(shape, tmp_path):
    pytest.importorskip("tf2onnx", reason="Keras exports to ONNX through tf2onnx")
    model, inputs, wanted = example(shape)
    model.export(str(tmp_path / "m.onnx"), format="onnx", verbose=False)
    assert_close(run_onnx(tmp_path / "m.onnx", inputs), wanted)


@pytest.mark.long
@every_model
def test_tflite(shape):
    model, inputs, wanted = example(shape)
    interpreter = tf.lite.Interpreter(model_content=to_tflite(model))
    runner = interpreter.get_signature_runner()
    names = [tensor.name for tensor in model.inputs]
    got = runner(**dict(zip(names, inputs, strict=True)))
    assert_close([got[name] for name in sorted(got)], wanted)
