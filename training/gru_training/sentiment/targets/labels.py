"""Any number of labels for each text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.classification.chosen_metric import ChosenMetric, label_log_loss
from gru_training.loop.fit import PerRowFunction
from gru_training.sentiment.targets.target import Target
from gru_training.words.ngram_model import NgramModel, fit_ngrams
from gru_training.words.token_rows import TokenRows


def right_labels(targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Share of the labels that are told rightly at a probability of one half, (B,)."""
    return tf.reduce_mean(tf.cast(tf.equal(targets > 0.5, logits > 0), tf.float32), axis=-1)


class LabelsTarget(Target):
    """Whether each of C labels applies, (N, C) float32 of 0 and 1.

    Args:
        names: C labels.
        metric: To choose by.
        weights: (C,), how much more it counts that a label applies than that it does not.
    """

    kind = "labels"

    def __init__(self, names: Sequence[str], metric: ChosenMetric, weights: np.ndarray):
        super().__init__(names, metric)
        self.weights = weights
        self.key = ("labels", *weights.tolist())
        self.signature = tf.TensorSpec((None, len(names)), tf.float32)

    def loss(self, targets: Any, logits: Any) -> Any:
        """The mean over the labels of the binary cross-entropy."""
        values = tf.nn.weighted_cross_entropy_with_logits(
            targets, logits, tf.constant(self.weights, logits.dtype)
        )
        return tf.reduce_mean(values, axis=-1)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """The share of right labels."""
        return {"right labels": right_labels}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """Which labels apply."""
        return np.asarray(targets > 0.5)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """The mean binary cross-entropy."""
        return label_log_loss(targets, logits)

    def fit_ngrams(
        self,
        train: TokenRows,
        validation: TokenRows,
        vocabulary_size: int,
        order: int = 2,
    ) -> NgramModel:
        """A logistic regression for each label."""
        return fit_ngrams(
            train,
            validation,
            len(self.names),
            vocabulary_size,
            score=self.metric.score,
            order=order,
        )
