"""The conversion of logits to answers, shared by exports, scoring and the report."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from gru_serving.preprocessing.answers import (
    AddBounds,
    ChooseClass,
    ChooseLabels,
    Probabilities,
    RepeatNames,
    RestoreNumber,
)
from gru_serving.preprocessing.description import Step
from gru_training.data.label_cells import TargetKind
from gru_training.sentiment.decision import HALF, Decision, Scale

RAW_SCORES = "raw_scores"
"""Name of the logits among the values of steps, which differs from that of any layer."""


class Head(ABC):
    """The conversion of logits to answers; B rows, C classes or labels.

    Args:
        names: The C classes or labels; of a number what it is called.

    Attributes:
        outputs: Outputs of the signature `serving_default`.
        calibration: Step from `raw_scores` (..., C) to `scores` (..., C) float32: probabilities, or
            a number in its own units.
        choice: Step from `scores` (B, C) to all other outputs.
    """

    kind: TargetKind
    outputs: tuple[str, ...]
    middle = 0.0
    """Constant added to the sum of logits weighted by `contrast`."""
    calibration: Step
    choice: Step

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)

    def scores(self, logits: Any) -> Any:
        """Compute scores for the answer to a text, (..., C) float32, in TensorFlow."""
        values = {RAW_SCORES: logits}
        self.calibration.graph(values)
        return values["scores"]

    def answers(self, logits: Any) -> dict[str, Any]:
        """Compute all outputs of `serving_default` from logits (B, C), in TensorFlow."""
        values = {RAW_SCORES: logits}
        for step in (self.calibration, self.choice):
            step.graph(values)
        return {name: values[name] for name in self.outputs}

    def answers_of(self, logits: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the same outputs from an array, without TensorFlow."""
        values: dict[str, Any] = {RAW_SCORES: logits}
        for step in (self.calibration, self.choice):
            step.numpy(values)
        return {name: values[name] for name in self.outputs}

    def examples(self) -> tuple[Sequence[Step], dict[str, str]]:
        """Return the steps behind the logits, and outputs, for the Classify or Regress API."""
        return (self.calibration, RepeatNames("scores", self.names)), {
            "classes": "classes",
            "scores": "scores",
        }

    @abstractmethod
    def foremost(self, logits: Any) -> Any:
        """Choose the number (B,) of the class or label that explains the answer (B, C)."""

    @abstractmethod
    def contrast(self, place: Any) -> Any:
        """Return the weights (B, C) of the logits that explain the classes or labels `place` (B,).

        The quantity is in log-odds as the answer states them, or in the number's own units: the
        logit of a class minus the mean of the others, the logit of a label, or the number minus its
        mean.
        """


class ClassHead(Head):
    """One class for each text.

    Args:
        names: C classes.
        temperature: Temperature by which logits are divided.
        decision: Rule of the class that is answered.
    """

    kind = "class"
    outputs = ("label", "probability", "scores")

    def __init__(self, names: Sequence[str], temperature: float, decision: Decision):
        super().__init__(names)
        self.temperature = temperature
        self.calibration = Probabilities(RAW_SCORES, "scores", "softmax", temperature)
        thresholds, utilities = decision.thresholds, decision.utilities
        self.choice = self._choice = ChooseClass("scores", self.names, thresholds, utilities)

    def foremost(self, logits: Any) -> Any:
        """Return the answered class."""
        return self._choice.places_in_graph(self.scores(logits))

    def contrast(self, place: Any) -> Any:
        """Weigh logits so that they add up, of two classes, to the log-odds of the one."""
        import tensorflow as tf

        others = 1 / (len(self.names) - 1)
        weights = tf.one_hot(place, len(self.names)) * (1 + others) - others
        return weights / np.float32(self.temperature)


class LabelsHead(Head):
    """The head of a model that answers any number of labels for each text.

    Args:
        names: C labels.
        temperature: Temperature by which logits are divided.
        decision: Probabilities from which each label applies.
    """

    kind = "labels"
    outputs = ("labels", "scores", "thresholds")

    def __init__(self, names: Sequence[str], temperature: float, decision: Decision):
        super().__init__(names)
        self.temperature = temperature
        self.calibration = Probabilities(RAW_SCORES, "scores", "sigmoid", temperature)
        self._thresholds = decision.thresholds or (HALF,) * len(names)
        self.choice = ChooseLabels("scores", self.names, self._thresholds)

    def foremost(self, logits: Any) -> Any:
        """Return the likeliest label among those that apply, or among all if none applies."""
        import tensorflow as tf

        scores = self.scores(logits)
        applies = scores >= tf.constant(self._thresholds, tf.float32)
        return tf.argmax(scores + tf.cast(applies, tf.float32), axis=-1)

    def contrast(self, place: Any) -> Any:
        """Weigh logits so that they add up to the log-odds of the label."""
        import tensorflow as tf

        return tf.one_hot(place, len(self.names)) / np.float32(self.temperature)


class NumberHead(Head):
    """A number for each text.

    Args:
        name: Name of the number.
        scale: Units of the number, and its intervals.
    """

    kind = "number"
    outputs = ("value", "quantiles")

    def __init__(self, name: str, scale: Scale):
        super().__init__((name,))
        self.middle, self._deviation = scale.mean, scale.deviation
        self.calibration = RestoreNumber(RAW_SCORES, "scores", scale.mean, scale.deviation)
        self.choice = self._choice = AddBounds("scores", scale.offsets)

    def examples(self) -> tuple[Sequence[Step], dict[str, str]]:
        """Return the steps behind the logits, and the output, for the Regress API."""
        return (self.calibration, self._choice), {"outputs": "value"}

    def foremost(self, logits: Any) -> Any:
        """Return zeros, since there is only one number."""
        import tensorflow as tf

        return tf.zeros(tf.shape(logits)[:1], tf.int64)

    def contrast(self, place: Any) -> Any:
        """Weigh the logit so that it adds up to the number minus its mean in the training rows."""
        import tensorflow as tf

        return tf.fill([tf.shape(place)[0], 1], np.float32(self._deviation))
