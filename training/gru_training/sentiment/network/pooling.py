"""Pooling of a sequence of features into one vector for a classifier.

Each layer also pools every beginning of the sequence (`Pooling.so_far`), and pools piece by piece
(`Pooling.resume`), as streams need it. Masked steps are ignored; a row without any other step, such
as an empty text, yields zeros.
"""

from abc import ABC, abstractmethod
from typing import Any

import keras
import tensorflow as tf
from keras import ops


class Pooling(keras.layers.Layer, ABC):
    """Maps (B, T, D) with an optional mask (B, T) to (B, D)."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, sequence: Any, mask: Any = None) -> Any:
        """Pool (B, T, D) with mask (B, T), or all steps without one, to (B, D)."""
        if mask is None:
            mask = ops.ones(ops.shape(sequence)[:2], "bool")
        return self.pool(sequence, ops.cast(mask, "bool"))

    @abstractmethod
    def pool(self, sequence: Any, mask: Any) -> Any:
        """Pool (B, T, D) with a mask (B, T) bool to (B, D)."""

    @abstractmethod
    def so_far(self, sequence: Any, mask: Any) -> Any:
        """Pool up to each step, (B, T, D)."""

    @abstractmethod
    def carry_size(self, features: int) -> int:
        """Return the numbers per row that `resume` carries for D features."""

    @abstractmethod
    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """Pool further steps: returns the result so far, (B, D), and the new carry (B, size).

        Zeros at first.
        """

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:  # noqa: ARG002
        """Return None, since no time axis is left."""
        return

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape (B, D) for (B, T, D)."""
        return (input_shape[0], input_shape[2])


@keras.saving.register_keras_serializable(package="gru_training")
class MaskedMaxPooling(Pooling):
    """The greatest value of each feature; carries it and the number of steps."""

    def pool(self, sequence: Any, mask: Any) -> Any:
        """Compute the maximum over the steps."""
        greatest = ops.max(_lowest_where_masked(sequence, mask), axis=1)
        return ops.where(ops.any(mask, axis=1)[:, None], greatest, ops.zeros_like(greatest))

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """Compute the running maximum."""
        steps = tf.transpose(_lowest_where_masked(sequence, mask), (1, 0, 2))
        pooled = tf.transpose(tf.scan(tf.maximum, steps), (1, 0, 2))
        return tf.where(_begun(mask), pooled, 0.0)

    def carry_size(self, features: int) -> int:
        """Return the size of maximum and count."""
        return features + 1

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """Update the maximum by further steps."""
        pooled, count = carry[:, :-1], carry[:, -1:]
        reads = tf.reduce_any(mask, axis=1)[:, tf.newaxis]
        greatest = tf.reduce_max(_lowest_where_masked(sequence, mask), axis=1)
        seen = tf.where(count > 0, tf.maximum(pooled, greatest), greatest)
        pooled = tf.where(reads, seen, pooled)
        count += tf.reduce_sum(tf.cast(mask, count.dtype), axis=1, keepdims=True)
        return pooled, tf.concat([pooled, count], axis=-1)


@keras.saving.register_keras_serializable(package="gru_training")
class MaskedMeanPooling(Pooling):
    """The mean of each feature; carries its sum and the number of steps."""

    def pool(self, sequence: Any, mask: Any) -> Any:
        """Compute the mean over the steps."""
        return _ratio(*_totals(sequence, ops.cast(mask, sequence.dtype)))

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """Compute the running mean."""
        return _ratio(*_cumulated(sequence, tf.cast(mask, sequence.dtype)))

    def carry_size(self, features: int) -> int:
        """Return the size of sum and count."""
        return features + 1

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """Update the mean by further steps."""
        total, count = _totals(sequence, tf.cast(mask, sequence.dtype))
        carry += tf.concat([total, count], axis=-1)
        return _ratio(carry[:, :-1], carry[:, -1:]), carry


