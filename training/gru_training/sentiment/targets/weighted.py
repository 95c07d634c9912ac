"""Rows that do not count the same in the loss."""

from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.loop.batches import Drawn
from gru_training.loop.fit import PerRowFunction
from gru_training.sentiment.targets.target import Target
from gru_training.words.ngram_model import NgramModel
from gru_training.words.token_rows import TokenRows


class WeightedTarget(Target):
    """The target of a data set, with the weight of each training row in the loss.

    Targets are (N, 1 + own) float32: the weight, and the row's own target. Training rows weigh 1
    on average. Held-out rows weigh 1 each.

    Args:
        inner: Target of the data.
    """

    def __init__(self, inner: Target):
        super().__init__(inner.names, inner.metric)
        self._inner = inner
        self.kind = inner.kind
        own = inner.outputs if inner.kind == "labels" else 1
        self.signature = tf.TensorSpec((None, 1 + own), tf.float32)

    def learned_from(self, part: str, rows: TokenRows) -> TokenRows:
        """The rows with their weights before their targets."""
        rows = self._inner.learned_from(part, rows)
        weights = rows.row_weights if part == "train" else None
        if weights is None:
            weights = np.ones(len(rows.ids))
        own = rows.labels.reshape(len(rows.ids), -1)
        targets = np.concatenate([weights[:, np.newaxis], own], axis=1, dtype=np.float32)
        return TokenRows(rows.ids, targets)

    def drawn(self, rows: int, learned: int) -> Drawn:
        """As of the data."""
        return self._inner.drawn(rows, learned)

    def loss(self, targets: Any, logits: Any) -> Any:
        """The loss of the data, times the weight of the row."""
        return tf.cast(targets[:, 0], logits.dtype) * self._inner.loss(self._own(targets), logits)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """Those of the data, in which every row counts the same."""
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
        order: int = 2,
    ) -> NgramModel:
        """As of the data."""
        return self._inner.fit_ngrams(train, validation, vocabulary_size, order)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """The targets of the data, of those that `learned_from` makes."""
        own = targets[:, 1:] if self.kind == "labels" else targets[:, 1]
        return self._inner.in_units(own.astype(np.int32) if self.kind == "class" else own)

    def _of_own(self, measure: PerRowFunction) -> PerRowFunction:
        return lambda targets, logits: measure(self._own(targets), logits)

    def _own(self, targets: Any) -> Any:
        if self.kind == "labels":
            return targets[:, 1:]
        return tf.cast(targets[:, 1], tf.int32) if self.kind == "class" else targets[:, 1]
