"""The target of a data set, as the settings want it."""

import numpy as np

from gru_training.classification.chosen_metric import chosen_metric
from gru_training.classification.class_weights import class_weights, label_weights
from gru_training.errors import ConfigError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.targets.classes import ClassTarget
from gru_training.sentiment.targets.labels import LabelsTarget
from gru_training.sentiment.targets.numbers import NumberTarget
from gru_training.sentiment.targets.scale import Scale
from gru_training.sentiment.targets.target import Target


def make_target(data: SentimentData, config: SentimentConfig, scale: Scale | None = None) -> Target:
    """The target of these data.

    Args:
        data: What is learned from.
        config: Every setting.
        scale: Of a number that is to keep its units; by default those of the training rows.

    Raises:
        ConfigError: A metric, weight or decision is not for this kind of target.
    """
    names, settings = data.classes, config.training
    metric = chosen_metric(settings.metric, data.kind, names)
    labels = data.train.labels
    if data.kind == "class":
        members = np.asarray(labels[:, np.newaxis] == np.arange(len(names)))
        return ClassTarget(names, metric, class_weights(settings.class_weight, names, members))
    if config.decision.costs is not None:
        raise ConfigError("--costs is for --target-type class")
    if settings.balanced_batches:
        raise ConfigError("--balanced-batches is for --target-type class")
    if data.kind == "labels":
        weights = label_weights(settings.class_weight, names, labels > 0.5)
        return LabelsTarget(names, metric, weights)
    for flag, value in (
        ("--class-weight", settings.class_weight),
        ("--target-precision", config.decision.target_precision),
        ("--word-ratios", config.model.word_ratios),
    ):
        if value:
            raise ConfigError(f"{flag} is for classes and labels, not for --target-type number")
    if scale is not None:
        return NumberTarget(names[0], metric, scale.mean, scale.deviation)
    mean, deviation = float(labels.mean(dtype=np.float64)), float(labels.std(dtype=np.float64))
    return NumberTarget(names[0], metric, mean, deviation)
