"""Several classifiers as one model, compared with NumPy's average of what each answers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.attribution import Attribution
from gru_training.sentiment.network.average import average, members_of, networks_of
from gru_training.sentiment.network.combination import combine, shares_of
from gru_training.sentiment.network.model import build_sentiment_model
from gru_training.sentiment.network.steps import SentimentSteps
from gru_training.words.ngram_model import NgramModel

V, C = 14, 3
WEIGHTS = (0.5, 0.3, 0.4)
IDS = np.array([[5, 9, 3, 7, 2, 1], [4, 4, 8, 0, 0, 0], [6, 0, 0, 0, 0, 0], [0] * 6], np.int32)


def random_model(seed, **settings):
    rng = np.random.default_rng(seed)
    config = ClassifierConfig(**{"embedding_size": 3 + seed, "units": 4 + seed, **settings})
    pieces = rng.integers(0, 5, (V, 2)).astype(np.int32) if config.subwords else None
    vectors = rng.normal(size=(V, 2)).astype(np.float32) if config.subwords else None
    model = build_sentiment_model(config, V, C, vectors, pieces=pieces)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0, 0.6, variable.shape))
    return model


def with_ngrams(model, seed):
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.choice(np.arange(2, V + V * V), 60, replace=False))
    ngrams = NgramModel(
        V, keys, rng.normal(size=(60, C)).astype(np.float32), np.ones(C, np.float32)
    )
    return combine(model, ngrams, (0.7, 0.2 + seed))


def both_ways():
    """Of different sizes, poolings, word vectors; two with n-grams."""
    return [
        with_ngrams(random_model(0), 0),
        random_model(1, layers=2, pooling="attention", subwords=True),
        with_ngrams(random_model(2, pooling="mean", chunk=2), 2),
    ]


def forward():
    return [
        random_model(seed, bidirectional=False, pooling=pooling, layers=1 + seed % 2)
        for seed, pooling in enumerate(("max", "attention", "last"))
    ]


def expected(models, ids=IDS):
    each = [np.asarray(model(ids), np.float64) for model in models]
    return sum(weight * logits for weight, logits in zip(WEIGHTS, each, strict=True))


@pytest.mark.parametrize("made", [both_ways, forward])
def test_logits_are_the_weighted_sum_of_the_members(made, tmp_path):
    models = made()
    whole = average(models, WEIGHTS)
    np.testing.assert_allclose(whole(IDS), expected(models), atol=1e-5)
    names = [layer.name for layer in whole.layers]
    assert len(set(names)) == len(names)
    assert not any(isinstance(layer, keras.Model) for layer in whole.layers)
    assert whole.count_params() == sum(model.count_params() for model in models)
    whole.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_array_equal(again(IDS), whole(IDS))
    found = members_of(again)
    assert [each.weight for each in found] == pytest.approx(WEIGHTS)
    for member, model in zip(found, models, strict=True):
        np.testing.assert_allclose(member.model(IDS), model(IDS), atol=1e-6)
        assert shares_of(member.model) == pytest.approx(shares_of(model))


def test_the_networks_alone_are_averaged_for_a_student():
    models = both_ways()
    alone = [keras.Model(model.input, model.get_layer("logits").output) for model in models]
    wanted = np.mean([np.asarray(model(IDS), np.float64) for model in alone], axis=0)
    np.testing.assert_allclose(networks_of(average(models, WEIGHTS))(IDS), wanted, atol=1e-5)
    np.testing.assert_allclose(networks_of(models[0])(IDS), alone[0](IDS), atol=1e-6)


def test_the_members_stay_as_they_are():
    models = forward()
    before = [model.get_weights() for model in models]
    whole = average(models, WEIGHTS)
    for variable in whole.trainable_variables:
        variable.assign(variable + 1)
    for model, weights in zip(models, before, strict=True):
        for one, two in zip(model.get_weights(), weights, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_stream_of_all_members_answers_as_the_average_does_to_the_text_so_far():
    models = forward()
    steps = SentimentSteps(average(models, WEIGHTS))
    assert steps.streams
    assert steps.state_size == sum(SentimentSteps(model).state_size for model in models)
    advance = tf.function(steps.advance)
    state = np.zeros((len(IDS), steps.state_size), np.float32)
    for t in range(IDS.shape[1]):
        logits, state = advance(IDS[:, t : t + 1], state)
        np.testing.assert_allclose(logits, expected(models, IDS[:, : t + 1]), atol=1e-5)


@pytest.mark.parametrize("made", [both_ways, forward])
def test_gates_are_the_first_members_and_answers_the_averages(made):
    models = made()
    steps = SentimentSteps(average(models, WEIGHTS))
    assert steps.streams == (made is forward)
    shown, first = steps.unroll(IDS), SentimentSteps(models[0]).unroll(IDS)
    for name in ("update_gate", "reset_gate", "state"):
        np.testing.assert_allclose(getattr(shown, name), getattr(first, name), atol=1e-6)
    for t in range(IDS.shape[1]):
        wanted = expected(models, IDS[:, : t + 1]) * (IDS[:, t : t + 1] != 0)
        np.testing.assert_allclose(shown.logits[:, t], wanted, atol=2e-5)


def test_words_get_the_average_of_the_members_shares():
    models = both_ways()
    whole = average(models, WEIGHTS)
    weights = np.random.default_rng(5).normal(size=(len(IDS), C)).astype(np.float32)
    scores = Attribution(whole)(IDS, weights)
    wanted = sum(
        weight * Attribution(model)(IDS, weights).numpy()
        for weight, model in zip(WEIGHTS, models, strict=True)
    )
    np.testing.assert_allclose(scores, wanted, atol=1e-5)
    baseline = Attribution(whole).baseline(IDS)
    explained = ((whole(IDS) - baseline).numpy() * weights).sum(axis=1)
    np.testing.assert_allclose(scores.numpy().sum(axis=1), explained, atol=0.1)
