"""The probabilities of a teacher as targets of texts without labels.

Hinton, Vinyals and Dean (2015), "Distilling the Knowledge in a Neural Network" (arXiv:1503.02531),
section 2: a student learns the probabilities that its teacher gives. Here these are answers to
texts that nobody has labelled (`gru_training.sentiment.teaching`); a labelled row is learned by its
label alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gru_training.loop.batches import NOT_DRAWN, Drawn
from gru_training.sentiment.targets.target import Target, TargetWrapper
from gru_training.words.token_rows import TokenRows


class Lesson(NamedTuple):
    """What a teacher says to the rows of one part, and to further ones."""

    further: Sequence[np.ndarray]
    """M rows of word ids, which have no label."""
    answers: np.ndarray
    """(N + M, C) logits: of the N rows of the part, then of these."""


Lessons = Callable[[str, TokenRows], Lesson]
"""From the name of a part and its rows."""


class DistilledTarget(TargetWrapper):
    """The label of a row that has one, and C answers of a teacher to any other.

    Args:
        inner: Target of the labelled rows.
        lessons: Answers of a teacher with the same classes, labels or number as `inner`.
        read: Number of further rows that an epoch reads, drawn anew; all by default.
    """

    def __init__(self, inner: Target, lessons: Lessons, read: int | None = None):
        super().__init__(inner, further=inner.outputs)
        self._lessons, self._read = lessons, read

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
        """The loss of the label where there is one, and of the teacher's answer elsewhere."""
        known, answers = targets[:, 0], targets[:, -self.outputs :]
        hard = tf.cast(self._inner.loss(self._own(targets), logits), logits.dtype)
        return known * hard + (1 - known) * _to_teacher(self.kind, answers, logits)

    def _measured(self, targets: Any) -> Any:
        """The row's own target; of a further row what the teacher says."""
        own, known, answers = self._own(targets), targets[:, 0] > 0, targets[:, -self.outputs :]
        if self.kind == "class":
            return tf.where(known, own, tf.argmax(answers, axis=1, output_type=tf.int32))
        if self.kind == "labels":
            return tf.where(known[:, tf.newaxis], own, tf.cast(answers > 0, own.dtype))
        return own


def _to_teacher(kind: str, answers: Any, logits: Any) -> Any:
    """The loss (B,) of a student's logits (B, C) beside those of its teacher (B, C)."""
    if kind == "number":
        return tf.reduce_mean(tf.square(answers - logits), axis=1)
    if kind == "labels":
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.math.sigmoid(answers), logits)
        return tf.reduce_mean(losses, axis=1)
    return tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(answers), logits)
