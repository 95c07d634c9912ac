"""Where a trace writes down its quantities."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_gru.teaching.network_fields import Array, NetworkError

Values = dict[str, Array]
Substitutes = Mapping[tuple[int | None, str], Array]


class Notebook:
    """Records values under their names; returns a substitute where one is given.

    Args:
        step: Step of the sequence, None for its totals.
        substitutes: Values to hand on in place of computed ones, NaN where those stay.
        known: Values written down before.
    """

    def __init__(
        self, step: int | None, substitutes: Substitutes, known: Values | None = None
    ) -> None:
        self.computed: Values = {}
        self.handed_on: Values = dict(known or {})
        self._step = step
        self._substitutes = substitutes

    def __call__(self, name: str, value: Any) -> Array:
        """Write a value down, and hand it on."""
        array = np.asarray(value, dtype=np.float64)
        if not np.all(np.isfinite(array)):
            place = "totals" if self._step is None else f"step {self._step}"
            raise NetworkError(
                f"{place}, {name}: expected finite values, got {array.tolist()}; "
                "the weights or inputs are too large"
            )
        self.computed[name] = array
        substitute = self._substitutes.get((self._step, name))
        if substitute is not None:
            array = np.where(np.isnan(substitute), array, substitute)
        self.handed_on[name] = array
        return array
