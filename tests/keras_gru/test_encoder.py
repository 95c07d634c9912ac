"""GRUEncoder: shapes, the oracle layer by layer, torch.nn.GRU, masks, files and exports."""

import doctest
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.testing import TestCase

import keras_gru.encoder
from keras_gru import GRU, GRUEncoder
from keras_gru.convert import load_pytorch, pytorch_state_dict
from keras_gru.initializers import recommended
from tests import oracle

MASK = np.array([[0, 0, 1, 1, 0, 1, 1], [1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]], bool)


def randomised(encoder, features=4, seed=0):
    encoder.build((None, None, features))
    rng = np.random.default_rng(seed)
    encoder.set_weights([rng.normal(size=w.shape) for w in encoder.get_weights()])
    return encoder


def sequences(seed=1, features=4):
    return np.random.default_rng(seed).normal(size=(3, 7, features)).astype("float32")


def oracle_layer(gru, x, h0, mask):
    """States (B, T, U) of one direction in input order, and the final state, in float64."""
    order = slice(None, None, -1 if gru.go_backwards else 1)
    states = np.array(
        [
            oracle.forward(
                row[order],
                start,
                *(w.astype("float64") for w in gru.get_weights()),
                reset_after=gru.reset_after,
                update_gate=gru.update_gate,
                mask=None if mask is None else mask[i][order],
            )[0]
            for i, (row, start) in enumerate(zip(x, h0, strict=True))
        ]
    )
    return states[:, order], states[:, -1]


def oracle_encoder(encoder, x, states, mask):
    outputs, final = x.astype("float64"), []
    for layer, state in zip(encoder.layers, states, strict=True):
        directions = (
            [layer.forward_layer, layer.backward_layer] if encoder.bidirectional else [layer]
        )
        starts = np.split(state.astype("float64"), len(directions), -1)
        pairs = [oracle_layer(d, outputs, s, mask) for d, s in zip(directions, starts, strict=True)]
        outputs = np.concatenate([p[0] for p in pairs], -1)
        final.append(np.concatenate([p[1] for p in pairs], -1))
    return outputs, final


