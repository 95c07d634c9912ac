"""Logits of a text classifier to its answers.

A class is eligible where its probability reaches its threshold; where none is, all are. The answer
is the eligible class of the greatest expected utility. Of several labels all apply whose
probability reaches its threshold.

B rows, C classes or labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gru_serving.preprocessing.description import Step, Values


def encoded(texts: Sequence[str]) -> np.ndarray:
    """Return texts as requests have them, (N,) of `bytes`."""
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return array


@dataclass(frozen=True)
class Probabilities(Step, kind="probabilities"):
    """Logits to probabilities.

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
        """Compute them."""
        logits = values[self.source] / np.float32(self.temperature)
        if self.function == "softmax":
            logits -= logits.max(axis=-1, keepdims=True)
            np.exp(logits, out=logits)
            logits /= logits.sum(axis=-1, keepdims=True)
            values[self.target] = logits
        else:  # the exponential of no large number
            small = np.exp(-np.abs(logits))
            values[self.target] = np.where(logits < 0, small, np.float32(1)) / (1 + small)

    def graph(self, values: Values) -> None:
        """Compute them."""
        import tensorflow as tf

        logits = tf.cast(values[self.source], tf.float32) / np.float32(self.temperature)
        function = tf.nn.softmax if self.function == "softmax" else tf.math.sigmoid
        values[self.target] = function(logits)


@dataclass(frozen=True)
class ChooseClass(Step, kind="choose_class"):
    """The class that is answered, as `label` (B,), and its `probability` (B,).

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
        """Choose it."""
        scores = values[self.source]
        place = self.places(scores)
        values["label"] = self._encoded[place]
        values["probability"] = scores[np.arange(len(scores)), place]

    def places(self, scores: np.ndarray) -> np.ndarray:
        """Return the numbers (B,) of the classes answered, of probabilities (B, C)."""
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
        """Choose it."""
        import tensorflow as tf

        scores = values[self.source]
        place = self.places_in_graph(scores)
        values["label"] = tf.gather(tf.constant(self.names, tf.string), place)
        values["probability"] = tf.gather(scores, place, batch_dims=1)

    def places_in_graph(self, scores: Any) -> Any:
        """Return the same as `places`, by operations of TensorFlow."""
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
    def _encoded(self) -> np.ndarray:
        return encoded(self.names)


@dataclass(frozen=True)
class ChooseLabels(Step, kind="choose_labels"):
    """The labels that apply, as `labels` (B, C), and the `thresholds` (B, C).

    The likeliest are in front; empty texts fill up the row.

    Attributes:
        source: Probabilities (B, C).
        names: The C labels.
        thresholds: Probability from which each applies.
    """

    source: str
    names: tuple[str, ...]
    thresholds: tuple[float, ...]

    def numpy(self, values: Values) -> None:
        """Choose them."""
        scores = values[self.source]
        least = np.array(self.thresholds, np.float32)
        applies = scores >= least
        order = np.argsort(-np.where(applies, scores, np.float32(-1)), axis=1, kind="stable")
        there = np.take_along_axis(applies, order, axis=1)
        values["labels"] = self._encoded[np.where(there, order, len(self.names))]
        values["thresholds"] = np.broadcast_to(least, scores.shape)

    def graph(self, values: Values) -> None:
        """Choose them."""
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
    def _encoded(self) -> np.ndarray:
        return encoded((*self.names, ""))


@dataclass(frozen=True)
class RestoreNumber(Step, kind="restore_number"):
    """Numbers in standard units to those of the data.

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

    def numpy(self, values: Values) -> None:
        """Scale them."""
        values[self.target] = self._scaled(values[self.source])

    def graph(self, values: Values) -> None:
        """Scale them."""
        import tensorflow as tf

        values[self.target] = self._scaled(tf.cast(values[self.source], tf.float32))

    def _scaled(self, standard: Any) -> Any:
        return standard * np.float32(self.deviation) + np.float32(self.mean)


@dataclass(frozen=True)
class AddBounds(Step, kind="add_bounds"):
    """A number as `value` (B,), with the bounds of its intervals as `quantiles` (B, 4).

    Attributes:
        source: Numbers (B, 1).
        offsets: Difference of each bound from the number.
    """

    source: str
    offsets: tuple[float, ...]

    def numpy(self, values: Values) -> None:
        """Add the offsets."""
        self._add(values, np.array(self.offsets, np.float32))

    def graph(self, values: Values) -> None:
        """Add the offsets."""
        import tensorflow as tf

        self._add(values, tf.constant(self.offsets, tf.float32))

    def _add(self, values: Values, offsets: Any) -> None:
        value = values[self.source]
        values["value"], values["quantiles"] = value[:, 0], value + offsets


@dataclass(frozen=True)
class RepeatNames(Step, kind="repeat_names"):
    """The classes or labels in each row, as `classes` (B, C).

    Attributes:
        source: Probabilities (B, C).
        names: The C classes or labels.
    """

    source: str
    names: tuple[str, ...]

    def numpy(self, values: Values) -> None:
        """Repeat them."""
        shape = values[self.source].shape
        values["classes"] = np.broadcast_to(encoded(self.names), shape)

    def graph(self, values: Values) -> None:
        """Repeat them."""
        import tensorflow as tf

        names = tf.constant(self.names, tf.string)
        values["classes"] = tf.broadcast_to(names, tf.shape(values[self.source]))


@dataclass(frozen=True)
class HidePadding(Step, kind="hide_padding"):
    """Zero in place of what stands at padding.

    Attributes:
        source: Values (B, T, C), which are changed.
        ids: Word ids (B, T), 0 at padding.
    """

    source: str
    ids: str

    def numpy(self, values: Values) -> None:
        """Set it to zero."""
        kept = (values[self.ids] != 0)[..., np.newaxis]
        values[self.source] = values[self.source] * kept.astype(np.float32)

    def graph(self, values: Values) -> None:
        """Set it to zero."""
        import tensorflow as tf

        kept = tf.cast(tf.not_equal(values[self.ids], 0), tf.float32)
        values[self.source] = values[self.source] * kept[..., tf.newaxis]
