"""A number to estimate for each text."""

from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.classification.chosen_metric import ChosenMetric
from gru_training.loop.fit import PerRowFunction
from gru_training.sentiment.targets.target import Target
from gru_training.words.ngram_model import NgramModel, fit_ngram_numbers
from gru_training.words.token_rows import TokenRows


class NumberTarget(Target):
    """Numbers (N,) float32. The model answers in standard units, those of the training rows.

    Args:
        name: What the number is called.
        metric: To choose by.
        mean: Of the training rows.
        deviation: Likewise.
    """

    kind = "number"
    signature = tf.TensorSpec((None,), tf.float32)

    def __init__(self, name: str, metric: ChosenMetric, mean: float, deviation: float):
        super().__init__((name,), metric)
        self.mean, self.deviation = mean, deviation
        self.key = ("number", mean, deviation)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """In standard units."""
        return np.asarray((targets - self.mean) / self.deviation)

    def _errors(self, targets: Any, logits: Any) -> Any:
        return (targets - self.mean) / self.deviation - logits[:, 0]

    def loss(self, targets: Any, logits: Any) -> Any:
        """The squared error, in standard units."""
        return tf.square(self._errors(targets, logits))

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """The absolute error, in standard units."""
        return {"mae": lambda targets, logits: tf.abs(self._errors(targets, logits))}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """There are no classes."""
        return np.zeros((len(targets), 0), bool)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """The mean squared error."""
        return float(np.mean((self.in_units(targets) - logits[:, 0]) ** 2))

    def fit_ngrams(
        self,
        train: TokenRows,
        validation: TokenRows,
        vocabulary_size: int,
        order: int = 2,
    ) -> NgramModel:
        """A ridge regression."""
        learned, held_out = (
            TokenRows(part.ids, self.in_units(part.labels).astype(np.float32), part.weights)
            for part in (train, validation)
        )
        return fit_ngram_numbers(learned, held_out, vocabulary_size, self.metric.score, order)