@keras.saving.register_keras_serializable(package="gru_training")
class AttentionPooling(Pooling):
    """A mean weighted by a learned score of each step.

    The weights are the softmax over the steps of h·w with a learned vector w (Yang et al., 2016,
    "Hierarchical Attention Networks", equations 5 to 7, without their hidden layer). It carries the
    weighted sum, the sum of the weights and the greatest score, to which both are relative.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create w, (D, 1)."""
        self.score = self.add_weight((input_shape[-1], 1), "glorot_uniform", name="score")

    def pool(self, sequence: Any, mask: Any) -> Any:
        """Compute the weighted mean over the steps."""
        return _ratio(*_totals(sequence, self._weights(sequence, mask)[0]))

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """Compute the running weighted mean."""
        return _ratio(*_cumulated(sequence, self._weights(sequence, mask)[0]))

    def carry_size(self, features: int) -> int:
        """Return the size of weighted sum, sum of the weights, and greatest score."""
        return features + 2

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """Update the weighted mean by further steps."""
        weights, greatest = self._weights(sequence, mask)
        total, norm = _totals(sequence, weights)
        before, norm_before, greatest_before = tf.split(carry, [sequence.shape[-1], 1, 1], -1)
        fresh = norm_before == 0
        highest = tf.where(fresh, greatest, tf.maximum(greatest, greatest_before))
        highest = tf.where(norm == 0, greatest_before, highest)
        old = tf.where(fresh, 0.0, tf.exp(greatest_before - highest))
        new = tf.where(norm == 0, 0.0, tf.exp(greatest - highest))
        total, norm = before * old + total * new, norm_before * old + norm * new
        return _ratio(total, norm), tf.concat([total, norm, highest], axis=-1)

    def _weights(self, sequence: Any, mask: Any) -> tuple[Any, Any]:
        """Compute exp(score - greatest), (B, T), zero if masked, and the greatest score, (B, 1)."""
        scores = ops.squeeze(ops.matmul(sequence, self.score), -1)
        scores = ops.where(mask, scores, ops.full_like(scores, scores.dtype.min))
        greatest = ops.max(scores, axis=1, keepdims=True)
        return ops.exp(scores - greatest) * ops.cast(mask, scores.dtype), greatest


@keras.saving.register_keras_serializable(package="gru_training")
class LastPooling(Pooling):
    """The state after the last step of the text.

    Args:
        bidirectional: The second half of the features was read from the end to the beginning, so
            that its last state is that of the first step.
    """

    def __init__(self, bidirectional: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.bidirectional = bidirectional

    def pool(self, sequence: Any, mask: Any) -> Any:
        """Return the features of the last step that is not masked.

        The second half from the first such step.
        """
        place = ops.arange(ops.shape(mask)[1])
        last = ops.max(ops.where(mask, place, -1), axis=1)
        pooled = self._at(sequence, last)
        if self.bidirectional:
            half = sequence.shape[-1] // 2
            first = ops.min(ops.where(mask, place, ops.shape(mask)[1]), axis=1)
            pooled = ops.concatenate(
                [pooled[:, :half], self._at(sequence, first)[:, half:]], axis=-1
            )
        return pooled * ops.cast(ops.any(mask, axis=1), pooled.dtype)[:, None]

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """Return the sequence of a GRU in one direction, whose masked steps repeat the state."""
        return tf.where(_begun(mask), sequence, 0.0)

    def carry_size(self, features: int) -> int:
        """Return the size of the state that a pooling carries on."""
        return features

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """Return the state after further steps."""
        pooled = tf.where(tf.reduce_any(mask, 1)[:, tf.newaxis], self.pool(sequence, mask), carry)
        return pooled, pooled

    @staticmethod
    def _at(sequence: Any, place: Any) -> Any:
        """Return the features (B, D) at one step (B,) of each row.

        Outside the steps those of the nearest.
        """
        place = ops.clip(place, 0, ops.shape(sequence)[1] - 1)
        return ops.squeeze(ops.take_along_axis(sequence, place[:, None, None], axis=1), 1)


def pooling_layer(kind: str, bidirectional: bool) -> Pooling:
    """Make the layer of a kind: max, mean, attention or last."""
    if kind == "last":
        return LastPooling(bidirectional, name="pooling")
    kinds = {"max": MaskedMaxPooling, "mean": MaskedMeanPooling, "attention": AttentionPooling}
    return kinds[kind](name="pooling")


def _lowest_where_masked(sequence: Any, mask: Any) -> Any:
    lowest = ops.full_like(sequence, sequence.dtype.min)
    return ops.where(ops.expand_dims(mask, -1), sequence, lowest)


def _begun(mask: Any) -> Any:
    """Mark the steps from the first unmasked one on, (B, T, 1)."""
    return tf.cumsum(tf.cast(mask, tf.int32), axis=1)[..., tf.newaxis] > 0


def _totals(sequence: Any, weights: Any) -> tuple[Any, Any]:
    """Compute weighted sum (B, D) and sum of the weights (B, 1)."""
    return (
        ops.squeeze(ops.matmul(ops.expand_dims(weights, 1), sequence), 1),
        ops.sum(weights, axis=1, keepdims=True),
    )


def _cumulated(sequence: Any, weights: Any) -> tuple[Any, Any]:
    """Compute both for every beginning of the sequence, (B, T, D) and (B, T, 1)."""
    weights = ops.expand_dims(weights, -1)
    return ops.cumsum(sequence * weights, axis=1), ops.cumsum(weights, axis=1)


def _ratio(total: Any, norm: Any) -> Any:
    """Compute their quotient; zero for empty sums."""
    return total / ops.where(norm == 0, ops.ones_like(norm), norm)
