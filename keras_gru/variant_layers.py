"""The single-gate GRUs of `variants` as layers over whole sequences."""

from __future__ import annotations

from typing import Any

import keras

from keras_gru.variants import CoupledGRUCell, MGUCell

_OF_LAYER = (
    "return_sequences",
    "return_state",
    "go_backwards",
    "stateful",
    "unroll",
    "zero_output_for_mask",
    "activity_regularizer",
    "name",
    "dtype",
    "trainable",
)


class _SingleGateLayer(keras.layers.RNN):
    """An RNN around one of the cells; its arguments are the cell's and those of `RNN`."""

    cell_class: type[keras.layers.Layer]

    def __init__(self, units: int, **options: Any) -> None:
        of_layer = {name: options.pop(name) for name in _OF_LAYER if name in options}
        shared = {name: of_layer[name] for name in ("dtype", "trainable") if name in of_layer}
        super().__init__(self.cell_class(units, **shared, **options), **of_layer)
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, flat, for a complete round trip."""
        config = super().get_config()
        del config["cell"]
        of_cell = self.cell.get_config()
        return {**{k: v for k, v in of_cell.items() if k not in _OF_LAYER}, **config}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> _SingleGateLayer:  # noqa: ARG003
        """Build a layer from `get_config`."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_gru")
class MGU(_SingleGateLayer):
    """Minimal gated unit over a sequence: `keras.layers.RNN` around `MGUCell`.

    >>> MGU(8, return_sequences=True)(np.zeros((2, 5, 3), "float32")).shape
    TensorShape([2, 5, 8])

    Args:
        units: Size U of the state.
        **options: Any other argument of `MGUCell`, by name, and of `keras.layers.RNN`:
            `return_sequences`, `return_state`, `go_backwards`, `stateful`, `unroll`,
            `zero_output_for_mask`.

    Raises:
        ValueError: An argument cannot work; the message names it.
    """

    cell_class = MGUCell


@keras.saving.register_keras_serializable(package="keras_gru")
class CoupledGRU(_SingleGateLayer):
    """GRU with r = 1 − z over a sequence: `keras.layers.RNN` around `CoupledGRUCell`.

    Arguments as for `MGU`, with those of `CoupledGRUCell`.
    """

    cell_class = CoupledGRUCell
