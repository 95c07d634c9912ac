"""What a student minimises, compared with the same in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, log_expit, log_softmax, softmax

from gru_training.classification.chosen_metric import chosen_metric
from gru_training.sentiment.targets.classes import ClassTarget
from gru_training.sentiment.targets.distilled import DistilledTarget, Lesson
from gru_training.sentiment.targets.labels import LabelsTarget
from gru_training.sentiment.targets.numbers import NumberTarget
from gru_training.words.token_rows import TokenRows

N, C = 9, 3
NAMES = ("a", "b", "c")
RNG = np.random.default_rng(0)
ROWS = [RNG.integers(2, 50, length).astype(np.int32) for length in range(1, N + 1)]
STUDENT = RNG.normal(size=(N, C)).astype(np.float32)


def answers(rows):
    """Logits that depend on the row alone."""
    return np.stack([np.sin(np.arange(1, C + 1) * row.sum()) for row in rows]).astype(np.float32)


def classes():
    target = ClassTarget(NAMES, chosen_metric(None, "class", NAMES), np.ones(C))
    labels = RNG.integers(0, C, N).astype(np.int32)
    hard = -log_softmax(STUDENT.astype(float), axis=1)[np.arange(N), labels]
    soft = -(softmax(answers(ROWS), axis=1) * log_softmax(STUDENT, axis=1)).sum(axis=1)
    return target, labels, hard, soft, STUDENT


def several_labels():
    target = LabelsTarget(NAMES, chosen_metric(None, "labels", NAMES), np.ones(C))
    labels = RNG.integers(0, 2, (N, C)).astype(np.float32)
    x = STUDENT.astype(float)
    hard = -(labels * log_expit(x) + (1 - labels) * log_expit(-x)).mean(axis=1)
    wanted = expit(answers(ROWS))
    soft = -(wanted * log_expit(x) + (1 - wanted) * log_expit(-x)).mean(axis=1)
    return target, labels, hard, soft, STUDENT


def numbers():
    target = NumberTarget("stars", chosen_metric(None, "number", ("stars",)), 10.0, 4.0)
    labels = RNG.normal(10, 4, N).astype(np.float32)
    student = STUDENT[:, :1]
    hard = ((labels - 10) / 4 - student[:, 0]) ** 2
    return target, labels, hard, (answers(ROWS)[:, 0] - student[:, 0]) ** 2, student


@pytest.mark.parametrize("made", [classes, several_labels, numbers])
def test_labelled_rows_learn_their_label_and_others_the_teacher(made):
    inner, labels, hard, soft, student = made()
    said = answers(ROWS)[:, : inner.outputs]
    unasked = np.full_like(said, 7)
    target = DistilledTarget(inner, lambda *_: Lesson(ROWS, np.concatenate([unasked, said])))
    learned = target.learned_from("train", TokenRows(ROWS, labels))
    assert learned.labels.shape == (2 * N, target.signature.shape[1])
    np.testing.assert_array_equal(learned.labels[:, 0], [1] * N + [0] * N)
    np.testing.assert_allclose(learned.labels[N:, -inner.outputs :], said, rtol=1e-6)
    again = np.concatenate([student, student])
    found = target.loss(tf.constant(learned.labels), tf.constant(again)).numpy()
    np.testing.assert_allclose(found, np.concatenate([hard, soft]), rtol=1e-5)
    # Nobody knows the label of a further row: one that was there would change nothing.
    other = learned.labels.copy()
    other[N:, 1 : -inner.outputs] = 1 - other[N:, 1 : -inner.outputs]
    np.testing.assert_array_equal(target.loss(tf.constant(other), tf.constant(again)), found)

    own = learned.labels[:N]
    np.testing.assert_allclose(target.in_units(own), inner.in_units(labels), rtol=1e-6)
    for name, of in target.row_metrics().items():
        expected = inner.row_metrics()[name](tf.constant(labels), tf.constant(student))
        got = of(tf.constant(own), tf.constant(student))
        np.testing.assert_allclose(got, expected, rtol=1e-6)
