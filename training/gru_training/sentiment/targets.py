"""The target of a text: one class, any number of labels, or a number to estimate.

`make_target` makes the target of a data set. `training_rows` is the point of extension for
everything that weighs rows or gives them probabilities in place of a label: a network is trained on
its result, and measured on the target itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gru_training.data.label_cells import TargetKind
from gru_training.errors import ConfigError
from gru_training.loop.batches import ALL_ROWS, Drawn
from gru_training.loop.fit import PerRowFunction
from gru_training.loop.train import Objective
from gru_training.sentiment.class_weights import class_weights, label_weights
from gru_training.sentiment.config import SentimentConfig, SoftConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.decision import Scale, negative_log_likelihood
from gru_training.sentiment.measures import (
    ChosenMetric,
    chosen_metric,
    class_measures,
    label_log_loss,
    labels_agreement,
    number_measures,
)
from gru_training.words.ngrams import FittedNgrams, fit_ngram_numbers, fit_ngrams
from gru_training.words.vocabulary import TokenRows


class Target(ABC):
    """One kind of target, of one data set.

    Args:
        names: The C classes or labels; the name of a number to estimate.
        metric: Measure by which epochs, settings and combinations are chosen.
    """

    kind: TargetKind
    signature: tf.TensorSpec
    """Shape and type of the targets of a batch."""
    key: Hashable
    """Key shared by targets with the same loss and row metrics."""

    def __init__(self, names: Sequence[str], metric: ChosenMetric):
        self.names, self.metric = tuple(names), metric

    @property
    def outputs(self) -> int:
        """Number of logits per text."""
        return len(self.names)

    @abstractmethod
    def loss(self, targets: Any, logits: Any) -> Any:
        """Compute the loss (B,) of targets and logits (B, C) in TensorFlow."""

    def soft_loss(self, probabilities: Any, logits: Any) -> Any:
        """Compute the loss (B,) of probabilities and logits (B, C) in TensorFlow.

        For probabilities of 0 and 1 it is the loss of the label.
        """
        raise NotImplementedError(f"a {self.kind} has no probabilities")

    @abstractmethod
    def row_metrics(self) -> dict[str, PerRowFunction]:
        """List measures that are means over rows, shown at every epoch."""

    @abstractmethod
    def members(self, targets: np.ndarray) -> np.ndarray:
        """Find the rows of each class or label, (N, C) bool; (N, 0) for a number."""

    @abstractmethod
    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Compute the loss of validation rows, which temperature and shares minimise."""

    def measures(self, targets: np.ndarray, answers: np.ndarray) -> dict[str, float]:
        """Measure answers against targets.

        Args:
            targets: Targets of N rows.
            answers: Class numbers (N,), labels (N, C) bool, or numbers (N,).
        """
        if self.kind == "labels":
            return labels_agreement(self.members(targets), answers)
        if self.kind == "number":
            return number_measures(targets, answers)
        return class_measures(targets, answers, self.outputs)

    def class_weights(self, rows: TokenRows) -> np.ndarray | None:  # noqa: ARG002
        """Compute the weight of each row by its class, (N,); None for equal weights."""
        return None

    def fit_ngrams(
        self, train: TokenRows, validation: TokenRows, tokens: Sequence[str], order: int = 2
    ) -> FittedNgrams:
        """Fit a linear model on n-grams that answers with the same logits.

        By default it is a logistic regression of each class or label against the rest.

        Args:
            train: Rows to learn from.
            validation: Rows by which the penalty is chosen.
            tokens: Known words, by id.
            order: Number of words in the longest n-grams.
        """
        return fit_ngrams(
            self._weighed(train),
            self._weighed(validation),
            len(self.names),
            tokens,
            self.metric.score,
            order,
        )

    def _weighed(self, rows: TokenRows) -> TokenRows:
        """Multiply the weights of rows by those of their classes."""
        weights = self.class_weights(rows)
        if weights is not None and rows.weights is not None:
            weights = weights * rows.weights
        return rows if weights is None else TokenRows(rows.ids, rows.labels, weights)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """Convert targets to the form that losses and metrics take."""
        return targets

    def objective(self) -> Objective:
        """Describe what training minimises and shows, and how it chooses the best epoch."""
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


def cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Compute the negative log-probability of the right class, (B,), from logits (B, C)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def accuracy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Mark the rows whose likeliest class is the right one, (B,) bool."""
    return tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)


class ClassTarget(Target):
    """One class for each text: class numbers (N,) int32.

    Args:
        names: C classes.
        metric: Measure to choose by.
        weights: Weight (C,) of a row of each class in the loss.
    """

    kind = "class"
    signature = tf.TensorSpec((None,), tf.int32)

    def __init__(self, names: Sequence[str], metric: ChosenMetric, weights: np.ndarray):
        super().__init__(names, metric)
        self.weights = None if np.all(weights == 1) else weights
        self.key = ("class", None if self.weights is None else tuple(weights.tolist()))

    def loss(self, targets: Any, logits: Any) -> Any:
        """Compute the cross-entropy, times the weight of the row's class."""
        values = cross_entropy(targets, logits)
        if self.weights is None:
            return values
        return values * tf.gather(tf.constant(self.weights, values.dtype), targets)

    def soft_loss(self, probabilities: Any, logits: Any) -> Any:
        """Compute the cross-entropy, each probability times the weight of its class."""
        if self.weights is not None:
            probabilities *= tf.constant(self.weights, probabilities.dtype)
            return -tf.reduce_sum(probabilities * tf.nn.log_softmax(logits), axis=-1)
        return tf.nn.softmax_cross_entropy_with_logits(probabilities, logits)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """Return the metrics of single rows by name: the accuracy."""
        return {"accuracy": accuracy}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """Find the rows of each class."""
        return np.asarray(targets[:, np.newaxis] == np.arange(len(self.names)))

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Compute the negative log-likelihood."""
        return negative_log_likelihood(targets, logits)

    def class_weights(self, rows: TokenRows) -> np.ndarray | None:
        """Compute the weight of each row by its class, (N,)."""
        return None if self.weights is None else np.asarray(self.weights[rows.labels])


def right_labels(targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Compute the share of labels that are right at a threshold of one half, (B,)."""
    return tf.reduce_mean(tf.cast(tf.equal(targets > 0.5, logits > 0), tf.float32), axis=-1)


class LabelsTarget(Target):
    """The target of any number of labels for each text, (N, C) float32 of 0 and 1.

    Args:
        names: C labels.
        metric: Measure to choose by.
        weights: Weight (C,) of a label that applies, relative to one that does not.
    """

    kind = "labels"

    def __init__(self, names: Sequence[str], metric: ChosenMetric, weights: np.ndarray):
        super().__init__(names, metric)
        self.weights = weights
        self.key = ("labels", *weights.tolist())
        self.signature = tf.TensorSpec((None, len(names)), tf.float32)

    def loss(self, targets: Any, logits: Any) -> Any:
        """Compute the mean over the labels of the binary cross-entropy."""
        values = tf.nn.weighted_cross_entropy_with_logits(
            targets, logits, tf.constant(self.weights, logits.dtype)
        )
        return tf.reduce_mean(values, axis=-1)

    def soft_loss(self, probabilities: Any, logits: Any) -> Any:
        """Compute the same loss from probabilities."""
        return self.loss(probabilities, logits)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """List the share of right labels."""
        return {"right labels": right_labels}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """Find the rows to which each label applies."""
        return np.asarray(targets > 0.5)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Compute the mean binary cross-entropy."""
        return label_log_loss(targets, logits)


class NumberTarget(Target):
    """A number to estimate for each text, (N,) float32.

    The model answers in standard units, relative to mean and deviation of the training rows.

    Args:
        name: Name of the number.
        metric: Measure to choose by.
        mean: Mean of the training rows.
        deviation: Standard deviation of the training rows.
    """

    kind = "number"
    signature = tf.TensorSpec((None,), tf.float32)

    def __init__(self, name: str, metric: ChosenMetric, mean: float, deviation: float):
        super().__init__((name,), metric)
        self.mean, self.deviation = mean, deviation
        self.key = ("number", mean, deviation)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """Convert numbers to standard units."""
        return np.asarray((targets - self.mean) / self.deviation)

    def _errors(self, targets: Any, logits: Any) -> Any:
        return (targets - self.mean) / self.deviation - logits[:, 0]

    def loss(self, targets: Any, logits: Any) -> Any:
        """Compute the squared error in standard units."""
        return tf.square(self._errors(targets, logits))

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """List the absolute error in standard units."""
        return {"mae": lambda targets, logits: tf.abs(self._errors(targets, logits))}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """Return no rows, since there are no classes."""
        return np.zeros((len(targets), 0), bool)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Compute the mean squared error in standard units."""
        return float(np.mean((self.in_units(targets) - logits[:, 0]) ** 2))

    def fit_ngrams(
        self, train: TokenRows, validation: TokenRows, tokens: Sequence[str], order: int = 2
    ) -> FittedNgrams:
        """Fit a ridge regression."""
        learned, held_out = (
            TokenRows(part.ids, self.in_units(part.labels).astype(np.float32), part.weights)
            for part in (train, validation)
        )
        return fit_ngram_numbers(learned, held_out, tokens, self.metric.score, order)


