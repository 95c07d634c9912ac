"""The answers of a text classifier from its logits.

A class is eligible if its probability reaches its threshold; if no class does, all are eligible.
The answer is the eligible class of the greatest expected utility. For several labels, all labels
whose probability reaches their threshold apply.

B rows, C classes or labels.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gru_serving.preprocessing.description import SharedStep, Step, Values
from gru_serving.preprocessing.operations import Arrays


@dataclass(frozen=True)
class Probabilities(Step, kind="probabilities"):
    """Converts logits to probabilities.

    Attributes:
        source: Logits (..., C) float32.
        target: Probabilities (..., C) float32.
        function: Softmax, of classes of which one is right, or sigmoid, of labels.
        temperature: Divisor of the logits.
    """

    source: str
    target: str
    function: Literal["softmax", "sigmoid"]
    temperature: float

    def numpy(self, values: Values) -> None:
        """Compute the probabilities."""
        logits = values[self.source] / np.float32(self.temperature)
        if self.function == "softmax":
            logits -= np.maximum.reduce(logits, axis=-1, keepdims=True)  # as max, half the time
            np.exp(logits, out=logits)
            logits /= np.add.reduce(logits, axis=-1, keepdims=True)
            values[self.target] = logits
        else:  # the exponential of no large number
            small = np.exp(-np.abs(logits))
            values[self.target] = np.where(logits < 0, small, np.float32(1)) / (1 + small)

    def graph(self, values: Values) -> None:
        """Compute the probabilities."""
        import tensorflow as tf

        logits = tf.cast(values[self.source], tf.float32) / np.float32(self.temperature)
        function = tf.nn.softmax if self.function == "softmax" else tf.math.sigmoid
        values[self.target] = function(logits)


@dataclass(frozen=True)
class ChooseClass(Step, kind="choose_class"):
    """The answered class as `label` (B,), and its `probability` (B,).

    Attributes:
        source: Probabilities (B, C).
        names: The C classes.
        thresholds: Least probability of each class; empty where any will do.
        utilities: Utility (C, C) of the answer (column) for the true class (row); empty for 1 if
            right.
    """

    source: str
    names: tuple[str, ...]
    thresholds: tuple[float, ...] = ()
    utilities: tuple[tuple[float, ...], ...] = ()

    def numpy(self, values: Values) -> None:
        """Choose the class."""
        scores = values[self.source]
        place = self.places(scores)
        values["label"] = self._encoded[place]
        if self.thresholds or self.utilities:
            values["probability"] = scores[np.arange(len(scores)), place]
        else:
            values["probability"] = np.maximum.reduce(scores, axis=-1)

    def places(self, scores: np.ndarray) -> np.ndarray:
        """Return the numbers (B,) of the answered classes, given probabilities (B, C)."""
        value = scores
        if self.utilities:
            value = scores @ np.array(self.utilities, scores.dtype)
        if self.thresholds:
            eligible = scores >= np.array(self.thresholds, scores.dtype)
            eligible |= ~eligible.any(axis=1, keepdims=True)
            value = np.where(eligible, value, -np.inf)
        found: np.ndarray = value.argmax(axis=-1)
        return found

    def graph(self, values: Values) -> None:
        """Choose the class."""
        import tensorflow as tf

        scores = values[self.source]
        place = self.places_in_graph(scores)
        values["label"] = tf.gather(tf.constant(self.names, tf.string), place)
        values["probability"] = tf.gather(scores, place, batch_dims=1)

    def places_in_graph(self, scores: Any) -> Any:
        """Return the result of `places` by TensorFlow operations."""
        import tensorflow as tf

        value = scores
        if self.utilities:
            value = tf.matmul(scores, tf.constant(self.utilities, tf.float32))
        if self.thresholds:
            eligible = scores >= tf.constant(self.thresholds, tf.float32)
            eligible |= ~tf.reduce_any(eligible, axis=1, keepdims=True)
            value = tf.where(eligible, value, -np.inf)
        return tf.argmax(value, axis=-1)

    @cached_property
    def _encoded(self) -> Any:
        return Arrays.texts(self.names)


@dataclass(frozen=True)
class ChooseLabels(Step, kind="choose_labels"):
    """The labels that apply as `labels` (B, C), and the `thresholds` (B, C).

    The likeliest labels come first; empty texts pad the row.

    Attributes:
        source: Probabilities (B, C).
        names: The C labels.
        thresholds: Probability from which each applies.
    """

    source: str
    names: tuple[str, ...]
    thresholds: tuple[float, ...]

    def numpy(self, values: Values) -> None:
        """Choose the labels."""
        scores = values[self.source]
        least = np.array(self.thresholds, np.float32)
        applies = scores >= least
        order = np.argsort(-np.where(applies, scores, np.float32(-1)), axis=1, kind="stable")
        there = np.take_along_axis(applies, order, axis=1)
        values["labels"] = self._encoded[np.where(there, order, len(self.names))]
        values["thresholds"] = np.broadcast_to(least, scores.shape)

    def graph(self, values: Values) -> None:
        """Choose the labels."""
        import tensorflow as tf

        scores = values[self.source]
        least = tf.broadcast_to(tf.constant(self.thresholds, tf.float32), tf.shape(scores))
        applies = scores >= least
        order = tf.argsort(tf.where(applies, scores, -1.0), direction="DESCENDING", stable=True)
        there = tf.gather(applies, order, batch_dims=1)
        named = tf.gather(tf.constant(self.names, tf.string), order)
        values["labels"] = tf.where(there, named, tf.constant("", tf.string))
        values["thresholds"] = least

    @cached_property
    def _encoded(self) -> Any:
        return Arrays.texts((*self.names, ""))


@dataclass(frozen=True)
class RestoreNumber(SharedStep, kind="restore_number"):
    """Converts standardised numbers to the unit of the data.

    Attributes:
        source: Numbers (..., 1) float32.
        target: Numbers (..., 1) float32 in the data's units.
        mean: Mean of the training rows.
        deviation: Standard deviation of the training rows.
    """

    source: str
    target: str
    mean: float
    deviation: float

    def do(self, values: Values, ops: Any) -> None:
        """Scale the numbers."""
        standard = ops.cast(values[self.source], "float32")
        values[self.target] = standard * np.float32(self.deviation) + np.float32(self.mean)


@dataclass(frozen=True)
class AddBounds(SharedStep, kind="add_bounds"):
    """Adds the bounds of intervals as `quantiles` (B, 4) to a number as `value` (B,).

    Attributes:
        source: Numbers (B, 1).
        offsets: Difference of each bound from the number.
    """

    source: str
    offsets: tuple[float, ...]

    def do(self, values: Values, ops: Any) -> None:  # noqa: ARG002
        """Add the offsets."""
        value = values[self.source]
        values["value"] = value[:, 0]
        values["quantiles"] = value + np.array(self.offsets, np.float32)


@dataclass(frozen=True)
class RepeatNames(SharedStep, kind="repeat_names"):
    """Repeats the classes or labels in each row as `classes` (B, C).

    Attributes:
        source: Probabilities (B, C).
        names: The C classes or labels.
    """

    source: str
    names: tuple[str, ...]

    def do(self, values: Values, ops: Any) -> None:
        """Repeat the names."""
        shape = ops.shape(values[self.source])
        values["classes"] = ops.broadcast(ops.texts(self.names), shape)


@dataclass(frozen=True)
class HidePadding(SharedStep, kind="hide_padding"):
    """Sets values at padding to zero.

    Attributes:
        source: Values (B, T, C), which are changed.
        ids: Word ids (B, T), 0 at padding.
    """

    source: str
    ids: str

    def do(self, values: Values, ops: Any) -> None:
        """Set the values to zero."""
        kept = ops.cast(values[self.ids] != 0, "float32")[..., None]
        values[self.source] = values[self.source] * kept


_NAMES_SHOWN = 8
"""Names in the refusal of one that is unknown."""


@dataclass(frozen=True)
class FindLabel(SharedStep, kind="find_label"):
    """The classes or labels that a caller names, as their numbers.

    Attributes:
        source: Name (B,) of a class or label in each row, or an empty text for none.
        target: Number (B,) int64 of each, -1 for none.
        names: The C classes or labels.
    """

    source: str
    target: str
    names: tuple[str, ...]

    def do(self, values: Values, ops: Any) -> None:
        """Look them up; those that are unknown are refused."""
        given = values[self.source]
        place, _ = ops.places(given[:, None], ("", *self.names))  # (B, C + 1)
        found = place >= 0
        unknown = ~ops.any(found, axis=1)
        named = ", ".join(self.names[:_NAMES_SHOWN])
        more = ", ..." if len(self.names) > _NAMES_SHOWN else ""
        said = f"{self.source}: expected an empty text or one of {named}{more}; got "
        numbers = ops.range(-1, len(self.names))
        values[self.target] = ops.sum(ops.where(found, numbers, 0 * numbers), axis=1)
        known = ops.all(~unknown)
        ops.require(
            values,
            self.target,
            known,
            lambda: [said, ops.joined(given[:, None], ops.first(unknown)[0])],
        )


@dataclass(frozen=True)
class NameLabel(SharedStep, kind="name_label"):
    """Numbers of classes or labels to their names.

    Attributes:
        source: Number (B,) of a class or label in each row.
        target: Name (B,) of each.
        names: The C classes or labels.
    """

    source: str
    target: str
    names: tuple[str, ...]

    def do(self, values: Values, ops: Any) -> None:
        """Name them."""
        values[self.target] = ops.take(ops.texts(self.names), values[self.source])
