"""Texts that a model writes by itself."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from gru_training.language.network.model import LanguageModel
from gru_training.language.reading import END_ID
from gru_training.words.vocabulary import UNKNOWN

TEMPERATURES = (0.5, 0.8, 1.0)
"""Below 1 the likelier tokens are drawn more often."""


def sampled_rows(
    model: LanguageModel, temperatures: Sequence[float], length: int, seed: int
) -> list[list[int]]:
    """Token ids of documents from their beginning on, one for each temperature.

    Args:
        model: That writes.
        temperatures: Log-odds are divided by them.
        length: Most tokens; a document may end before.
        seed: Of the draws.
    """

    @tf.function(reduce_retracing=True, autograph=False)
    def step(ids: tf.Tensor, states: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        features, after = model.read(ids[:, tf.newaxis], states)
        return model.logits(features[:, 0]), after

    rng = np.random.default_rng(seed)
    ids = np.full(len(temperatures), END_ID, np.int32)
    states = [tf.zeros((len(ids), gru.units)) for gru in model.grus]
    rows: list[list[int]] = [[] for _ in ids]
    ended = np.zeros(len(ids), bool)
    for _ in range(length):
        logits, states = step(tf.constant(ids), states)
        scaled = logits.numpy() / np.array(temperatures)[:, np.newaxis]
        scaled[:, UNKNOWN - 1] = -np.inf
        ids = (scaled + rng.gumbel(size=scaled.shape)).argmax(axis=1).astype(np.int32) + 1
        ended |= ids == END_ID
        for row, number, over in zip(rows, ids, ended, strict=True):
            if not over:
                row.append(int(number))
        if ended.all():
            break
    return rows
