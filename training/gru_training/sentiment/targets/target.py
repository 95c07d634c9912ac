"""What the kinds of target differ in while a model is trained."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.classification.chosen_metric import ChosenMetric
from gru_training.data.label_cells import TargetKind
from gru_training.loop.batches import NOT_DRAWN, Drawn
from gru_training.loop.fit import PerRowFunction
from gru_training.loop.train import Objective
from gru_training.words.ngram_model import NgramModel
from gru_training.words.token_rows import TokenRows


class Target(ABC):
    """One kind of target, of one data set.

    Args:
        names: The C classes or labels; of a number what it is called.
        metric: What epochs, settings and combinations are chosen by.
    """

    kind: TargetKind
    signature: tf.TensorSpec
    """Of the targets of a batch."""
    shown: str
    """The measure beside the loss in progress and curves, where none was chosen."""
    key: Hashable = None
    """Equal for targets with the same loss and row metrics; None: not comparable."""

    def __init__(self, names: Sequence[str], metric: ChosenMetric):
        self.names, self.metric = tuple(names), metric

    @property
    def outputs(self) -> int:
        """Logits of a text."""
        return len(self.names)

    @abstractmethod
    def loss(self, targets: Any, logits: Any) -> Any:
        """To minimise, (B,), of targets and logits (B, C); in TensorFlow."""

    @abstractmethod
    def row_metrics(self) -> dict[str, PerRowFunction]:
        """Measures that are means over rows, shown at every epoch."""

    @abstractmethod
    def members(self, targets: np.ndarray) -> np.ndarray:
        """Which rows are of which class or label, (N, C) bool; none of a number, (N, 0)."""

    @abstractmethod
    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Of validation rows, without weights: what temperature and shares minimise."""

    @abstractmethod
    def fit_ngrams(
        self,
        train: TokenRows,
        validation: TokenRows,
        vocabulary_size: int,
        order: int = 2,
    ) -> NgramModel:
        """A linear model on n-grams that answers with the same logits.

        Args:
            train: Rows to learn from.
            validation: Rows on which the penalty is chosen.
            vocabulary_size: V, number of ids.
            order: Words in the longest n-grams.
        """

    def learned_from(self, part: str, rows: TokenRows) -> TokenRows:  # noqa: ARG002
        """The rows of a part as a network is trained on them, or judged after each epoch."""
        return rows

    def drawn(self, rows: int, learned: int) -> Drawn:  # noqa: ARG002
        """Which of the rows of `learned_from` an epoch reads a part of.

        Args:
            rows: That the training part has.
            learned: That `learned_from` made of it.
        """
        return NOT_DRAWN

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """The targets as losses and metrics take them."""
        return targets

    def objective(self) -> Objective:
        """What training minimises, shows, and chooses the best epoch by."""
        metrics, measures = self.row_metrics(), {}
        name = self.metric.name
        if name not in (*metrics, "loss"):
            measures[name] = lambda targets, logits: self.metric.of(self.in_units(targets), logits)
        sign = 1 if self.metric.higher_is_better else -1
        return Objective(
            self.loss,
            metrics,
            score=lambda means: (sign * means[name], -means["loss"]),
            shown=name,
            style=".1%" if self.metric.higher_is_better else ".4g",
            measures=measures,
            key=self.key,
        )


class TargetWrapper(Target):
    """A target that learns further columns beside the row's own target.

    Its targets are (N, 1 + own + further) float32: a column that says how the row's own target
    counts, that target, and the further columns.

    Args:
        inner: Target of the data, which also measures and calibrates.
        further: Number of columns behind the row's own target.
    """

    def __init__(self, inner: Target, further: int = 0):
        super().__init__(inner.names, inner.metric)
        self._inner, self.kind = inner, inner.kind
        self._own_columns = inner.outputs if inner.kind == "labels" else 1
        self.signature = tf.TensorSpec((None, 1 + self._own_columns + further), tf.float32)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """The measures of the data, in which every row counts the same."""

        def of_measured(measure: PerRowFunction) -> PerRowFunction:
            return lambda targets, logits: measure(self._measured(targets), logits)

        return {name: of_measured(measure) for name, measure in self._inner.row_metrics().items()}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """The classes or labels of the rows of the data, (N, C) bool."""
        return self._inner.members(targets)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """The mean loss of rows of the data."""
        return self._inner.mean_loss(targets, logits)

    def fit_ngrams(
        self, train: TokenRows, validation: TokenRows, vocabulary_size: int, order: int = 2
    ) -> NgramModel:
        """Fit the linear model of the data."""
        return self._inner.fit_ngrams(train, validation, vocabulary_size, order)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """The targets of the data, of those that `learned_from` makes."""
        own = targets[:, 1 : 1 + self._own_columns]
        if self.kind != "labels":
            own = own[:, 0]
        return self._inner.in_units(own.astype(np.int32) if self.kind == "class" else own)

    def _own(self, targets: Any) -> Any:
        """The row's own target, as the inner target has it; in TensorFlow."""
        own = targets[:, 1 : 1 + self._own_columns]
        if self.kind == "labels":
            return own
        return tf.cast(own[:, 0], tf.int32) if self.kind == "class" else own[:, 0]

    def _measured(self, targets: Any) -> Any:
        """The target that measures compare with the logits; in TensorFlow."""
        return self._own(targets)
