"""`model.export(format="onnx")`: ONNX Runtime computes what Keras does, with every option."""

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUEncoder
from keras_gru.kernel import execution
from tests.sequences_with_gaps import sequences_with_gaps

tf2onnx = pytest.importorskip("tf2onnx", reason="Keras exports to ONNX through tf2onnx")

# tf2onnx and Keras' patches of it use features that NumPy and protobuf have deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

D, U = 5, 4

LAYERS = {
    "last output": {},
    "all outputs and the state": {"return_sequences": True, "return_state": True},
    "backwards": {"return_sequences": True, "go_backwards": True, "return_state": True},
    "reset before": {"return_sequences": True, "reset_after": False},
    "reset before, no bias": {"reset_after": False, "use_bias": False, "update_gate": "replace"},
    "replace": {"return_sequences": True, "update_gate": "replace"},
    "zoneout": {"return_sequences": True, "zoneout": 0.3},
    "rates": {"dropout": 0.2, "recurrent_dropout": 0.2, "dropconnect": 0.2, "seed": 1},
    "gates": {"return_gates": True},
    "learned state": {"learn_initial_state": True},
    "hard activations": {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
    "plain": {"path": "plain", "return_sequences": True},
    "loop": {"activation": "elu", "return_sequences": True},
    "layer norm": {"layer_norm": True, "return_sequences": True},
    "unrolled": {"unroll": True, "return_sequences": True},
    "float16": {"dtype": "mixed_float16"},
}


def check(model, path, x, tolerance=1e-5):
    """Export, run in ONNX Runtime (with other batch sizes and lengths if open), compare."""
    model(x)  # otherwise Keras refuses to export it
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(path)
    names = [given.name for given in session.get_inputs()]
    for fed in (x, x[:1]):
        wanted = [np.asarray(v) for v in tf.nest.flatten(model(fed))]
        got = session.run(None, dict(zip(names, [fed], strict=True)))
        assert len(got) == len(wanted)
        for ours, theirs in zip(wanted, got, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=0, atol=tolerance)


def randomised(model):
    rng = np.random.default_rng(2)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape) / 2)
    return model


@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)
def test_every_option(options, tmp_path):
    steps = 7 if "unroll" in options else None
    inputs = keras.Input((steps, D))
    model = randomised(keras.Model(inputs, GRU(U, **options)(inputs)))
    half = "dtype" in options  # the projections are float16: runtimes differ in the last bit
    check(model, str(tmp_path / "m.onnx"), sequences_with_gaps()[0], 2e-3 if half else 1e-5)


@pytest.mark.parametrize("options", [{}, {"zero_output_for_mask": True}, {"go_backwards": True}])
def test_masks_of_any_pattern(options, tmp_path):
    x, mask = sequences_with_gaps()
    x[~mask] = 0
    inputs = keras.Input((None, D))
    hidden = keras.layers.Masking()(inputs)
    outputs = GRU(U, return_sequences=True, **options)(hidden)
    check(randomised(keras.Model(inputs, outputs)), str(tmp_path / "m.onnx"), x)


def test_bidirectional_and_encoder(tmp_path):
    inputs = keras.Input((None, D))
    both = keras.layers.Bidirectional(GRU(U, return_sequences=True))(inputs)
    outputs = GRUEncoder(3, num_layers=2, bidirectional=True, return_state=True)(both)
    check(
        randomised(keras.Model(inputs, outputs)), str(tmp_path / "m.onnx"), sequences_with_gaps()[0]
    )


def test_initial_state_is_an_input_like_any_other(tmp_path):
    inputs, state = keras.Input((None, D)), keras.Input((U,))
    model = randomised(keras.Model([inputs, state], GRU(U)(inputs, initial_state=state)))
    x, h0 = sequences_with_gaps()[0], np.random.default_rng(3).normal(size=(3, U)).astype("f4")
    wanted = model([x, h0])
    path = str(tmp_path / "m.onnx")
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(path)
    names = [given.name for given in session.get_inputs()]
    (got,) = session.run(None, dict(zip(names, [x, h0], strict=True)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)


def test_own_functions_through_tf2onnx():
    layer = GRU(U, return_sequences=True)
    layer.build((None, None, D))
    traced = tf.function(layer)
    proto, _ = tf2onnx.convert.from_function(
        traced, [tf.TensorSpec((None, None, D), tf.float32)], opset=17
    )
    x = sequences_with_gaps()[0]
    (got,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"sequences": x})
    np.testing.assert_allclose(got, layer(x), rtol=0, atol=1e-5)
    assert layer.last_path == "plain"


def test_only_exporters_get_the_foreign_loop():
    with tf.Graph().as_default():
        assert (
            execution.choose_plan("auto", None, None, D, U).target
            not in execution.CONVERTED_RUNTIMES
        )
        with execution.portable():
            assert (
                execution.choose_plan("auto", None, None, D, U).target
                not in execution.CONVERTED_RUNTIMES
            )
