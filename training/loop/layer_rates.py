"""Adam with a share of the learning rate for each variable."""

from collections.abc import Sequence
from typing import Any

import keras

from training.loop.sparse_adam import SparseAdam


class LayerAdam(keras.optimizers.Adam):
    """Adam that moves some variables by less than others.

    A factor on a gradient would not do: Adam divides by how large gradients are.

    Args:
        learning_rate: A number or a schedule.
        shares: Of the learning rate, one for each variable in the order of `build`.
    """

    def __init__(self, learning_rate: Any, shares: Sequence[float] = (), **kwargs: Any):
        super().__init__(learning_rate, **kwargs)
        self.shares = tuple(shares)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Move one variable."""
        share = self.shares[self._get_variable_index(variable)]
        super().update_step(gradient, variable, learning_rate * share)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "shares": self.shares}


class SparseLayerAdam(LayerAdam, SparseAdam):
    """The same of the rows of a table which a batch has used."""