def test_docstring_examples():
    failures, tried = doctest.testmod(
        keras_gru.encoder,
        extraglobs={"np": np, "keras": keras},
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert tried >= 6
    assert failures == 0


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("options", [{}, {"reset_after": False, "update_gate": "replace"}], ids=str)
def test_equals_oracle_layer_by_layer(options, bidirectional, masked):
    encoder = randomised(
        GRUEncoder(5, 3, bidirectional, return_sequences=True, return_state=True, **options)
    )
    rng = np.random.default_rng(2)
    states = [rng.normal(size=(3, encoder.width)).astype("float32") for _ in range(3)]
    mask = MASK if masked else None
    outputs, *final = encoder(sequences(), initial_state=states, mask=mask)
    wanted, wanted_final = oracle_encoder(encoder, sequences(), states, mask)
    shown = MASK if masked else np.ones_like(MASK)  # at masked steps the outputs differ by design
    np.testing.assert_allclose(outputs.numpy()[shown], wanted[shown], rtol=1e-4, atol=1e-5)
    for a, b in zip(final, wanted_final, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    for layer in encoder.layers:
        for direction in ("forward_layer", "backward_layer") if bidirectional else (None,):
            assert (getattr(layer, direction) if direction else layer).path == "fused"


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
def test_shapes_of_every_return_option(return_state, bidirectional):
    """Eager and symbolic calls."""
    width = 6 * (1 + bidirectional)
    for return_sequences in (True, False):
        encoder = GRUEncoder(6, 2, bidirectional, 0.3, return_sequences, return_state)
        results = encoder(np.zeros((3, 7, 4), "float32"))
        outputs, *states = results if return_state else [results]
        assert tuple(outputs.shape) == ((3, 7, width) if return_sequences else (3, width))
        assert [tuple(s.shape) for s in states] == [(3, width)] * 2 * return_state
        symbolic = encoder(keras.Input((None, 4)))
        symbolic = list(symbolic) if return_state else [symbolic]
        assert [s.shape for s in symbolic] == [
            (None, None, width) if return_sequences else (None, width),
            *[(None, width)] * 2 * return_state,
        ]


def test_shapes_of_the_bidirectional_encoder_of_torch():
    """The shapes of torch.nn.GRU's outputs and regrouped h_n for the same arguments."""
    encoder = GRUEncoder(256, 2, bidirectional=True, return_sequences=True, return_state=True)
    outputs, *states = encoder(np.zeros((32, 50, 100), "float32"))
    assert tuple(outputs.shape) == (32, 50, 512)
    assert tuple(keras.ops.stack(states).shape) == (2, 32, 512)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch(bias, num_layers, bidirectional):
    torch = pytest.importorskip("torch")
    torch.manual_seed(num_layers)
    module = torch.nn.GRU(
        4, 5, num_layers, bias=bias, batch_first=True, bidirectional=bidirectional, dropout=0.0
    )
    encoder = GRUEncoder(
        5, num_layers, bidirectional, return_sequences=True, return_state=True, use_bias=bias
    )
    load_pytorch(encoder, module)
    x = sequences()
    outputs, *states = encoder(x)
    with torch.no_grad():
        wanted, h_n = module(torch.from_numpy(x))
    h_n = h_n.numpy().reshape(num_layers, -1, 3, 5).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(outputs, wanted.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.stack(states), h_n.reshape(num_layers, 3, -1), rtol=1e-5, atol=1e-6
    )
    back = pytorch_state_dict(encoder)
    assert list(back) == list(module.state_dict())
    for name, value in module.state_dict().items():
        np.testing.assert_array_equal(back[name], value.numpy())


def test_torch_of_another_size_assigns_nothing():
    torch = pytest.importorskip("torch")
    encoder = randomised(GRUEncoder(5, 2))
    before = encoder.get_weights()
    for module, words in (
        (torch.nn.GRU(4, 6, 2), "units=6.*units=5"),
        (torch.nn.GRU(3, 5, 2), "3 features.*4 features"),
        (torch.nn.GRU(4, 5, 2, bidirectional=True), "same layers and directions.*backward"),
    ):
        with pytest.raises(ValueError, match=words):
            load_pytorch(encoder, module)
    for a, b in zip(encoder.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_last_output_is_that_of_the_last_valid_step():
    full = randomised(GRUEncoder(5, 2, True, return_sequences=True, return_state=True))
    last = randomised(GRUEncoder(5, 2, True))
    outputs, *states = full(sequences(), mask=MASK)
    np.testing.assert_allclose(last(sequences(), mask=MASK)[:2], states[-1][:2], atol=1e-6)
    np.testing.assert_allclose(outputs.numpy()[2], 0, atol=0)  # a row without any valid step


def test_mask_reaches_the_layer_after():
    model = keras.Sequential(
        [
            keras.layers.Embedding(9, 4, mask_zero=True),
            GRUEncoder(5, 2, bidirectional=True, dropout=0.1, return_sequences=True),
            GRU(3),
        ]
    )
    ids = np.array([[1, 2, 3, 0, 0], [4, 0, 5, 6, 0]])
    padded = np.pad(ids, [(0, 0), (0, 3)])
    np.testing.assert_allclose(model(ids), model(padded), rtol=1e-5, atol=1e-6)
    encoder = GRUEncoder(5, 2, return_sequences=True, return_state=True)
    assert encoder.compute_mask(None, "mask") == ("mask", None, None)
    assert GRUEncoder(5).compute_mask(None, "mask") is None


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_ragged_sequences_equal_masked_ones(bidirectional, training):
    mask = MASK[:, :4] | [[True, False, False, False]]
    mask = np.sort(mask, 1)[:, ::-1]
    encoder = randomised(
        GRUEncoder(5, 2, bidirectional, 0.0, return_sequences=True, return_state=True)
    )
    x = sequences()[:, :4]
    padded, *states = encoder(x, mask=mask, training=training)
    ragged, *ragged_states = encoder(tf.ragged.boolean_mask(x, mask), training=training)
    assert isinstance(ragged, tf.RaggedTensor)
    np.testing.assert_array_equal(ragged.row_lengths(), mask.sum(1))
    np.testing.assert_allclose(ragged.values, padded.numpy()[mask], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(states, ragged_states, rtol=1e-5, atol=1e-6)
    dropping = GRUEncoder(5, 2, bidirectional, dropout=0.5, seed=1)
    assert dropping(tf.ragged.boolean_mask(x, mask), training=training).shape[0] == 3


@pytest.mark.parametrize("bidirectional", [False, True])
def test_states_carry_a_forward_stack_over_chunks(bidirectional):
    encoder = randomised(GRUEncoder(5, 2, bidirectional, return_sequences=True, return_state=True))
    x = sequences()
    whole, *_ = encoder(x)
    first, *states = encoder(x[:, :3])
    second, *_ = encoder(x[:, 3:], initial_state=states)
    joined = np.concatenate([first, second], 1)
    if bidirectional:  # the backward direction cannot know the second chunk
        assert np.max(np.abs(joined - whole)) > 0.01
    else:
        np.testing.assert_allclose(joined, whole, rtol=1e-5, atol=1e-6)


def test_dropout_lies_between_layers_only_and_in_training_only():
    x = sequences()
    one = randomised(GRUEncoder(5, 1, dropout=0.5, return_sequences=True))
    np.testing.assert_array_equal(one(x, training=True), one(x))
    two = randomised(GRUEncoder(5, 2, dropout=0.5, return_sequences=True, seed=3))
    assert np.max(np.abs(two(x, training=True) - two(x))) > 0.01
    np.testing.assert_array_equal(two(x), two(x))
    again = randomised(GRUEncoder(5, 2, dropout=0.5, return_sequences=True, seed=3))
    fresh = randomised(GRUEncoder(5, 2, dropout=0.5, return_sequences=True, seed=3))
    np.testing.assert_array_equal(again(x, training=True), fresh(x, training=True))
    seeds = [gru.seed for gru in again.layers] + [dropout.seed for dropout in again.dropouts]
    assert len(set(seeds)) == len(seeds)


def test_dropout_zeroes_at_its_rate_anew_at_every_step():
    """A second layer that copies its input shows which units dropout let through."""
    encoder = GRUEncoder(
        64, 2, dropout=0.25, return_sequences=True, activation="linear", use_bias=False, seed=1
    )
    encoder.build((None, None, 64))
    copy = np.concatenate([np.full((64, 64), -1e4), np.zeros((64, 64)), np.eye(64)], 1)
    encoder.set_weights([copy, np.zeros((64, 192))] * 2)
    outputs = encoder(np.ones((8, 20, 64), "float32"), training=True).numpy()
    assert set(np.unique(outputs.round(5))) == {0, np.float32(1.33333)}
    assert abs(np.mean(outputs == 0) - 0.25) < 0.02
    assert (outputs[:, 0] != outputs[:, 1]).any()


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