def make_target(data: SentimentData, config: SentimentConfig, scale: Scale | None = None) -> Target:
    """Build the target of a data set.

    Args:
        data: Rows to learn from.
        config: Settings of the training.
        scale: Units that a number to estimate is to keep; by default those of the training rows.

    Raises:
        ConfigError: A metric, weight or decision is not for this kind of target.
    """
    names, settings = data.classes, config.training
    metric = chosen_metric(settings.metric, data.kind, names)
    labels = data.train.labels
    if data.kind == "class":
        members = np.asarray(labels[:, np.newaxis] == np.arange(len(names)))
        return ClassTarget(names, metric, class_weights(settings.class_weight, names, members))
    if config.decision.costs is not None:
        raise ConfigError("--costs is for --target-type class")
    if data.kind == "labels":
        weights = label_weights(settings.class_weight, names, labels > 0.5)
        return LabelsTarget(names, metric, weights)
    for flag, value in (
        ("--class-weight", settings.class_weight),
        ("--target-precision", config.decision.target_precision),
        ("--word-ratios", config.model.word_ratios),
    ):
        if value:
            raise ConfigError(f"{flag} is for classes and labels, not for --target-type number")
    if scale is not None:
        return NumberTarget(names[0], metric, scale.mean, scale.deviation)
    mean, deviation = float(labels.mean(dtype=np.float64)), float(labels.std(dtype=np.float64))
    return NumberTarget(names[0], metric, mean, deviation)


