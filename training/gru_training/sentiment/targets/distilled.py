"""The answers of a teacher as a target: distillation, and self-training.

Hinton, Vinyals and Dean (2015), "Distilling the Knowledge in a Neural Network" (arXiv:1503.02531),
section 2: the student learns the teacher's softened probabilities, and beside them the labels. Of
the rows it was trained on a teacher is too sure to show more than their labels do. So it is also
asked about further texts: variants of the rows, or texts that nobody has labelled
(`gru_training.sentiment.teaching`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gru_training.errors import DataError
from gru_training.loop.batches import NOT_DRAWN, Drawn
from gru_training.loop.fit import PerRowFunction
from gru_training.runs.lineage import Lineage
from gru_training.sentiment.targets.target import Target
from gru_training.words.ngram_model import NgramModel
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import UNKNOWN

TEMPERATURE = 2.0
"""Softens the probabilities of a teacher that answers what it was trained on, and its student's."""
TEACHER_SHARE = 0.9
"""Of the loss of a row with a label; the rest is that of the label."""
VARIANTS = 3
"""Of each training row."""
_MASKED, _CUT, _LONGEST = 0.1, 0.25, 5
"""Probabilities that a word is masked and that a span is cut out; most words of a span."""


class Lesson(NamedTuple):
    """What a teacher says to the rows of one part, and to further ones."""

    further: Sequence[np.ndarray]
    """M rows of word ids, which have no label."""
    answers: np.ndarray
    """(N + M, C) logits: of the N rows of the part, then of these."""


Lessons = Callable[[str, TokenRows], Lesson]
"""From the name of a part and its rows."""


class Teacher(NamedTuple):
    """A model to distil."""

    logits: Callable[[Sequence[np.ndarray]], np.ndarray]
    """(N, C) of N rows of word ids."""
    tokens: Sequence[str]
    """The words of its ids."""
    lineage: Lineage
    """Of what is distilled."""


def require_words(teacher: Teacher, tokens: Sequence[str]) -> None:
    """Raise DataError unless a student reads texts as the same ids as its teacher."""
    if list(tokens) != list(teacher.tokens):
        raise DataError(
            f"expected the {len(teacher.tokens):,} words of the runs to distil, got "
            f"{len(tokens):,}; have the files that words or vectors are learned from changed?"
        )


def on_variants(teacher: Teacher, seed: int) -> Lessons:
    """Lessons on the rows themselves and on variants of the training rows.

    After Tang et al. (2019), "Distilling Task-Specific Knowledge from BERT into Simple Neural
    Networks" (arXiv:1903.12136), section 3.3.

    Args:
        teacher: To ask.
        seed: Of the variants.
    """

    def lesson(part: str, rows: TokenRows) -> Lesson:
        further: list[np.ndarray] = []
        if part == "train":
            rng = np.random.default_rng(seed)
            further = [variant(row, rng) for _ in range(VARIANTS) for row in rows.ids]
        return Lesson(further, teacher.logits([*rows.ids, *further]))

    return lesson


