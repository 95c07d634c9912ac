"""GRUEncoder's settings, files, exports and errors."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.testing import TestCase

from keras_gru import GRUEncoder
from keras_gru.initializers import recommended
from tests.keras_gru.encoder.stacks import MASK, randomised, sequences


@pytest.mark.parametrize("name", ["dropout", "return_sequences"])
def test_settings_that_the_layers_would_not_follow_cannot_be_set(name):
    with pytest.raises(AttributeError, match=rf"`{name}` of a GRUEncoder .*: {name}=True"):
        setattr(GRUEncoder(4), name, True)


@pytest.mark.parametrize("seed", [None, 3])
def test_layers_and_directions_start_from_different_values(seed):
    """One initializer for all layers must not make them equal, and a seed must make runs equal."""
    options = recommended(seed=seed)
    encoder = GRUEncoder(4, 2, bidirectional=True, **options)
    again = GRUEncoder.from_config(encoder.get_config())
    kernels = []
    for e in (encoder, again):
        e.build((None, None, 8))
        grus = [g for layer in e.layers for g in (layer.forward_layer, layer.backward_layer)]
        kernels.append([g.cell.recurrent_kernel.numpy() for g in grus])
        for a, b in itertools.combinations(kernels[-1], 2):
            assert np.abs(a - b).max() > 0.01
    same = [np.array_equal(a, b) for a, b in zip(*kernels, strict=True)]
    assert same == [seed is not None] * 4


CONFIG = {
    "units": 5,
    "num_layers": 2,
    "bidirectional": True,
    "dropout": 0.2,
    "return_sequences": True,
    "return_state": True,
    "seed": 4,
    "name": "mine",
    "update_gate": "replace",
    "reset_after": False,
    "recurrent_dropout": 0.1,
    "kernel_initializer": "he_normal",
    "kernel_regularizer": "l2",
}


def test_config_round_trips_every_argument():
    encoder = GRUEncoder(**CONFIG)
    config = encoder.get_config()
    assert set(CONFIG) <= set(config)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(encoder))
    assert isinstance(again, GRUEncoder)
    assert again.get_config() == config
    gru = again.layers[1].backward_layer
    assert (gru.update_gate, gru.reset_after, gru.recurrent_dropout) == ("replace", False, 0.1)
    assert isinstance(gru.kernel_initializer, keras.initializers.HeNormal)
    assert again.layers[0].forward_layer.seed != again.layers[0].backward_layer.seed


def functional_model(bidirectional):
    x = keras.Input((None, 4), name="x")
    state = keras.Input((5 * (1 + bidirectional),), name="state")
    encoder = GRUEncoder(
        5, 2, bidirectional, 0.2, return_sequences=True, return_state=True, update_gate="replace"
    )
    masked = keras.layers.Masking()(x)
    outputs, *states = encoder(masked, initial_state=[state, state])
    model = keras.Model({"x": x, "state": state}, {"outputs": outputs, "last": states[-1]})
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    values = {"x": sequences() * MASK[..., None], "state": rng.normal(size=state.shape[1:])}
    values["state"] = np.tile(values["state"].astype("float32"), (3, 1))
    return model, values


@pytest.mark.slow
@pytest.mark.parametrize("bidirectional", [False, True])
def test_functional_model_file(bidirectional, tmp_path):
    model, values = functional_model(bidirectional)
    wanted = model(values)
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    for name, value in loaded(values).items():
        np.testing.assert_array_equal(value, wanted[name])
    predicted = loaded.predict(values, batch_size=2, verbose=0)
    assert predicted["last"].shape == (3, 5 * (1 + bidirectional))
    np.testing.assert_allclose(predicted["last"], wanted["last"], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_saved_model_is_equal_and_portable(tmp_path):
    model, values = functional_model(bidirectional=True)
    wanted = model(values)
    width = values["state"].shape[1]

    @tf.function(input_signature=[tf.TensorSpec((None, None, 4)), tf.TensorSpec((None, width))])
    def serve(x, state):
        return model({"x": x, "state": state}, training=False)

    module = tf.Module()
    module.model, module.serve = model, serve
    tf.saved_model.save(module, str(tmp_path / "s"), signatures=serve)
    served = tf.saved_model.load(str(tmp_path / "s")).signatures["serving_default"](
        **{name: tf.constant(value) for name, value in values.items()}
    )
    for name, value in served.items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-6)
    graph = serve.get_concrete_function().graph.as_graph_def()
    ops = {n.op for n in graph.node} | {n.op for f in graph.library.function for n in f.node_def}
    assert not [op for op in ops if "Random" in op or "Assign" in op or "Cudnn" in op]


@pytest.mark.parametrize("bidirectional", [False, True])
def test_tensorflow_checkpoint_holds_every_weight(bidirectional, tmp_path):
    encoder = randomised(GRUEncoder(5, 2, bidirectional))
    path = tf.train.Checkpoint(encoder=encoder).save(tmp_path / "checkpoint")
    again = randomised(GRUEncoder(5, 2, bidirectional), seed=1)
    tf.train.Checkpoint(encoder=again).restore(path).assert_consumed()
    for restored, saved in zip(again.get_weights(), encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(restored, saved)


@pytest.mark.parametrize("return_sequences", [False, True])
def test_inside_a_symbolic_time_distributed(return_sequences):
    """Documents of sentences of words: the wrapper calls `compute_output_shape`."""
    encoder = randomised(GRUEncoder(5, 2, True, return_sequences=return_sequences))
    documents = keras.Input((None, 7, 4))
    model = keras.Model(documents, keras.layers.TimeDistributed(encoder)(documents))
    x = np.stack([sequences(seed) for seed in (1, 2)])
    np.testing.assert_allclose(
        model(x), [encoder(document) for document in x], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("options", [{}, {"return_sequences": True}, {"return_state": True}])
def test_output_shapes_are_those_of_a_call(options):
    encoder = randomised(GRUEncoder(5, 2, True, **options))
    called = keras.tree.map_structure(lambda t: tuple(t.shape), encoder(sequences()))
    assert encoder.compute_output_shape((3, 7, 4)) == called


@pytest.mark.slow
def test_fit_learns_and_trains_every_weight():
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(256, 5, 3)).astype("float32")
    y = (x[:, 0, 0] > x[:, -1, 1]).astype("float32")
    model = keras.Sequential(
        [GRUEncoder(12, 2, bidirectional=True, dropout=0.1), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.02), keras.losses.BinaryCrossentropy(from_logits=True))
    model.build((None, None, 3))
    before = model.get_weights()
    losses = model.fit(x, y, batch_size=32, epochs=6, verbose=0).history["loss"]
    assert losses[-1] < 0.6 * losses[0]
    assert all((a != b).any() for a, b in zip(model.get_weights(), before, strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed:UserWarning")  # Keras' own call
@pytest.mark.parametrize("bidirectional", [False, True])
def test_keras_own_layer_checks(bidirectional):
    """Config, build, symbolic and eager call, one fit step, mixed precision."""
    TestCase().run_layer_test(
        GRUEncoder,
        init_kwargs={"units": 3, "num_layers": 2, "bidirectional": bidirectional, "dropout": 0.5},
        input_shape=(3, 2, 4),
        expected_output_shape=(3, 6 if bidirectional else 3),
        expected_num_trainable_weights=12 if bidirectional else 6,
        expected_num_non_trainable_weights=0,
        supports_masking=True,
        custom_objects={"GRUEncoder": GRUEncoder},
    )


def test_mixed_precision():
    encoder = GRUEncoder(5, 2, True, return_state=True, dtype="mixed_float16")
    results = encoder(sequences())
    assert {r.dtype for r in results} == {tf.float16}
    assert {w.dtype for w in encoder.weights} == {"float32"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"units": 0}, r"units.*positive integer.*0"),
        ({"num_layers": 0}, r"num_layers.*positive integer.*0"),
        ({"num_layers": 1.5}, r"num_layers.*positive integer.*1.5"),
        ({"num_layers": True}, r"num_layers.*positive integer.*True"),
        ({"num_layers": None}, r"num_layers.*positive integer.*None"),
        ({"num_layers": float("inf")}, r"num_layers.*positive integer.*inf"),
        ({"dropout": 1.0}, r"dropout.*\[0, 1\).*1.0"),
        ({"go_backwards": True}, r"go_backwards.*left out.*True"),
        ({"stateful": True}, r"stateful.*left out.*True"),
        ({"depth": 3}, r"Unrecognized keyword.*depth"),
    ],
)
def test_constructor_errors(arguments, words):
    with pytest.raises(ValueError, match=words):
        GRUEncoder(**{"units": 4, **arguments})


@pytest.mark.parametrize(
    "state", [[np.zeros((3, 5))], [np.zeros((3, 5)), np.zeros((3, 4))], np.zeros((3, 5))]
)
def test_initial_state_errors(state):
    encoder = GRUEncoder(5, 2, name="stack")
    with pytest.raises(ValueError, match=r"initial_state.*'stack'.*2 states.*\(batch, 5\)"):
        encoder(sequences(), initial_state=state)
