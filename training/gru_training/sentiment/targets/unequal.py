"""How classes of very unequal size are learned, where no setting says it."""

from dataclasses import replace

import numpy as np

from gru_training.classification.class_weights import BALANCED
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData

_TIMES = 10
"""Rows of the largest class over those of the smallest, from which on accuracy misleads."""


def for_unequal_classes(
    config: SentimentConfig, data: SentimentData
) -> tuple[SentimentConfig, str | None]:
    """The settings, with macro F1 and balanced weights where the classes call for them.

    They do if the data are the user's own, none of `--metric`, `--class-weight` and
    `--balanced-batches` is given, and the largest class has ten times the training rows of the
    smallest. By accuracy the large classes would decide, and the small ones be answered seldom.

    Args:
        config: Of the run.
        data: What is learned from.

    Returns:
        The settings, and a note for people where they differ from those given.
    """
    settings = config.training
    given = (
        settings.metric is not None
        or settings.class_weight is not None
        or settings.balanced_batches
    )
    if not data.own or data.kind != "class" or given:
        return config, None
    rows = np.bincount(data.train.labels, minlength=len(data.classes))
    if rows.max() < _TIMES * rows.min():
        return config, None
    note = (
        f"{data.classes[int(rows.argmax())]!r} has {rows.max():,} training rows and "
        f"{data.classes[int(rows.argmin())]!r} only {rows.min():,}: classes weigh the same, and "
        "the macro F1 chooses (as --class-weight balanced --metric macro_f1; --metric accuracy "
        "does neither)"
    )
    chosen = replace(settings, metric="macro_f1", class_weight=BALANCED)
    return replace(config, training=chosen), note
