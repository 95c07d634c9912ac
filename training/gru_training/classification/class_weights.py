"""How much a row of each class counts in training."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gru_training.errors import ConfigError

BALANCED = "balanced"
_NONE = "none"


def class_weights(setting: str | None, classes: Sequence[str], members: np.ndarray) -> np.ndarray:
    """The weight of each class, (C,) float32.

    Args:
        setting: None or `none` for 1 each; `balanced` for N / (C · rows of the class), as in
            scikit-learn, so that all classes count the same; else a JSON object that maps classes
            to weights, or the path of a file with one. Classes that it leaves out weigh 1.
        classes: C names.
        members: (N, C) bool, which training rows are of which class.

    Raises:
        ConfigError: The file cannot be read, names no class, or holds a weight that is none.
    """
    if setting in (None, _NONE):
        return np.ones(len(classes), np.float32)
    if setting == BALANCED:
        rows = np.maximum(1, members.sum(axis=0))
        return np.asarray(members.sum() / (len(classes) * rows), np.float32)
    return np.array([_read(setting, classes).get(name, 1.0) for name in classes], np.float32)


def label_weights(setting: str | None, labels: Sequence[str], members: np.ndarray) -> np.ndarray:
    """How much more it counts that a label applies than that it does not, (C,) float32.

    Args:
        setting: As for `class_weights`; `balanced` is the rows without the label by those with it.
        labels: C names.
        members: (N, C) bool.
    """
    if setting != BALANCED:
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
