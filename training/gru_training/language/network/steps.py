"""One step of training and of evaluation, with the state carried from chunk to chunk."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import keras
import tensorflow as tf

from gru_training.language.batches import Chunk
from gru_training.language.network.average import MovingAverage
from gru_training.language.network.model import LanguageModel
from gru_training.language.network.softmax import (
    full_cross_entropy,
    sampled_cross_entropy,
    target_log_probabilities,
)
from gru_training.loop.fit import summed
from gru_training.words.vocabulary import PADDING

Step = Callable[[Chunk, Any], Mapping[str, Any]]


def carried_states(model: LanguageModel, batch_size: int) -> list[tf.Variable]:
    """Zeros for the state of each layer, (B, U) each, as variables that steps carry it in."""
    return [
        tf.Variable(tf.zeros((batch_size, gru.units)), trainable=False, name=f"state_{number}")
        for number, gru in enumerate(model.grus, start=1)
    ]


def make_train_step(
    model: LanguageModel,
    optimizer: keras.optimizers.Optimizer,
    carried: Sequence[tf.Variable],
    *,
    clip_norm: float,
    samples: int,
    seed: int,
    average: MovingAverage | None = None,
) -> Step:
    """One gradient step on the mean loss of a chunk, as a graph.

    Args:
        model: Read with dropout.
        optimizer: Applied to the trainable variables.
        carried: Of `carried_states`; the step leaves in them where the next chunk begins.
        clip_norm: The gradients' global norm is scaled down to this.
        samples: Tokens that each target is compared with; 0 for all.
        seed: Of the drawn tokens, which depend on it and on the number of the step.
        average: Follows the weights; none by default.

    Returns:
        The step: sums over the targets of the loss and of its bits.
    """
    optimizer.build(model.trainable_variables)

    @tf.function(input_signature=_signature(carried), autograph=False)
    def train_step(chunk: Chunk, targets: tf.Tensor) -> Mapping[str, tf.Tensor]:
        states = _begun(carried, chunk.goes_on)
        with tf.GradientTape() as tape:
            features, after = model.read(chunk.ids, states, training=True)
            features = tf.boolean_mask(features, chunk.ids != PADDING)  # (N, E)
            if samples:
                drawn = tf.stack(
                    [
                        tf.cast(seed, tf.int64),
                        tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.int64),
                    ]
                )
                losses = sampled_cross_entropy(model, features, targets, samples, drawn)
            else:
                losses = full_cross_entropy(model, features, targets)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(list(map(summed, gradients)), clip_norm)
        optimizer.apply(gradients)
        if average is not None:
            average.follow(optimizer.iterations)
        for variable, state in zip(carried, after, strict=True):
            variable.assign(state)
        return _sums(losses)

    return cast(Step, train_step)


def make_eval_step(model: LanguageModel, carried: Sequence[tf.Variable]) -> Step:
    """The loss of a chunk over all tokens and without dropout, as a graph; see `make_train_step`.

    Args:
        model: To evaluate.
        carried: Of `carried_states`, and of no other step.
    """

    @tf.function(input_signature=_signature(carried), autograph=False)
    def eval_step(chunk: Chunk, targets: tf.Tensor) -> Mapping[str, tf.Tensor]:
        features, after = model.read(chunk.ids, _begun(carried, chunk.goes_on))
        features = tf.boolean_mask(features, chunk.ids != PADDING)
        losses = -target_log_probabilities(model, features, targets)
        for variable, state in zip(carried, after, strict=True):
            variable.assign(state)
        return _sums(losses)

    return cast(Step, eval_step)


def _signature(carried: Sequence[tf.Variable]) -> tuple[Chunk, tf.TensorSpec]:
    rows = carried[0].shape[0]
    ids = tf.TensorSpec((rows, None), tf.int32)
    return Chunk(ids, tf.TensorSpec((rows,), tf.bool)), tf.TensorSpec((None,), tf.int32)


def _begun(carried: Sequence[tf.Variable], goes_on: Any) -> list[Any]:
    """The states that rows begin a chunk with: zeros where it begins a document."""
    return [tf.where(goes_on[:, tf.newaxis], state, tf.zeros_like(state)) for state in carried]


def _sums(losses: Any) -> Mapping[str, Any]:
    total = tf.reduce_sum(losses)
    return {"loss": total, "bits": total / math.log(2)}
