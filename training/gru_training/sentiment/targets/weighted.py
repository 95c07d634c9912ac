"""Rows that do not count the same in the loss."""

from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.loop.batches import Drawn
from gru_training.sentiment.targets.target import TargetWrapper
from gru_training.words.token_rows import TokenRows


class WeightedTarget(TargetWrapper):
    """The target of a data set, with the weight of each training row in the loss.

    Targets are (N, 1 + own) float32: the weight, and the row's own target. Training rows weigh 1
    on average. Held-out rows weigh 1 each.

    Args:
        inner: Target of the data.
    """

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