class DistilledTarget(Target):
    """What a student learns: C answers of a teacher to each row, and the row's own target.

    Args:
        inner: The target of the data.
        lessons: Of a teacher that answers with the same classes, labels or number.
        share: Of the teacher in the loss of a row that has a label.
        weight: Of the teacher's loss on a row that has none.
        read: How many of the further rows an epoch reads, drawn anew; by default all.
        temperature: Softens the probabilities of both; 1 leaves them as they are.
    """

    def __init__(
        self,
        inner: Target,
        lessons: Lessons,
        share: float = TEACHER_SHARE,
        weight: float = TEACHER_SHARE,
        read: int | None = None,
        temperature: float = TEMPERATURE,
    ):
        super().__init__(inner.names, inner.metric)
        self._inner, self._lessons = inner, lessons
        self._share, self._weight, self._read = share, weight, read
        self._temperature = temperature
        self.kind = inner.kind
        own = inner.outputs if inner.kind == "labels" else 1
        self.signature = tf.TensorSpec((None, 1 + own + inner.outputs), tf.float32)

    def learned_from(self, part: str, rows: TokenRows) -> TokenRows:
        """Rows with the teacher's answers, and behind them further ones that have no label.

        Targets are (N + M, 1 + own + C) float32: whether there is a label, it, and the logits.
        """
        further, answers = self._lessons(part, rows)
        labels = rows.labels.reshape(len(rows.ids), -1)
        labels = np.concatenate([labels, np.zeros((len(further), labels.shape[1]))])
        known = np.arange(len(labels))[:, np.newaxis] < len(rows.ids)
        return TokenRows(
            [*rows.ids, *further],
            np.concatenate([known, labels, answers], axis=1, dtype=np.float32),
        )

    def drawn(self, rows: int, learned: int) -> Drawn:
        """Of the further rows as many as asked for, where there are more."""
        further = learned - rows
        if self._read is None or self._read >= further:
            return NOT_DRAWN
        return Drawn(rows, further, self._read / further)

    def loss(self, targets: Any, logits: Any) -> Any:
        """The teacher's share and the label's."""
        known, answers = targets[:, 0], targets[:, -self.outputs :]
        hard = tf.cast(self._inner.loss(self._own(targets), logits), logits.dtype)
        soft = _to_teacher(self.kind, answers, logits, self._temperature)
        taught = self._share * known + self._weight * (1 - known)
        return taught * soft + (1 - self._share) * known * hard

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """Those of the data; of a further row what the teacher says counts as right."""
        return {name: self._of_own(of) for name, of in self._inner.row_metrics().items()}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """As of the data."""
        return self._inner.members(targets)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """As of the data."""
        return self._inner.mean_loss(targets, logits)

    def fit_ngrams(
        self,
        train: TokenRows,
        validation: TokenRows,
        vocabulary_size: int,
        penalty: float | None = None,
        order: int = 2,
    ) -> NgramModel:
        """As of the data."""
        return self._inner.fit_ngrams(train, validation, vocabulary_size, penalty, order)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """The targets of the data, of those that `learned_from` makes."""
        own = targets[:, 1 : -self.outputs]
        if self.kind == "class":
            return np.asarray(own[:, 0], np.int32)
        return self._inner.in_units(own if self.kind == "labels" else own[:, 0])

    def _of_own(self, measure: PerRowFunction) -> PerRowFunction:
        return lambda targets, logits: measure(self._own_or_answered(targets), logits)

    def _own(self, targets: Any) -> Any:
        own = targets[:, 1 : -self.outputs]
        if self.kind == "labels":
            return own
        return tf.cast(own[:, 0], tf.int32) if self.kind == "class" else own[:, 0]

    def _own_or_answered(self, targets: Any) -> Any:
        own, known, answers = self._own(targets), targets[:, 0] > 0, targets[:, -self.outputs :]
        if self.kind == "class":
            return tf.where(known, own, tf.argmax(answers, axis=1, output_type=tf.int32))
        if self.kind == "labels":
            return tf.where(known[:, tf.newaxis], own, tf.cast(answers > 0, own.dtype))
        return own


def variant(row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A row of word ids with words masked, and in a part of the cases a span of it alone."""
    masked = np.where(rng.random(len(row)) < _MASKED, np.int32(UNKNOWN), row)
    if rng.random() >= _CUT:
        return masked
    length = int(rng.integers(1, min(_LONGEST, len(row)) + 1))
    start = int(rng.integers(0, len(row) - length + 1))
    return masked[start : start + length]


def _to_teacher(kind: str, answers: Any, logits: Any, temperature: float) -> Any:
    """How far a student's logits (B, C) are from a teacher's, (B,)."""
    if kind == "number":
        return tf.reduce_mean(tf.square(answers - logits), axis=1)
    wanted, given = answers / temperature, logits / temperature
    if kind == "labels":
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.math.sigmoid(wanted), given)
        return temperature**2 * tf.reduce_mean(losses, axis=1)
    return temperature**2 * tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(wanted), given)
