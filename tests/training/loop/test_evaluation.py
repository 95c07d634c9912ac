"""Measures of all rows at once, beside means over rows."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.metrics import f1_score

from gru_training.loop.batches import Batch
from gru_training.loop.fit import evaluate, make_eval_step


def test_a_measure_is_of_all_rows_whatever_the_batches():
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 5, (50, 3)).astype(np.int32)
    targets = rng.integers(0, 3, 50).astype(np.int32)
    model = keras.Sequential([keras.Input((3,), dtype="int32"), keras.layers.Embedding(5, 4),
                              keras.layers.Flatten(), keras.layers.Dense(3)])  # fmt: skip
    step = make_eval_step(
        model,
        tf.nn.sparse_softmax_cross_entropy_with_logits,
        {},
        (tf.TensorSpec((None, 3), tf.int32), tf.TensorSpec((None,), tf.int32)),
        outputs=True,
    )

    def macro_f1(labels, logits):
        return f1_score(labels, logits.argmax(axis=1), average="macro")

    batches = [Batch(inputs[k : k + 7], targets[k : k + 7]) for k in range(0, 50, 7)]
    found = evaluate(step, batches, {"macro_f1": macro_f1})
    assert found["macro_f1"] == macro_f1(targets, model(inputs).numpy())
    assert set(found) == {"loss", "macro_f1"}
