"""The conversion of logits to answers: in graphs of exports, in scoring and in the report alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.data.label_cells import TargetKind
from gru_training.sentiment.decision import HALF, Decision, Scale


class Head(ABC):
    """B rows, C classes or labels.

    Args:
        names: The C classes or labels; of a number what it is called.
    """

    kind: TargetKind
    middle = 0.0
    """Constant that is added to the logits' sum weighted by `contrast`."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)

    @abstractmethod
    def scores(self, logits: Any) -> Any:
        """Compute scores for the answer to a text, (..., C) float32; a number in its own units."""

    @abstractmethod
    def answers(self, logits: Any) -> dict[str, Any]:
        """All outputs of the signature `serving_default`, of logits (B, C)."""

    @abstractmethod
    def foremost(self, logits: Any) -> Any:
        """The class or label, as its number (B,), that explains the answer of logits (B, C)."""

    @abstractmethod
    def contrast(self, place: Any) -> Any:
        """Weights (B, C) of the logits in what explains the classes or labels `place` (B,).

        In log-odds as the answer has them, or in the number's own units: the logit of a class less
        the mean of the others, the logit of a label, the number without its mean.
        """


class ClassHead(Head):
    """One class for each text.

    Args:
        names: C classes.
        temperature: Temperature by which logits are divided.
        decision: Rule of the class that is answered.
    """

    kind = "class"

    def __init__(self, names: Sequence[str], temperature: float, decision: Decision):
        super().__init__(names)
        self.decision, self.temperature = decision, temperature

    def scores(self, logits: Any) -> Any:
        """Probabilities."""
        return tf.nn.softmax(tf.cast(logits, tf.float32) / np.float32(self.temperature))

    def answers(self, logits: Any) -> dict[str, Any]:
        """`label` (B,), its `probability` (B,), and the `scores` of all classes (B, C)."""
        scores = self.scores(logits)
        place = self._place(scores)
        return {
            "label": tf.gather(tf.constant(self.names, tf.string), place),
            "probability": tf.gather(scores, place, batch_dims=1),
            "scores": scores,
        }

    def foremost(self, logits: Any) -> Any:
        """The class answered."""
        return self._place(self.scores(logits))

    def contrast(self, place: Any) -> Any:
        """Weigh logits so that they add up, of two classes, to the log-odds of the one."""
        others = 1 / (len(self.names) - 1)
        weights = tf.one_hot(place, len(self.names)) * (1 + others) - others
        return weights / np.float32(self.temperature)

    def _place(self, scores: Any) -> Any:
        """The class number answered, as `Decision.classes`."""
        value = scores
        if self.decision.utilities:
            value = tf.matmul(scores, tf.constant(self.decision.utilities, tf.float32))
        if self.decision.thresholds:
            eligible = scores >= tf.constant(self.decision.thresholds, tf.float32)
            eligible |= ~tf.reduce_any(eligible, axis=1, keepdims=True)
            value = tf.where(eligible, value, -np.inf)
        return tf.argmax(value, axis=-1)


class LabelsHead(Head):
    """The head of a model that answers any number of labels for each text.

    Args:
        names: C labels.
        temperature: Temperature by which logits are divided.
        decision: Probabilities from which each label applies.
    """

    kind = "labels"

    def __init__(self, names: Sequence[str], temperature: float, decision: Decision):
        super().__init__(names)
        self.decision, self.temperature = decision, temperature

    def scores(self, logits: Any) -> Any:
        """The probability of each label."""
        return tf.math.sigmoid(tf.cast(logits, tf.float32) / np.float32(self.temperature))

    def answers(self, logits: Any) -> dict[str, Any]:
        """`labels` (B, C), `scores` (B, C) and `thresholds` (B, C).

        The labels that apply come first, the likeliest in front; empty texts fill up the row.
        """
        scores = self.scores(logits)
        least = tf.broadcast_to(self._thresholds(), tf.shape(scores))
        applies = scores >= least
        order = tf.argsort(tf.where(applies, scores, -1.0), direction="DESCENDING", stable=True)
        named = tf.gather(tf.constant(self.names, tf.string), order)
        there = tf.gather(applies, order, batch_dims=1)
        labels = tf.where(there, named, tf.constant("", tf.string))
        return {"labels": labels, "scores": scores, "thresholds": least}

    def foremost(self, logits: Any) -> Any:
        """The likeliest label of those that apply; if none does, of all."""
        scores = self.scores(logits)
        return tf.argmax(scores + tf.cast(scores >= self._thresholds(), tf.float32), axis=-1)

    def contrast(self, place: Any) -> Any:
        """Weigh logits so that they add up to the log-odds of the label."""
        return tf.one_hot(place, len(self.names)) / np.float32(self.temperature)

    def _thresholds(self) -> Any:
        return tf.constant(self.decision.thresholds or (HALF,) * len(self.names), tf.float32)


class NumberHead(Head):
    """A number for each text.

    Args:
        name: Name of the number.
        scale: Units of the number, and its intervals.
    """

    kind = "number"

    def __init__(self, name: str, scale: Scale):
        super().__init__((name,))
        self.scale, self.middle = scale, scale.mean

    def scores(self, logits: Any) -> Any:
        """The number, (..., 1)."""
        standard = tf.cast(logits, tf.float32)
        return standard * np.float32(self.scale.deviation) + np.float32(self.scale.mean)

    def answers(self, logits: Any) -> dict[str, Any]:
        """`value` (B,) and `quantiles` (B, 4), see `gru_training.sentiment.decision`."""
        value = self.scores(logits)
        offsets = tf.constant(self.scale.offsets, tf.float32)
        return {"value": value[:, 0], "quantiles": value + offsets}

    def foremost(self, logits: Any) -> Any:
        """There is one number only."""
        return tf.zeros(tf.shape(logits)[:1], tf.int64)

    def contrast(self, place: Any) -> Any:
        """Weigh the logit so that it adds up to the number, less its mean in the training rows."""
        return tf.fill([tf.shape(place)[0], 1], np.float32(self.scale.deviation))
