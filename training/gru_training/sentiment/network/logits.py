"""What a network answers to many rows of word ids."""

from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakKeyDictionary, ref

import keras
import numpy as np
import tensorflow as tf

from gru_training.loop.batches import LengthBucketedBatches
from gru_training.loop.twin import twin_of

EVALUATION_BATCH = 256
"""Rows per batch where no gradient is needed."""

_Logits = Callable[[tf.Tensor], tf.Tensor]
_traced: WeakKeyDictionary[keras.Model, _Logits] = WeakKeyDictionary()
"""Of models that were not trained in this process, as they are asked several times."""


def predict_logits(model: keras.Model, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Logits (N, C) float32 of N rows of word ids, in the order of the rows."""
    with twin_of(model, new=False) as twin:
        if twin is not None:
            return _logits(twin.function("logits", partial(_trace, twin.model)), rows)
    if model not in _traced:
        _traced[model] = _trace(model)
    return _logits(_traced[model], rows)


def _logits(answer: _Logits, rows: Sequence[np.ndarray]) -> np.ndarray:
    batches = LengthBucketedBatches(rows, np.zeros(len(rows), np.int32), EVALUATION_BATCH)
    answers = np.concatenate(
        [answer(tf.constant(inputs)).numpy() for inputs, _ in batches.in_length_order()]
    )
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

    traced: _Logits = logits.get_concrete_function()
    return traced
