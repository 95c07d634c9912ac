"""Pooling of a sequence of features into one vector, which a classifier reads of a text.

Each layer also answers for every beginning of the sequence (`Pooling.so_far`) and piece by
piece (`Pooling.resume`), as streams need it. Steps that are masked count for nothing; a row
without any other step, for instance an empty text, yields zeros.
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
        """Pool for each step as if it were the last, (B, T, D)."""

    @abstractmethod
    def carry_size(self, features: int) -> int:
        """Numbers per row that `resume` carries, for D features."""

    @abstractmethod
    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """Pool on: all steps until now, (B, D), and the new carry (B, size); zeros at first."""

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:  # noqa: ARG002
        """There is no time axis left to mask."""
        return

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """(B, T, D) becomes (B, D)."""
        return (input_shape[0], input_shape[2])


@keras.saving.register_keras_serializable(package="gru_training")
class MaskedMaxPooling(Pooling):
    """The greatest value of each feature. Carries it, and how many steps there were."""

    def pool(self, sequence: Any, mask: Any) -> Any:
        """The maximum over the steps."""
        greatest = ops.max(_lowest_where_masked(sequence, mask), axis=1)
        return ops.where(ops.any(mask, axis=1)[:, None], greatest, ops.zeros_like(greatest))

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """The running maximum."""
        steps = tf.transpose(_lowest_where_masked(sequence, mask), (1, 0, 2))
        pooled = tf.transpose(tf.scan(tf.maximum, steps), (1, 0, 2))
        return tf.where(_begun(mask), pooled, 0.0)

    def carry_size(self, features: int) -> int:
        """The maximum and the count."""
        return features + 1

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """The maximum of what was and what comes."""
        pooled, count = carry[:, :-1], carry[:, -1:]
        reads = tf.reduce_any(mask, axis=1)[:, tf.newaxis]
        greatest = tf.reduce_max(_lowest_where_masked(sequence, mask), axis=1)
        seen = tf.where(count > 0, tf.maximum(pooled, greatest), greatest)
        pooled = tf.where(reads, seen, pooled)
        count += tf.reduce_sum(tf.cast(mask, count.dtype), axis=1, keepdims=True)
        return pooled, tf.concat([pooled, count], axis=-1)


@keras.saving.register_keras_serializable(package="gru_training")
class MaskedMeanPooling(Pooling):
    """The mean of each feature. Carries its sum, and how many steps there were."""

    def pool(self, sequence: Any, mask: Any) -> Any:
        """The mean over the steps."""
        return _ratio(*_totals(sequence, ops.cast(mask, sequence.dtype)))

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """The running mean."""
        return _ratio(*_cumulated(sequence, tf.cast(mask, sequence.dtype)))

    def carry_size(self, features: int) -> int:
        """The sum and the count."""
        return features + 1

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """The mean of what was and what comes."""
        total, count = _totals(sequence, tf.cast(mask, sequence.dtype))
        carry += tf.concat([total, count], axis=-1)
        return _ratio(carry[:, :-1], carry[:, -1:]), carry


@keras.saving.register_keras_serializable(package="gru_training")
class AttentionPooling(Pooling):
    """A mean weighted by a learned score of each step.

    The weights are the softmax over the steps of h·w, w a learned vector (Yang et al., 2016,
    "Hierarchical Attention Networks", equations 5 to 7, without their hidden layer). Carries the
    weighted sum, the sum of the weights and the greatest score, to which both are relative.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make w, (D, 1)."""
        self.score = self.add_weight((input_shape[-1], 1), "glorot_uniform", name="score")

    def pool(self, sequence: Any, mask: Any) -> Any:
        """The weighted mean over the steps."""
        return _ratio(*_totals(sequence, self._weights(sequence, mask)[0]))

    def so_far(self, sequence: Any, mask: Any) -> Any:
        """The running weighted mean."""
        return _ratio(*_cumulated(sequence, self._weights(sequence, mask)[0]))

    def carry_size(self, features: int) -> int:
        """The weighted sum, the sum of the weights, and the greatest score."""
        return features + 2

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """The weighted mean of what was and what comes."""
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
        """Exp of score - greatest score, (B, T), zero where masked; the greatest score, (B, 1)."""
        scores = ops.squeeze(ops.matmul(sequence, self.score), -1)
        scores = ops.where(mask, scores, ops.full_like(scores, scores.dtype.min))
        greatest = ops.max(scores, axis=1, keepdims=True)
        return ops.exp(scores - greatest) * ops.cast(mask, scores.dtype), greatest


@keras.saving.register_keras_serializable(package="gru_training")
class LastPooling(Pooling):
    """The state after the whole text.

    Args:
        bidirectional: The second half of the features was read from the end to the beginning, so
            that its last state is that of the first step.
    """

    def __init__(self, bidirectional: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.bidirectional = bidirectional

    def pool(self, sequence: Any, mask: Any) -> Any:
        """The features of the last step that is not masked; the second half of the first such."""
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
        """The sequence, of a GRU in one direction, whose masked steps repeat the state."""
        return tf.where(_begun(mask), sequence, 0.0)

    def carry_size(self, features: int) -> int:
        """Return the size of the state that a pooling carries on."""
        return features

    def resume(self, sequence: Any, mask: Any, carry: Any) -> tuple[Any, Any]:
        """The state after what comes."""
        pooled = tf.where(tf.reduce_any(mask, 1)[:, tf.newaxis], self.pool(sequence, mask), carry)
        return pooled, pooled

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "bidirectional": self.bidirectional}

    @staticmethod
    def _at(sequence: Any, place: Any) -> Any:
        """The features (B, D) of one step (B,) of each row; of the nearest, outside the steps."""
        place = ops.clip(place, 0, ops.shape(sequence)[1] - 1)
        return ops.squeeze(ops.take_along_axis(sequence, place[:, None, None], axis=1), 1)


def pooling_layer(kind: str, bidirectional: bool, name: str) -> Pooling:
    """The layer of a kind: max, mean, attention or last."""
    if kind == "last":
        return LastPooling(bidirectional, name=name)
    kinds = {"max": MaskedMaxPooling, "mean": MaskedMeanPooling, "attention": AttentionPooling}
    return kinds[kind](name=name)


def _lowest_where_masked(sequence: Any, mask: Any) -> Any:
    lowest = ops.full_like(sequence, sequence.dtype.min)
    return ops.where(ops.expand_dims(mask, -1), sequence, lowest)


def _begun(mask: Any) -> Any:
    """Mark the steps by which there was a step that counts, (B, T, 1)."""
    return tf.cumsum(tf.cast(mask, tf.int32), axis=1)[..., tf.newaxis] > 0


def _totals(sequence: Any, weights: Any) -> tuple[Any, Any]:
    """Weighted sum (B, D) and sum of the weights (B, 1)."""
    return (
        ops.squeeze(ops.matmul(ops.expand_dims(weights, 1), sequence), 1),
        ops.sum(weights, axis=1, keepdims=True),
    )


def _cumulated(sequence: Any, weights: Any) -> tuple[Any, Any]:
    """The same for every beginning of the sequence, (B, T, D) and (B, T, 1)."""
    weights = ops.expand_dims(weights, -1)
    return ops.cumsum(sequence * weights, axis=1), ops.cumsum(weights, axis=1)


def _ratio(total: Any, norm: Any) -> Any:
    """Their quotient; zero where nothing was summed, and so is the total."""
    return total / ops.where(norm == 0, ops.ones_like(norm), norm)
