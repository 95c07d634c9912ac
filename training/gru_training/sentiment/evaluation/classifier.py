"""A trained classifier with its answers, and the parts of the report for each kind of target."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np

from gru_training.loop.fit import FitResult
from gru_training.runs.directory import RunWriter
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.evaluation.calibration import Calibrated
from gru_training.sentiment.targets import Target
from gru_training.sentiment.texts import PreparedTexts


class Answers(NamedTuple):
    """Answers of a model to the validation and test rows, by part."""

    logits: dict[str, np.ndarray]
    """Logits of the complete model, (N, C) each; up to rounding if an n-gram regression is part of
    it.
    """
    gru_alone: dict[str, np.ndarray] | None = None
    """Logits of the GRU without the n-grams, (N, C) each."""
    shares: tuple[float, float] | None = None
    """Shares of the GRU and of the regression in the logits of both."""
    penalty: float | None = None
    """Penalty of the regression."""


@dataclass(frozen=True)
class TrainedClassifier:
    """A classifier with the data and settings from which it was made."""

    data: SentimentData
    target: Target
    texts: PreparedTexts
    model: keras.Model
    """The whole model, with the weights of the best epoch."""
    answers: Answers
    calibrated: Calibrated
    """Conversion of the model's logits to answers."""
    result: FitResult
    """Epochs of the training."""
    config: SentimentConfig

    def measures(self, part: str, logits: np.ndarray, answers: np.ndarray) -> dict[str, float]:
        """Measure the loss of logits, before temperature scaling, and answers to a part's rows.

        Args:
            part: Name of the part.
            logits: Logits (N, C).
            answers: Answers, as `Target.measures` takes them.
        """
        labels = self.texts.rows[part].labels
        loss = self.target.mean_loss(labels, logits)
        return {"loss": loss, **self.target.measures(labels, answers)}

    def predictions(
        self, labels: Iterable[Any], predicted: Iterable[Any], scores: np.ndarray
    ) -> list[dict[str, Any]]:
        """List the test rows with their answers: `text`, `label`, `predicted`, `scores`.

        Args:
            labels: Target of each row, as JSON values.
            predicted: Answer to each row, as JSON values.
            scores: Probabilities, or bounds of intervals, (N, C).
        """
        names = ("text", "label", "predicted", "scores")
        rows = zip(self.data.test.texts, labels, predicted, scores.tolist(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def speed(self) -> dict[str, float]:
        """Return the seconds of an epoch with its validation; median of those after the first."""
        epochs = self.result.epochs  # in the first one XLA compiles
        seconds = float(np.median([epoch.seconds for epoch in epochs[1:] or epochs]))
        tokens = sum(len(ids) for ids in self.texts.rows["train"].ids)
        return {"seconds_per_epoch": seconds, "tokens_per_second": tokens / seconds}

    def shares_record(self) -> dict[str, dict[str, float]]:
        """Return the shares of the GRU and of the n-grams for `metrics.json`.

        Nothing for a GRU alone.
        """
        if self.answers.shares is None:
            return {}
        return {"shares": dict(zip(("gru", "ngrams"), self.answers.shares, strict=True))}


class Results(NamedTuple):
    """The results on the held-out rows."""

    model: dict[str, dict[str, float]]
    """Measures of the model by part: validation, test."""
    metrics: dict[str, Any]
    """Further values for `metrics.json`, such as `per_class`."""
    predictions: list[dict[str, Any]]
    """The test rows, from `TrainedClassifier.predictions`."""
    draw: Callable[[RunWriter], dict[str, Any]]
    """Draw the pictures and pages of the report; returns further metrics, found on the way."""
    markdown: Callable[[Mapping[str, Any]], str]
    """Write the report, from all metrics."""
