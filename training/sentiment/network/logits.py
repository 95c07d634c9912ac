"""What a network answers to many rows of word ids."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from training.loop.batches import LengthBucketedBatches

EVALUATION_BATCH = 256
"""Rows per batch where no gradient is needed."""


def predict_logits(model: keras.Model, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Logits (N, C) float32 of N rows of word ids, in the order of the rows."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def logits(token_ids: tf.Tensor) -> tf.Tensor:
        return model(token_ids, training=False)

    batches = LengthBucketedBatches(rows, np.zeros(len(rows), np.int32), EVALUATION_BATCH)
    answers = np.concatenate([logits(inputs).numpy() for inputs, _ in batches.in_length_order()])
    restored = np.empty_like(answers)
    restored[batches.length_order()] = answers
    return restored
