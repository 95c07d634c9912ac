"""BentoML around the SavedModel, with its adaptive batching."""

import os

import bentoml
import numpy as np
import tensorflow as tf


@bentoml.service(workers=1, traffic={"timeout": 30})
class Gru:
    """Rows of tokens in, scores out."""

    def __init__(self) -> None:
        self._loaded = tf.saved_model.load(os.environ["SAVED_MODEL"])
        self._serve = self._loaded.signatures["serving_default"]

    @bentoml.api(batchable=True, max_batch_size=32, max_latency_ms=1000)
    def predict(self, instances: np.ndarray) -> np.ndarray:
        """One batch."""
        return self._serve(tokens=tf.constant(instances, tf.int32))["scores"].numpy()
