"""Normalisation of each window by its own level, so that a forecast follows a series that drifts.

`last` is that of NLinear (Zeng et al. 2023) and SegRNN (Lin et al. 2023), `reversible` that of
RevIN (Kim et al. 2022) without its learned affine map.
"""

from typing import Any

import keras
from keras import ops

KINDS = ("none", "last", "reversible", "difference")
EPSILON = 1e-5


@keras.saving.register_keras_serializable(package="gru_training")
class WindowNormalisation(keras.layers.Layer):
    """Takes the level, and for `reversible` the spread, out of each window and column.

    Args:
        kind: `"none"`; `"last"`: the last value is the level; `"reversible"`: the mean is the
            level, and the standard deviation, with a variance of 1e-5 added, the spread;
            `"difference"`: the changes from step to step in place of the values, zero at the
            first step, with the last value as the level of the forecast.

    Call arguments:
        history: (B, L, C).

    Returns:
        The normalised history (B, L, C), its level (B, 1, C) and its spread (B, 1, C); level and
        spread carry no gradient.
    """

    def __init__(self, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        self.kind = kind
        self.built = True

    def call(self, history: Any) -> tuple[Any, Any, Any]:
        """See the class."""
        last = history[:, -1:]
        level, spread = ops.zeros_like(last), ops.ones_like(last)
        if self.kind in ("last", "difference"):
            level = last
        elif self.kind == "reversible":
            level = ops.mean(history, axis=1, keepdims=True)
            spread = ops.sqrt(ops.var(history, axis=1, keepdims=True) + EPSILON)
        level, spread = ops.stop_gradient(level), ops.stop_gradient(spread)
        if self.kind == "difference":
            return history - ops.concatenate([history[:, :1], history[:, :-1]], 1), level, spread
        return (history - level) / spread, level, spread

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[Any, Any, Any]:
        """The shapes of the three results."""
        batch, _, channels = input_shape
        return input_shape, (batch, 1, channels), (batch, 1, channels)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "kind": self.kind}
