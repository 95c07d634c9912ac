"""One trial of a search for settings: a training that is judged on its validation rows."""

from collections.abc import Callable

import keras
import numpy as np
from rich.console import Console

from gru_training.classification.chosen_metric import LOG_LOSS
from gru_training.classification.temperature import fit_temperature
from gru_training.criterion import Judged, judged
from gru_training.data.digest import data_digest
from gru_training.loop.progress import EpochFollower
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.fitting import (
    ReadTexts,
    fit_network,
    fitted_shares,
    read_texts,
    with_ngrams,
)
from gru_training.sentiment.network.logits import predict_logits
from gru_training.sentiment.targets.made import make_target
from gru_training.sentiment.targets.target import Target
from gru_training.sentiment.targets.unequal import for_unequal_classes
from gru_training.sentiment.teaching.lessons import taught


def try_settings(
    config: SentimentConfig,
    data: SentimentData,
    measure: str,
    after_epoch: Callable[[int, float], None],
) -> Judged:
    """A measure on the validation rows; test rows are not read.

    Args:
        config: Every setting.
        data: What to learn.
        measure: Name of the metric that the settings choose by, or `log_loss`, of answers that are
            as sure as they may be (`gru_training.classification.temperature`).
        after_epoch: Told the number of each epoch and the measure of the network after it; may end
            the trial by an error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    keras.utils.set_random_seed(config.training.seed)
    read = read_texts(data, config, config.run.runs_dir, parts=("train", "validation"))
    config, _ = for_unequal_classes(config, data)
    learned = target = make_target(data, config)
    if config.teaching.teach is not None:
        learned = taught(config, data, read.preprocessor, target).target
    by_loss = measure == LOG_LOSS
    follower = EpochFollower("loss" if by_loss else target.metric.name, after_epoch)
    model, _ = fit_network(data, read, learned, config, Console(quiet=True), followers=(follower,))
    rows = read.rows["validation"]
    logits = predict_logits(model, rows.ids)
    if with_ngrams(config, data):
        counted = _counted(read, target, config)
        gru, regression = fitted_shares(rows, logits, counted, target, config)
        logits = gru * logits + regression * counted
    if by_loss:
        sure = logits / fit_temperature(rows.labels, logits, target.mean_loss).value
        return judged(lambda kept: target.mean_loss(rows.labels[kept], sure[kept]), len(logits))
    labels = target.in_units(rows.labels)
    return judged(lambda kept: target.metric.of(labels[kept], logits[kept]), len(logits))


_FITTED: dict[str, np.ndarray] = {}
"""What the n-gram regression of the last trial answers to the validation rows."""


def _counted(read: ReadTexts, target: Target, config: SentimentConfig) -> np.ndarray:
    """(N, C): the n-grams' logits of the validation rows.

    The regression depends on words, rows, their weights and the order, which few searches vary:
    most trials of a process share it.
    """
    train, rows = read.rows["train"], read.rows["validation"]
    order = config.model.ngram_order
    contents: list[str | np.ndarray] = [str(config.training.class_weight), str(order)]
    contents += [target.metric.name, *read.words.vocabulary.tokens]
    for part in (train, rows):
        contents += [np.concatenate(part.ids), np.array(list(map(len, part.ids))), part.labels]
        if part.weights is not None:
            contents.append(part.weights)
    key = data_digest(contents)
    if key not in _FITTED:
        _FITTED.clear()
        ngrams = target.fit_ngrams(train, rows, len(read.words.vocabulary), order=order)
        _FITTED[key] = ngrams.logits(rows.ids)
    return _FITTED[key]
