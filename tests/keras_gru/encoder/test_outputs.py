"""GRUEncoder's outputs: the oracle, torch.nn.GRU, masks, states and dropout."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru.encoder
from keras_gru import GRU, GRUEncoder
from keras_gru.convert import load_pytorch, pytorch_state_dict
from tests.keras_gru.encoder.stacks import MASK, oracle_encoder, randomised, sequences


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
