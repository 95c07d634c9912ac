"""What a student minimises, compared with the same in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, log_expit, log_softmax, softmax

from gru_training.classification.chosen_metric import chosen_metric
from gru_training.errors import DataError
from gru_training.runs.lineage import Lineage
from gru_training.sentiment.targets.classes import ClassTarget
from gru_training.sentiment.targets.distilled import (
    TEACHER_SHARE,
    TEMPERATURE,
    VARIANTS,
    DistilledTarget,
    Lesson,
    Teacher,
    on_variants,
    require_words,
    variant,
)
from gru_training.sentiment.targets.labels import LabelsTarget
from gru_training.sentiment.targets.numbers import NumberTarget
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import UNKNOWN

N, C = 9, 3
NAMES = ("a", "b", "c")
RNG = np.random.default_rng(0)
ROWS = [RNG.integers(2, 50, length).astype(np.int32) for length in range(1, N + 1)]
STUDENT = RNG.normal(size=(N, C)).astype(np.float32)


def answers(rows):
    """Logits that depend on the row alone."""
    return np.stack([np.sin(np.arange(1, C + 1) * row.sum()) for row in rows]).astype(np.float32)


def teacher(logits=answers):
    return Teacher(logits, ("x", "y"), Lineage((), (), (), ""))


def classes():
    target = ClassTarget(NAMES, chosen_metric(None, "class", NAMES), np.ones(C))
    labels = RNG.integers(0, C, N).astype(np.int32)
    hard = -log_softmax(STUDENT.astype(float), axis=1)[np.arange(N), labels]
    wanted = softmax(answers(ROWS) / TEMPERATURE, axis=1)
    soft = -(wanted * log_softmax(STUDENT / TEMPERATURE, axis=1)).sum(axis=1)
    return target, labels, hard, TEMPERATURE**2 * soft, STUDENT


def several_labels():
    target = LabelsTarget(NAMES, chosen_metric(None, "labels", NAMES), np.ones(C))
    labels = RNG.integers(0, 2, (N, C)).astype(np.float32)
    x = STUDENT.astype(float)
    hard = -(labels * log_expit(x) + (1 - labels) * log_expit(-x)).mean(axis=1)
    wanted, x = expit(answers(ROWS) / TEMPERATURE), x / TEMPERATURE
    soft = -(wanted * log_expit(x) + (1 - wanted) * log_expit(-x)).mean(axis=1)
    return target, labels, hard, TEMPERATURE**2 * soft, STUDENT


def numbers():
    target = NumberTarget("stars", chosen_metric(None, "number", ("stars",)), 10.0, 4.0)
    labels = RNG.normal(10, 4, N).astype(np.float32)
    student = STUDENT[:, :1]
    hard = ((labels - 10) / 4 - student[:, 0]) ** 2
    return target, labels, hard, (answers(ROWS)[:, 0] - student[:, 0]) ** 2, student


@pytest.mark.parametrize("made", [classes, several_labels, numbers])
def test_the_loss_is_that_of_teacher_and_label_with_their_shares(made):
    inner, labels, hard, soft, student = made()
    said = answers if inner.outputs == C else lambda rows: answers(rows)[:, :1]
    target = DistilledTarget(inner, on_variants(teacher(said), 3))
    held_out = target.learned_from("validation", TokenRows(ROWS, labels))
    assert held_out.labels.shape == (N, target.signature.shape[1])
    found = target.loss(tf.constant(held_out.labels), tf.constant(student))
    wanted = TEACHER_SHARE * soft + (1 - TEACHER_SHARE) * hard
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(target.in_units(held_out.labels), inner.in_units(labels), rtol=1e-6)

    learned = target.learned_from("train", TokenRows(ROWS, labels))
    assert len(learned.ids) == (1 + VARIANTS) * N
    np.testing.assert_array_equal(learned.labels[:, 0], [1] * N + [0] * VARIANTS * N)
    np.testing.assert_allclose(learned.labels[:, -inner.outputs :], said(learned.ids), rtol=1e-6)
    again = np.tile(student, (1 + VARIANTS, 1))
    found = target.loss(tf.constant(learned.labels), tf.constant(again)).numpy()
    np.testing.assert_allclose(found[:N], wanted, rtol=1e-5)
    # Of variants nobody knows the label: labels that were there would change nothing.
    other = learned.labels.copy()
    other[N:, 1 : -inner.outputs] = 1 - other[N:, 1 : -inner.outputs]
    np.testing.assert_array_equal(target.loss(tf.constant(other), tf.constant(again)), found)
    for name, of in target.row_metrics().items():
        expected = inner.row_metrics()[name](tf.constant(labels), tf.constant(student))
        got = of(tf.constant(held_out.labels), tf.constant(student))
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_rows_with_a_label_can_learn_it_alone_and_others_the_teacher_alone():
    inner, labels, hard, soft, student = classes()
    lesson = Lesson(ROWS, np.concatenate([np.full((N, C), np.float32(7)), answers(ROWS)]))
    for temperature in (TEMPERATURE, 1.0):
        target = DistilledTarget(
            inner, lambda *_: lesson, share=0.0, weight=1.0, temperature=temperature
        )
        learned = target.learned_from("train", TokenRows(ROWS, labels))
        again = np.concatenate([student, student])
        found = target.loss(tf.constant(learned.labels), tf.constant(again))
        np.testing.assert_allclose(found, np.concatenate([hard, soft]), rtol=1e-5)
        # Without softening the loss is the cross-entropy of the probabilities.
        soft = -(softmax(answers(ROWS), axis=1) * log_softmax(student, axis=1)).sum(axis=1)


def test_variants_are_masked_rows_or_spans_of_them():
    rng = np.random.default_rng(1)
    row = np.arange(2, 22, dtype=np.int32)
    made = [variant(row, rng) for _ in range(2000)]
    whole = [each for each in made if len(each) == len(row)]
    spans = [each for each in made if len(each) < len(row)]
    assert 0.2 < len(spans) / len(made) < 0.3
    assert max(map(len, spans)) == 5
    for each in made:
        known = each != UNKNOWN
        place = each[known] - 2 - np.flatnonzero(known)
        assert len(set(place.tolist())) <= 1  # what is left stands in its order, without a gap
    masked = np.mean([np.mean(each == UNKNOWN) for each in whole])
    assert 0.08 < masked < 0.12


def test_a_student_must_read_the_words_of_its_teacher():
    require_words(teacher(), ["x", "y"])
    with pytest.raises(DataError, match="expected the 2 words of the runs to distil, got 3"):
        require_words(teacher(), ["x", "y", "z"])
