"""Answers of made-up models."""

import numpy as np

from gru_training.outcomes import Answers, Outcomes, ratio_measure
from gru_training.sentiment.outcomes import label_answers


def classifier(rng, labels, skill, classes):
    """Answers in which the logit of the right class is higher by ``skill``."""
    logits = rng.normal(size=(len(labels), classes))
    logits[np.arange(len(labels)), labels] += skill
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return scores.argmax(axis=1), scores


def text_outcomes(rng, labels, skill, classes=3, **more):
    predicted, scores = classifier(rng, labels, skill, classes)
    keys = np.array([f"text {number}" for number in range(len(labels))])
    return Outcomes("texts", keys, label_answers(labels, predicted, scores, classes), **more)


def window_outcomes(errors, steps, **more):
    """Answers with errors (N + H - 1,) by time, which windows of H steps share."""
    windows = np.lib.stride_tricks.sliding_window_view(errors, steps)
    count = np.full(len(windows), steps)
    sums = (windows**2).sum(axis=1), np.abs(windows).sum(axis=1)
    measures = tuple(
        ratio_measure(name, of, count) for name, of in zip(("MSE", "MAE"), sums, strict=True)
    )
    keys = np.array([f"time {number}" for number in range(len(windows))])
    return Outcomes("windows", keys, Answers(measures), overlap=steps, **more)
