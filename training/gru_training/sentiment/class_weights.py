"""The class weights of a training, including those chosen without a setting."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gru_training.errors import ConfigError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData

BALANCED_WEIGHTS = "balanced"
_NO_WEIGHTS = "none"
_MIN_ROWS_RATIO = 10
"""Ratio of the largest class to the smallest from which accuracy misleads."""


def class_weights(setting: str | None, classes: Sequence[str], members: np.ndarray) -> np.ndarray:
    """Compute the weight of each class, (C,) float32.

    Args:
        setting: None or `none` for 1 each; `balanced` for N / (C · rows of the class), as in
            scikit-learn, so that all classes count the same; else a JSON object that maps classes
            to weights, or the path of a file with one. Classes that it leaves out weigh 1.
        classes: C names.
        members: (N, C) bool, which training rows are of which class.

    Raises:
        ConfigError: The file cannot be read, names no class, or holds a weight that is none.
    """
    if setting in (None, _NO_WEIGHTS):
        return np.ones(len(classes), np.float32)
    if setting == BALANCED_WEIGHTS:
        rows = np.maximum(1, members.sum(axis=0))
        return np.asarray(members.sum() / (len(classes) * rows), np.float32)
    return np.array([_read(setting, classes).get(name, 1.0) for name in classes], np.float32)


def label_weights(setting: str | None, labels: Sequence[str], members: np.ndarray) -> np.ndarray:
    """Weigh rows with a label relative to those without, (C,) float32.

    Args:
        setting: Setting as in `class_weights`; `balanced` is the rows without the label by those
            with it.
        labels: C names.
        members: Labels of each row, (N, C) bool.
    """
    if setting != BALANCED_WEIGHTS:
        return class_weights(setting, labels, members)
    rows = np.maximum(1, members.sum(axis=0))
    return np.asarray(np.maximum(1, len(members) - rows) / rows, np.float32)


def _read(setting: str, classes: Sequence[str]) -> dict[str, float]:
    try:
        values = json.loads(
            setting if setting.lstrip().startswith("{") else Path(setting).read_text("utf-8")
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            "--class-weight: expected balanced, none, or a JSON object with a weight for each "
            f"class or a file with one; cannot read {setting}: {error}"
        ) from error
    if not isinstance(values, dict):
        raise ConfigError(f"--class-weight: {setting}: expected an object, got {values!r:.60}")
    for name, weight in values.items():
        if name not in classes:
            raise ConfigError(
                f"--class-weight: {setting}: expected the classes "
                f"{', '.join(map(repr, classes))}; got {name!r}"
            )
        if not isinstance(weight, int | float) or not 0 < weight < float("inf"):
            raise ConfigError(
                f"--class-weight: {setting}: expected a number above 0 for {name!r}, got {weight!r}"
            )
    return {name: float(weight) for name, weight in values.items()}


def for_unequal_classes(
    config: SentimentConfig, data: SentimentData
) -> tuple[SentimentConfig, SentimentData]:
    """Choose macro F1 and balanced weights if the sizes of the classes require it.

    This is so if the data are the user's own, neither `--metric` nor `--class-weight` is given, and
    the largest class has ten times the training rows of the smallest. With accuracy the large
    classes would decide, and the small ones would rarely be answered.

    Args:
        config: Settings of the training.
        data: Rows of the training.

    Returns:
        Settings, and data with a note for people if the settings differ from those given.
    """
    settings = config.training
    given = settings.metric is not None or settings.class_weight is not None
    if not data.own or data.kind != "class" or given:
        return config, data
    rows = np.bincount(data.train.labels, minlength=len(data.classes))
    if rows.max() < _MIN_ROWS_RATIO * rows.min():
        return config, data
    note = (
        f"{data.classes[int(rows.argmax())]!r} has {rows.max():,} training rows and "
        f"{data.classes[int(rows.argmin())]!r} only {rows.min():,}: classes weigh the same, and "
        "the macro F1 chooses (as --class-weight balanced --metric macro_f1; --metric accuracy "
        "does neither)"
    )
    chosen = replace(settings, metric="macro_f1", class_weight=BALANCED_WEIGHTS)
    return replace(config, training=chosen), replace(data, notes=(*data.notes, note))
