"""The state that a stateful layer carries from one batch to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Tensor = Any


class CarriedState:
    """Mixin of a `keras.layers.RNN` with one state: read, set and reset it, row by row.

    Each row of the batch is a session of its own: with `stateful=True` its state goes on from
    batch to batch until it is set or reset.
    """

    name: str
    stateful: bool
    states: Any
    get_initial_state: Any

    def get_states(self) -> list[Tensor]:
        """The carried state of a `stateful` layer, [(B, U)]."""
        return [tf.identity(state) for state in self._carried()]

    def set_states(self, states: Any) -> None:
        """Continue from these states.

        Args:
            states: (B, U), or a list of one.
        """
        for variable, state in zip(self._carried(), tf.nest.flatten(states), strict=True):
            if tuple(state.shape) != tuple(variable.shape):
                raise ValueError(
                    f"Argument `states` of layer {self.name!r} must have shape "
                    f"{tuple(variable.shape)}. Received: {tuple(state.shape)}"
                )
            variable.assign(state)

    def reset_state(self, rows: Any = None) -> None:
        """Start sessions anew: all of them, or those in the given rows of the batch.

        Args:
            rows: Indices of batch rows, perhaps none, or None for all.
        """
        if self.states is None:
            return
        (variable,) = self.states
        (fresh,) = self.get_initial_state(variable.shape[0])
        fresh = tf.cast(fresh, variable.dtype)
        if rows is not None:
            chosen = _checked_rows(rows, variable.shape[0], self.name)
            fresh = tf.tensor_scatter_nd_update(
                tf.convert_to_tensor(variable), chosen[:, np.newaxis], tf.gather(fresh, chosen)
            )
        variable.assign(fresh)

    def _carried(self) -> Any:
        if self.states is None:
            raise ValueError(
                f"Layer {self.name!r} carries no state: it needs `stateful=True` and a first call "
                f"(or `build` with a fixed batch size). Received: stateful={self.stateful}"
            )
        return self.states


def _checked_rows(rows: Any, batch: int, name: str) -> npt.NDArray[np.int32]:
    """Indices of rows as an array; no boolean mask, in which True would be read as row 1."""
    chosen = np.array(list(rows))
    integers = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not chosen.size)
    if not (integers and np.all((chosen >= 0) & (chosen < batch))):
        raise ValueError(
            f"Argument `rows` of layer {name!r} must be indices in [0, {batch}). Received: {rows}"
        )
    return chosen.astype(np.int32)
