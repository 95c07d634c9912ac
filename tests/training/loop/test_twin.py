"""A later training of the same architecture runs in the functions of the first."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from rich.console import Console

from gru_training.config import TrainingConfig
from gru_training.loop import twin
from gru_training.loop.batches import LengthBucketedBatches
from gru_training.loop.train import Objective, train
from gru_training.sentiment.config import ClassifierConfig
from gru_training.sentiment.network.model import build_sentiment_model, predict_logits
from gru_training.sentiment.targets import cross_entropy

SIGNATURE = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))


@pytest.fixture(autouse=True)
def no_twins(monkeypatch):
    monkeypatch.setattr(twin, "_twins", type(twin._twins)())


def rows_of(words, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(1, words, rng.integers(2, 9)).astype(np.int32) for _ in range(20)]
    return rows, (np.arange(20) % 2).astype(np.int32)


class Traced:
    """Counts how often TensorFlow traces the loss: Python runs it then, and never else."""

    def __init__(self):
        self.times = 0

    def objective(self, key):
        def loss(targets, logits):
            self.times += 1
            return cross_entropy(targets, logits)

        return Objective(loss, {}, lambda means: (-means["loss"],), "loss", ".3f", key=key)


def trained(words, objective, seed=0, **settings):
    """A model trained from its own seed, and its texts."""
    keras.utils.set_random_seed(seed)
    sizes = {"embedding_size": 4, "units": 3, "dropout": 0.2, "word_dropout": 0.1}
    model = build_sentiment_model(ClassifierConfig(**sizes), words, 2)
    rows, labels = rows_of(words, seed)
    batches = LengthBucketedBatches(rows, labels, 8, seed)
    train(
        model,
        batches,
        batches.in_length_order,
        objective,
        TrainingConfig(**{"epochs": 2, "learning_rate": 0.01, **settings}),
        signature=SIGNATURE,
        console=Console(quiet=True),
    )
    return model, rows


@pytest.mark.slow
def test_a_later_training_traces_nothing_and_learns_the_same():
    alone, shared = Traced(), Traced()
    for words, seed, rate in ((30, 1, 0.01), (37, 2, 0.01), (37, 3, 0.02)):
        expected, rows = trained(words, alone.objective(None), seed, learning_rate=rate)
        model, _ = trained(words, shared.objective("same"), seed, learning_rate=rate)
        for got, wanted in zip(model.get_weights(), expected.get_weights(), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
        answers = predict_logits(model, rows)
        np.testing.assert_allclose(answers, predict_logits(expected, rows), atol=1e-5)
    assert shared.times == 2  # one training step and one evaluation step
    assert alone.times == 6


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"clip_norm": 0.5}, {"schedule": "cosine"}])
def test_settings_that_are_part_of_a_step_are_not_shared(change):
    traced = Traced()
    trained(30, traced.objective("same"))
    before = traced.times
    changed, _ = trained(30, traced.objective("same"), **change)
    assert traced.times == before + 1  # the evaluation step stays
    expected, _ = trained(30, Traced().objective(None), **change)
    for got, wanted in zip(changed.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_other_objectives_are_traced_anew():
    traced = Traced()
    for key in ("one", "another"):
        trained(30, traced.objective(key))
    assert traced.times == 4


def test_a_twin_draws_no_random_numbers():
    keras.utils.set_random_seed(5)
    model = build_sentiment_model(ClassifierConfig(embedding_size=4, units=3), 30, 2)
    drawn = []
    for _ in range(2):
        keras.utils.set_random_seed(5)
        with twin.twin_of(model):
            drawn.append(float(keras.random.uniform((), seed=keras.random.SeedGenerator())))
    assert drawn[0] == drawn[1]


def test_threads_do_not_share_a_twin_at_the_same_time():
    model = build_sentiment_model(ClassifierConfig(embedding_size=4, units=3), 30, 2)
    lent = []

    def borrow():
        with twin.twin_of(model) as other:
            lent.append(other)

    with twin.twin_of(model) as mine:
        assert mine is not None
        thread = threading.Thread(target=borrow)
        thread.start()
        thread.join()
    assert lent[0] is not None
    assert lent[0] is not mine


def test_few_twins_are_kept_and_none_of_large_models(monkeypatch):
    for units in range(1, 8):
        config = ClassifierConfig(embedding_size=2, units=units)
        with twin.twin_of(build_sentiment_model(config, 30, 2)) as one:
            assert one is not None
    assert len(twin._twins) == twin._TWINS_KEPT
    monkeypatch.setattr(twin, "MOST_PARAMETERS", 10)
    with twin.twin_of(build_sentiment_model(ClassifierConfig(units=1), 30, 2)) as one:
        assert one is None


def test_tables_have_few_sizes_and_little_room_to_spare():
    sizes = {twin.rounded_rows(rows) for rows in range(1, 60_000)}
    assert len(sizes) < 25
    for rows in (1, 2048, 2049, 5000, 20_003, 59_999):
        assert twin.rounded_rows(rows) >= rows
        assert twin.rounded_rows(rows) <= max(twin.LEAST_TABLE, 1.25 * rows)
