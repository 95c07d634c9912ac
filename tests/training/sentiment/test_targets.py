"""What a network minimises where rows have weights and probabilities, compared with NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, log_expit, log_softmax, logit, softmax

from gru_training.loop.batches import LengthBucketedBatches
from gru_training.sentiment.config import SoftConfig
from gru_training.sentiment.measures import chosen_metric
from gru_training.sentiment.targets import (
    ClassTarget,
    LabelsTarget,
    NumberTarget,
    training_rows,
)
from gru_training.words.vocabulary import TokenRows

N, M, C = 9, 14, 3
NAMES = ("a", "b", "c")
RNG = np.random.default_rng(0)
ROWS = [RNG.integers(2, 50, length).astype(np.int32) for length in range(1, N + 1)]
SOFT_ROWS = [RNG.integers(2, 50, length).astype(np.int32) for length in range(1, M + 1)]
LOGITS = RNG.normal(size=(N + M, C)).astype(np.float32)
CLASS_WEIGHTS = np.array([0.5, 1.0, 3.0], np.float32)


def classes(weights):
    target = ClassTarget(NAMES, chosen_metric(None, "class", NAMES), weights)
    labels = RNG.integers(0, C, N).astype(np.int32)
    hard = -weights[labels] * log_softmax(LOGITS[:N].astype(float), axis=1)[np.arange(N), labels]
    probabilities = softmax(2 * RNG.normal(size=(M, C)), axis=1).astype(np.float32)

    def soft(temperature):
        wanted = softmax(np.log(probabilities.astype(float)) / temperature, axis=1)
        given = log_softmax(LOGITS[N:].astype(float) / temperature, axis=1)
        return -(temperature**2) * (weights * wanted * given).sum(axis=1)

    return target, labels, hard, probabilities, soft


def several_labels(weights):
    target = LabelsTarget(NAMES, chosen_metric(None, "labels", NAMES), weights)
    labels = RNG.integers(0, 2, (N, C)).astype(np.float32)

    def loss(wanted, x):
        return -(weights * wanted * log_expit(x) + (1 - wanted) * log_expit(-x)).mean(axis=1)

    probabilities = expit(2 * RNG.normal(size=(M, C))).astype(np.float32)

    def soft(temperature):
        wanted = expit(logit(probabilities.astype(float)) / temperature)
        return temperature**2 * loss(wanted, LOGITS[N:].astype(float) / temperature)

    return target, labels, loss(labels, LOGITS[:N].astype(float)), probabilities, soft


@pytest.mark.parametrize("weights", [np.ones(C, np.float32), CLASS_WEIGHTS])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("made", [classes, several_labels])
def test_labelled_rows_learn_their_label_and_others_their_probabilities(made, temperature, weights):
    inner, labels, hard, probabilities, soft = made(weights)
    row_weights = RNG.uniform(0.5, 2, N)
    settings = SoftConfig(soft_weight=0.7, soft_temperature=temperature)
    rows = training_rows(
        inner,
        TokenRows(ROWS, labels, row_weights),
        TokenRows(ROWS, labels),
        TokenRows(SOFT_ROWS, probabilities),
        settings,
    )
    assert rows.train.labels.shape == (N + M, rows.target.signature.shape[1])
    assert [len(ids) for ids in rows.train.ids] == [*range(1, N + 1), *range(1, M + 1)]
    found = rows.target.loss(tf.constant(rows.train.labels), tf.constant(LOGITS)).numpy()
    of_labels = hard * row_weights / row_weights.mean()
    np.testing.assert_allclose(found[:N], of_labels, rtol=1e-5)
    np.testing.assert_allclose(found[N:], 0.7 * soft(temperature), rtol=2e-4)

    # Held-out rows count the same, and measures compare with the labels alone.
    judged = rows.target.loss(tf.constant(rows.validation.labels), tf.constant(LOGITS[:N]))
    np.testing.assert_allclose(judged, hard, rtol=1e-5)
    own = rows.train.labels[:N]
    np.testing.assert_allclose(rows.target.in_units(own), inner.in_units(labels), rtol=1e-6)
    for name, of in rows.target.row_metrics().items():
        expected = inner.row_metrics()[name](tf.constant(labels), tf.constant(LOGITS[:N]))
        np.testing.assert_allclose(of(tf.constant(own), tf.constant(LOGITS[:N])), expected)


@pytest.mark.parametrize("made", [classes, several_labels])
def test_certain_probabilities_are_labels(made):
    inner, labels, *_ = made(CLASS_WEIGHTS)
    certain = np.eye(C, dtype=np.float32)[labels] if labels.ndim == 1 else labels
    logits = tf.constant(LOGITS[:N])
    expected = inner.loss(tf.constant(labels), logits)
    np.testing.assert_allclose(inner.soft_loss(tf.constant(certain), logits), expected, rtol=1e-5)


def test_each_epoch_reads_some_of_the_rows_with_probabilities():
    inner, labels, _, probabilities, _ = classes(np.ones(C, np.float32))
    few = SoftConfig(soft_rows=5)
    soft = TokenRows(SOFT_ROWS, probabilities)
    rows = training_rows(inner, TokenRows(ROWS, labels), TokenRows(ROWS, labels), soft, few)
    batches = LengthBucketedBatches(rows.train.ids, rows.train.labels, 4, drawn=rows.drawn)
    read = []
    for number in range(1, 30):
        targets = np.concatenate([batch.targets for batch in batches.epoch(number)])
        labelled = targets[:, 0] > 0
        assert (int(labelled.sum()), len(targets)) == (N, N + 5)
        read.append({tuple(row) for row in targets[~labelled]})
    assert len(set.union(*read)) == M  # drawn anew: all are read in the end
    many = SoftConfig()  # twice as many as labelled rows are more than there are
    every = training_rows(inner, TokenRows(ROWS, labels), TokenRows(ROWS, labels), soft, many)
    assert every.drawn.left_out == 0
    assert SoftConfig().read_rows(100) == 200


def test_rows_without_weights_or_probabilities_are_left_as_they_are():
    metric = chosen_metric(None, "number", ("stars",))
    target = NumberTarget("stars", metric, 10.0, 4.0)
    train = TokenRows(ROWS, RNG.normal(10, 4, N).astype(np.float32))
    assert training_rows(target, train, train, None, SoftConfig())[:3] == (target, train, train)
