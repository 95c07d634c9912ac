"""Sentences of a report on how the model of a run was trained."""

from collections.abc import Mapping
from typing import Any


def model_name(metrics: Mapping[str, Any]) -> str:
    """What a classifier is called in tables."""
    combined = "gru_alone" in metrics or "shares" in metrics
    return "GRU and n-grams" if combined else "GRU"


def epoch_sentence(metrics: Mapping[str, Any]) -> str:
    """Which epoch was the best, of labels and numbers; begins with a blank."""
    return (
        f" Epoch {metrics['best_epoch']} of {metrics['epochs']} was the best by "
        f"{metrics['metric']} on the validation rows. Training and testing took "
        f"{metrics['seconds']:,.0f} s."
    )


def epoch_and_time(metrics: Mapping[str, Any]) -> str:
    """How the model came about, as sentences."""
    return (
        f"The best of {metrics['epochs']} epochs is number {metrics['best_epoch']}, chosen on the "
        "validation rows; so are the baselines' penalties. The test rows were used once, at the "
        f"end.\n\nTraining and testing took {metrics['seconds']:,.0f} s; an epoch "
        f"{metrics['speed']['seconds_per_epoch']:.1f} s (median without the first), "
        f"{metrics['speed']['tokens_per_second']:,.0f} training tokens per second."
    )
