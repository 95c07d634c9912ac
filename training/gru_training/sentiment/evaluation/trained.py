"""A trained classifier, as its report is written from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np

from gru_training.loop.fit import FitResult
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.targets.target import Target
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import TextPreprocessor


class Alone(NamedTuple):
    """A GRU without the n-gram regression that answers with it."""

    logits: dict[str, np.ndarray]
    """Of the validation and test rows, (N, C) each."""
    shares: tuple[float, float]
    """Of the GRU and of the regression in the combined logits."""
    combined: dict[str, np.ndarray]
    """Logits of both of the same rows, (N, C) each, to rounding those of the combined model."""
    penalty: float | None = None
    """Of the regression."""


@dataclass(frozen=True)
class TrainedClassifier:
    """A classifier and what it was made of."""

    data: SentimentData
    target: Target
    rows: Mapping[str, TokenRows]
    """The parts of the data as word ids: train, validation, test."""
    preprocessor: TextPreprocessor
    vocabulary_size: int
    model: keras.Model
    """With the weights of the best epoch."""
    alone: Alone | None
    """Of a combined model."""
    result: FitResult
    """How it was trained."""
    config: SentimentConfig
    warm_start: Mapping[str, Any] | None = None
    """The run whose weights it began with, as in `gru_training.warm_start`."""
    taught: Mapping[str, Any] | None = None
    """Figures of teaching, as in `gru_training.sentiment.teaching.lessons.Taught.figures`."""

    def speed(self) -> dict[str, float]:
        """Of an epoch, validation included; of those after the first, in which XLA compiles."""
        epochs = self.result.epochs
        seconds = float(np.median([epoch.seconds for epoch in epochs[1:] or epochs]))
        tokens = sum(len(ids) for ids in self.rows["train"].ids)
        return {"seconds_per_epoch": seconds, "tokens_per_second": tokens / seconds}
