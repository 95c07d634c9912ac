"""The classifier token by token, compared with the model on whole texts and with Keras' cell."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.network.steps import SentimentSteps
from keras_gru import portable

POOLINGS = ("max", "mean", "attention", "last")
IDS = np.array(
    [[5, 9, 3, 7, 2, 1], [4, 4, 8, 0, 0, 0], [6, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]], np.int32
)
LENGTHS = (IDS != 0).sum(1)


def model(bidirectional, layers=1, pooling="max"):
    config = ClassifierConfig(
        embedding_size=3, units=4, layers=layers, bidirectional=bidirectional, pooling=pooling
    )
    built = build_sentiment_model(config, 12, 3)
    rng = np.random.default_rng(layers)
    for weight in built.weights:
        weight.assign(rng.normal(0, 0.8, weight.shape))
    return built


@pytest.mark.slow_cases
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_stream_answers_as_the_model_does_to_the_text_so_far(layers, pooling):
    whole = model(False, layers, pooling)
    steps = SentimentSteps(whole)
    assert steps.streams
    advance = tf.function(steps.advance)
    state = np.zeros((4, steps.state_size), np.float32)
    for t in range(IDS.shape[1]):
        logits, state = advance(IDS[:, t : t + 1], state)
        np.testing.assert_allclose(logits, whole(IDS[:, : t + 1]), atol=2e-6)
    if pooling in ("max", "mean"):
        np.testing.assert_array_equal(state[:, -1], LENGTHS)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pieces_of_any_length_and_empty_ones_lead_to_the_same_state(pooling):
    steps = SentimentSteps(model(False, 2, pooling))
    fresh = np.zeros((4, steps.state_size), np.float32)
    at_once = steps.advance(IDS, fresh)
    state = fresh
    for piece in (IDS[:, :0], IDS[:, :2], np.zeros((4, 3), np.int32), IDS[:, 2:5], IDS[:, 5:]):
        if piece.shape[1] == 0:
            piece = np.zeros((4, 1), np.int32)
        logits, state = steps.advance(piece, state)
    np.testing.assert_allclose(logits, at_once[0], atol=2e-6)
    np.testing.assert_allclose(state, at_once[1], atol=2e-6)


@pytest.mark.slow_cases
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("bidirectional", "layers"), [(False, 1), (False, 2), (True, 2)])
def test_scores_after_each_token_are_those_of_the_text_so_far(bidirectional, layers, pooling):
    whole = model(bidirectional, layers, pooling)
    steps = SentimentSteps(whole)
    assert steps.streams is not bidirectional
    shown = tf.function(steps.unroll)(IDS)
    directions = 2 if bidirectional else 1
    assert shown.update_gate.shape == (4, 6, layers, directions, 4)
    for t in range(IDS.shape[1]):
        answers = whole(IDS[:, : t + 1])
        for row in np.flatnonzero(t < LENGTHS):
            np.testing.assert_allclose(shown.logits[row, t], answers[row], atol=2e-6)
    for values in shown:
        for row, length in enumerate(LENGTHS):
            np.testing.assert_array_equal(np.asarray(values)[row, length:], 0)


@pytest.mark.slow
def test_the_answers_to_beginnings_come_from_the_graph_that_other_signatures_call():
    whole = model(True)
    ids = tf.TensorSpec((None, None), tf.int32)
    shared = tf.function(partial(whole, training=False), input_signature=[ids])

    def products_of_a_row(steps):
        graph = tf.function(steps.unroll).get_concrete_function(ids).graph.as_graph_def()
        (body,) = (f for f in graph.library.function if "map_while_body" in f.signature.name)
        return sum(node.op == "MatMul" for node in body.node_def)

    with portable():
        shown = tf.function(SentimentSteps(whole, shared).unroll)(IDS)
        assert products_of_a_row(SentimentSteps(whole, shared)) == 0
        assert products_of_a_row(SentimentSteps(whole)) > 0  # else this counts nothing
    np.testing.assert_allclose(shown.logits, SentimentSteps(whole).unroll(IDS).logits, atol=2e-6)


def test_gates_and_states_are_those_of_a_hand_written_chain():
    whole = model(True)
    shown = SentimentSteps(whole).unroll(IDS)
    embedding = whole.get_layer("embedding").get_weights()[0].astype(np.float64)
    both = whole.get_layer("bidirectional_1")
    for direction, layer in enumerate((both.forward_layer, both.backward_layer)):
        kernel, recurrent, bias = (w.astype(np.float64) for w in layer.get_weights())
        for row, length in enumerate(LENGTHS):
            h = np.zeros(4)
            times = range(length) if direction == 0 else reversed(range(length))
            for t in times:
                x = embedding[IDS[row, t]] @ kernel + bias[0]
                u = h @ recurrent + bias[1]
                z, r = (1 / (1 + np.exp(-(x[k : k + 4] + u[k : k + 4]))) for k in (0, 4))
                h = z * h + (1 - z) * np.tanh(x[8:] + r * u[8:])
                where = (row, t, 0, direction)
                np.testing.assert_allclose(shown.update_gate[where], z, atol=1e-6)
                np.testing.assert_allclose(shown.reset_gate[where], r, atol=1e-6)
                np.testing.assert_allclose(shown.state[where], h, atol=1e-6)


def test_a_model_that_reads_both_ways_does_not_stream():
    assert not SentimentSteps(model(True)).streams
