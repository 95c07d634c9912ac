"""What a model does along a text: its states, and how much each token surprises it."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from gru_training.language.network.model import LanguageModel
from gru_training.language.network.softmax import target_log_probabilities
from gru_training.language.reading import END_ID


class Trace(NamedTuple):
    """A document of T tokens, read from its beginning."""

    states: np.ndarray
    """State of the last layer after each token, (T, U)."""
    bits: np.ndarray
    """What each token costs given those before it, (T,)."""


def trace_of(model: LanguageModel, ids: np.ndarray) -> Trace:
    """Read a document.

    Args:
        model: That reads.
        ids: (T,) token ids, without the end.
    """
    inputs = tf.constant(np.concatenate([[END_ID], ids])[np.newaxis], tf.int32)
    x = model.embedding(inputs)
    for gru in model.grus:
        x, _ = gru(x)
    features = model.projection(x)[0, :-1]
    nats = -target_log_probabilities(model, features, tf.constant(ids, tf.int32))
    return Trace(x[0, 1:].numpy(), nats.numpy() / np.log(2))
