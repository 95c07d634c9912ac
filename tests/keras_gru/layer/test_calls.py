"""What a call is given beside its inputs, in threads, and in graphs that know no sizes."""

import contextlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUCell, GRUEncoder
from tests.keras_gru.layer.twins import inputs

UNKNOWN = tf.TensorSpec([None] * 3)


def traced(function, *specs):
    return tf.function(function, input_signature=[UNKNOWN, *specs])


@pytest.mark.parametrize("path", ["auto", "plain", "loop"])
def test_a_graph_that_knows_no_size(path):
    layer = GRU(5, return_sequences=True, path=path)
    x, _ = inputs()
    layer.build((None, None, 4))
    np.testing.assert_allclose(traced(layer)(x), layer(x), rtol=1e-5, atol=1e-6)


@pytest.mark.slow_cases
@pytest.mark.parametrize("wrap", [GRU, lambda *a, **k: keras.layers.RNN(GRUCell(*a, **k))])
@pytest.mark.parametrize("options", [{}, {"activation": "softsign"}], ids=["fused", "loop"])
def test_dropout_masks_belong_to_a_call(wrap, options):
    """Four threads with batches of different sizes, in which masks of another call cannot work."""
    layer = wrap(5, dropout=0.3, recurrent_dropout=0.3, dropconnect=0.2, **options)
    layer.build((None, None, 4))
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(rows, 3, 4)).astype("float32") for rows in (1, 2, 3, 4)] * 6
    with ThreadPoolExecutor(4) as pool:
        outputs = pool.map(lambda x: layer(x, training=True), batches)
        assert [len(output) for output in outputs] == [len(batch) for batch in batches]


@pytest.mark.parametrize("dynamic", [False, True])
def test_one_initial_state_serves_all_rows(dynamic):
    layer = GRU(5)
    x, h0 = inputs()
    layer.build(x.shape)
    run = layer
    if dynamic:
        run = traced(
            lambda x, initial_state: layer(x, initial_state=initial_state), tf.TensorSpec((None, 5))
        )
    wanted = layer(x, initial_state=tf.repeat(h0[:1], 3, 0))
    np.testing.assert_allclose(run(x, initial_state=h0[:1]), wanted, rtol=1e-5, atol=1e-6)


def test_too_few_initial_states_of_unknown_number_are_an_error_of_the_sizes_given():
    layer = GRU(5)
    x, h0 = inputs()
    layer.build(x.shape)
    run = traced(lambda x, h: layer(x, initial_state=h), tf.TensorSpec((None, 5)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"initial_state") as error:
        run(x, h0[:2])
    assert "[2,5]" in str(error.value)
    assert "[3,5]" in str(error.value)


def test_a_stateful_layer_names_itself_and_its_batch():
    layer = GRU(4, stateful=True, name="memory")
    layer(np.zeros((5, 3, 2), "float32"))
    with pytest.raises(ValueError, match=r"'memory' is stateful.*batch size of 5.*\(2, 3, 2\)"):
        layer(np.zeros((2, 3, 2), "float32"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"memory\w*/stateful_batch"):
        traced(layer)(np.zeros((2, 3, 2), "float32"))


@pytest.mark.slow_cases
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_mask_of_one_step_is_not_that_of_all(dynamic):
    layer = GRU(5, name="encoder")
    x, _ = inputs()
    layer.build((None, None, 4))
    mask = np.ones((3, 1), bool)

    def run(x):
        return layer(x, mask=mask)

    if dynamic:
        run = traced(run)
        np.testing.assert_allclose(run(x[:, :1]), layer(x[:, :1]), rtol=1e-5, atol=1e-6)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"`mask` of .*encoder"):
        run(x)


class Doubled(GRU):
    """A layer with a call of its own."""

    def call(self, sequences, **kwargs):
        return 2 * super().call(sequences, **kwargs)


def test_a_subclass_with_a_call_of_its_own():
    x, _ = inputs()
    plain, doubled = GRU(5, return_sequences=True), Doubled(5, return_sequences=True)
    for layer in (plain, doubled):
        layer.build(x.shape)
    doubled.set_weights(plain.get_weights())
    np.testing.assert_allclose(doubled(x), 2 * plain(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"dropout": 0.2, "reset_after": False, "seed": 3}], ids=str
)
def test_the_layer_of_keras_takes_a_configuration_without_options_of_ours(options):
    ours = GRU(5, return_sequences=True, **options)
    theirs = keras.layers.GRU.from_config(ours.get_config())
    x, _ = inputs()
    for layer in (ours, theirs):
        layer.build(x.shape)
    theirs.set_weights(ours.get_weights())
    np.testing.assert_allclose(theirs(x), ours(x), rtol=1e-5, atol=1e-6)
    assert "zoneout" in GRU(5, zoneout=0.1).get_config()
    encoder = GRUEncoder(5, zoneout=0.0, reset_after=False)
    assert GRUEncoder.from_config(encoder.get_config()).get_config() == encoder.get_config()


@pytest.mark.slow
def test_a_saved_model_loads_with_the_layer_of_keras(tmp_path):
    """As docs/how_to/keras_models.md has it, where keras_gru is not installed."""
    x, _ = inputs()
    model = keras.Sequential(
        [
            keras.Input((None, x.shape[-1])),
            keras.layers.Bidirectional(GRU(3, return_sequences=True)),
            GRU(4, reset_after=False),
        ]
    )
    model.save(tmp_path / "model.keras")
    keras.Sequential([keras.Input((None, 3)), GRU(4, zoneout=0.1)]).save(tmp_path / "other.keras")
    np.save(tmp_path / "x.npy", x)
    script = (
        "import keras, numpy as np\n"
        "names = {'keras_gru>GRU': keras.layers.GRU}\n"
        "model = keras.models.load_model('model.keras', custom_objects=names)\n"
        "assert type(model.layers[0].forward_layer) is type(model.layers[1]) is keras.layers.GRU\n"
        "np.save('y.npy', model(np.load('x.npy')))\n"
        "keras.models.load_model('other.keras', custom_objects=names)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(r"Unrecognized keyword arguments.*'zoneout': 0.1", done.stderr)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model(x), rtol=1e-5, atol=1e-6)


def _one_device_of_several(kind):
    if kind == "mirrored":
        return tf.distribute.MirroredStrategy(["CPU:0"]).scope()
    return keras.distribution.DataParallel(devices=["cpu:0"]).scope()


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", ["data parallel", "mirrored"])
def test_a_layer_trains_under_a_distribution_as_without(kind):
    x, _ = inputs()
    losses = []
    for scope in (contextlib.nullcontext(), _one_device_of_several(kind)):
        with scope:
            keras.utils.set_random_seed(0)
            model = keras.Sequential([keras.Input((None, x.shape[-1])), GRU(3)])
            model.compile("sgd", "mse")
            losses.append([model.train_on_batch(x, np.ones((len(x), 3))) for _ in range(2)])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert losses[0][0] > losses[0][1]
