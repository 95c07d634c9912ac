"""What a network answers to many rows of word ids."""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary, ref

import keras
import numpy as np
import tensorflow as tf

from gru_training.loop.batches import LengthBucketedBatches

EVALUATION_BATCH = 256
"""Rows per batch where no gradient is needed."""

_Logits = Callable[[np.ndarray], tf.Tensor]
_traced: WeakKeyDictionary[keras.Model, _Logits] = WeakKeyDictionary()
"""What a training and its report ask several times is traced once."""


def predict_logits(model: keras.Model, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Logits (N, C) float32 of N rows of word ids, in the order of the rows."""
    if model not in _traced:
        _traced[model] = _trace(model)
    logits = _traced[model]
    batches = LengthBucketedBatches(rows, np.zeros(len(rows), np.int32), EVALUATION_BATCH)
    answers = np.concatenate([logits(inputs).numpy() for inputs, _ in batches.in_length_order()])
    restored = np.empty_like(answers)
    restored[batches.length_order()] = answers
    return restored


def _trace(model: keras.Model) -> _Logits:
    """Of word ids (B, T); does not keep the model alive."""
    weak = ref(model)

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def logits(token_ids: tf.Tensor) -> tf.Tensor:
        alive = weak()
        assert alive is not None
        return alive(token_ids, training=False)

    traced: _Logits = logits
    return traced
