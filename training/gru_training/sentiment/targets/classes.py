"""One class for each text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.classification.calibration import negative_log_likelihood
from gru_training.classification.chosen_metric import ChosenMetric
from gru_training.loop.fit import PerRowFunction
from gru_training.sentiment.targets.target import Target
from gru_training.words.ngram_model import NgramModel, fit_ngrams
from gru_training.words.token_rows import TokenRows


def cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Negative log-probability of the right class, (B,), of labels (B,) and logits (B, C)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def accuracy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Whether the likeliest class is the right one, (B,) bool."""
    return tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)


class ClassTarget(Target):
    """Class numbers (N,) int32.

    Args:
        names: C classes.
        metric: To choose by.
        weights: (C,), how much a row of each class counts in the loss.
    """

    kind = "class"
    signature = tf.TensorSpec((None,), tf.int32)

    def __init__(self, names: Sequence[str], metric: ChosenMetric, weights: np.ndarray):
        super().__init__(names, metric)
        self.weights = None if np.all(weights == 1) else weights
        self.key = ("class", None if self.weights is None else tuple(weights.tolist()))

    def loss(self, targets: Any, logits: Any) -> Any:
        """The cross-entropy, times the weight of the row's class."""
        values = cross_entropy(targets, logits)
        if self.weights is None:
            return values
        return values * tf.gather(tf.constant(self.weights, values.dtype), targets)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """The accuracy."""
        return {"accuracy": accuracy}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """Each row is of one class."""
        return np.asarray(targets[:, np.newaxis] == np.arange(len(self.names)))

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """The negative log-likelihood."""
        return negative_log_likelihood(targets, logits)

    def fit_ngrams(
        self,
        train: TokenRows,
        validation: TokenRows,
        vocabulary_size: int,
        order: int = 2,
    ) -> NgramModel:
        """Logistic regressions, of each class against the rest."""
        return fit_ngrams(
            train,
            validation,
            len(self.names),
            vocabulary_size,
            score=self.metric.score,
            class_weights=None if self.weights is None else self.weights[train.labels],
            order=order,
        )