class WeightedTarget(Target):
    """A target whose rows have weights in the loss, and optionally probabilities.

    Its targets are (N, 1 + own + 1 + C) float32: the weight of the row's label, the label, the
    weight of the probabilities, and these. The loss of a row is the sum of both losses times their
    weights; measures compare the answer with the label.

    Hinton, Vinyals and Dean (2015), "Distilling the Knowledge in a Neural Network"
    (arXiv:1503.02531), section 2: probabilities and logits are compared at the temperature T, and
    the loss is multiplied by T², so that its gradient is of the same size at any temperature.

    Args:
        inner: Target of the data, which also measures and calibrates.
        temperature: Temperature T of the probabilities; None if no row has any.
    """

    def __init__(self, inner: Target, temperature: float | None = None):
        super().__init__(inner.names, inner.metric)
        self._inner, self.kind, self._temperature = inner, inner.kind, temperature
        self._end = 1 + (inner.outputs if inner.kind == "labels" else 1)
        columns = self._end + (0 if temperature is None else 1 + inner.outputs)
        self.signature = tf.TensorSpec((None, columns), tf.float32)
        self.key = ("weighted", temperature, inner.key)

    def loss(self, targets: Any, logits: Any) -> Any:
        """Sum up the loss of the label and that of the probabilities, each times its weight."""
        loss = tf.cast(targets[:, 0], logits.dtype) * self._inner.loss(self._own(targets), logits)
        if self._temperature is None:
            return loss
        weights = self._temperature**2 * tf.cast(targets[:, self._end], logits.dtype)
        probabilities = targets[:, self._end + 1 :]
        return loss + weights * self._inner.soft_loss(probabilities, logits / self._temperature)

    def row_metrics(self) -> dict[str, PerRowFunction]:
        """List the measures of the data, in which every row counts equally."""

        def of_label(measure: PerRowFunction) -> PerRowFunction:
            return lambda targets, logits: measure(self._own(targets), logits)

        return {name: of_label(measure) for name, measure in self._inner.row_metrics().items()}

    def members(self, targets: np.ndarray) -> np.ndarray:
        """Find the rows of each class or label of the data, (N, C) bool."""
        return self._inner.members(targets)

    def mean_loss(self, targets: np.ndarray, logits: np.ndarray) -> float:
        """Compute the mean loss of rows of the data."""
        return self._inner.mean_loss(targets, logits)

    def in_units(self, targets: np.ndarray) -> np.ndarray:
        """Extract the labels from weighted targets."""
        own = targets[:, 1 : self._end]
        if self.kind != "labels":
            own = own[:, 0]
        return self._inner.in_units(own.astype(np.int32) if self.kind == "class" else own)

    def _own(self, targets: Any) -> Any:
        """Extract the row's label in the form of the inner target, in TensorFlow."""
        own = targets[:, 1 : self._end]
        if self.kind == "labels":
            return own
        return tf.cast(own[:, 0], tf.int32) if self.kind == "class" else own[:, 0]

    def columns(self, rows: TokenRows, weights: np.ndarray) -> np.ndarray:
        """Arrange the targets of rows of the data in columns, without any probabilities.

        Args:
            rows: N rows of the data.
            weights: Weights (N,) of their labels.
        """
        targets = np.zeros((len(rows.ids), self.signature.shape[1]), np.float32)
        targets[:, 0] = weights
        targets[:, 1 : self._end] = rows.labels.reshape(len(rows.ids), -1)
        return targets

    def soft_columns(self, probabilities: np.ndarray, weight: float) -> np.ndarray:
        """Arrange probabilities (N, C) in columns, beside the likeliest label of weight 0."""
        assert self._temperature is not None
        targets = np.zeros((len(probabilities), self.signature.shape[1]), np.float32)
        if self.kind == "class":
            targets[:, 1] = probabilities.argmax(axis=1)
        else:
            targets[:, 1 : self._end] = probabilities > 0.5
        targets[:, self._end] = weight
        targets[:, self._end + 1 :] = _at_temperature(probabilities, self._temperature, self.kind)
        return targets


def _at_temperature(probabilities: np.ndarray, temperature: float, kind: str) -> np.ndarray:
    """Compute probabilities (N, C) with logits divided by a temperature."""
    if temperature == 1:
        return probabilities
    powers = probabilities.astype(np.float64) ** (1 / temperature)
    if kind == "labels":
        powers /= powers + (1 - probabilities.astype(np.float64)) ** (1 / temperature)
        return powers
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


class TrainingRows(NamedTuple):
    """Rows on which a network is trained, and by which it is judged after each epoch."""

    target: Target
    train: TokenRows
    validation: TokenRows
    drawn: Drawn
    """Rows of which an epoch reads only some."""


def training_rows(
    target: Target,
    train: TokenRows,
    validation: TokenRows,
    soft: TokenRows | None,
    settings: SoftConfig,
) -> TrainingRows:
    """Assign weights to rows, and add those whose targets are probabilities.

    Training rows weigh 1 on average. Held-out rows weigh 1 each.

    Args:
        target: Target of the data.
        train: N rows to learn from.
        validation: Rows that judge each epoch.
        soft: M rows with probabilities (M, C) in place of labels, if there are any.
        settings: Settings of the weights and of the rows with probabilities.
    """
    if train.weights is None and soft is None:
        return TrainingRows(target, train, validation, ALL_ROWS)
    weighted = WeightedTarget(target, None if soft is None else settings.soft_temperature)
    weights = np.ones(len(train.ids)) if train.row_weights is None else train.row_weights
    ids, targets, drawn = train.ids, weighted.columns(train, weights), ALL_ROWS
    if soft is not None:
        drawn = _drawn(settings.read_rows(len(ids)), len(ids), len(soft.ids))
        further = weighted.soft_columns(soft.labels, settings.soft_weight)
        ids, targets = [*ids, *soft.ids], np.concatenate([targets, further])
    judged = weighted.columns(validation, np.ones(len(validation.ids)))
    return TrainingRows(weighted, TokenRows(ids, targets), TokenRows(validation.ids, judged), drawn)


def _drawn(read: int, first: int, rows: int) -> Drawn:
    return ALL_ROWS if read >= rows else Drawn(first, rows, read / rows)
