"""A network that begins with the weights of another."""

import keras
import numpy as np

from gru_training.errors import ConfigError


def begin_with(model: keras.Model, old: keras.Model) -> None:
    """Give a network the weights of another one of the same settings.

    It may know more series than the other. Each of these begins with the vector that stands for
    unknown ones (`SegmentGRU`), as which it was forecast before.

    Args:
        model: To begin.
        old: To begin with; its series are the first ones of the model.

    Raises:
        ConfigError: The other network does not tell how to forecast an unknown series.
    """
    values = []
    for new, known in zip(model.weights, old.weights, strict=True):
        value = np.asarray(known)
        if tuple(new.shape) != value.shape:
            value = _grown(new, value)
        values.append(value)
    model.set_weights(values)


def _grown(new: keras.Variable, known: np.ndarray) -> np.ndarray:
    rows, width = (*new.shape, 0)[:2]
    if new.name != "channel" or width != known.shape[-1] or rows < len(known):
        raise ConfigError(
            f"expected weights {new.path} of shape {tuple(new.shape)} to go on from, got "
            f"{known.shape}; the network cannot take in further series, so train anew on all rows"
        )
    further = np.broadcast_to(known[-1], (rows - len(known), width))
    return np.concatenate([known[:-1], further, known[-1:]])
