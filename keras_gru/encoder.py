"""Stacked and bidirectional encoders made of `GRU` layers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_gru.arguments import cannot_change, configuration, dropout_rate, positive_integer
from keras_gru.initializers import with_seed
from keras_gru.layer import GRU
from keras_gru.quantization import Int8ByCell, plain_policy

Tensor = Any

# Arguments of GRU that the encoder decides, or whose meaning a stack would change.
EXCLUDED_OPTIONS = ("go_backwards", "stateful", "return_gates")
LAYER_ATTRIBUTES = frozenset(
    ("units", "num_layers", "bidirectional", "dropout", "return_sequences", "seed", "gru_options")
)


@keras.saving.register_keras_serializable(package="keras_gru")
class GRUEncoder(Int8ByCell, keras.layers.Layer):
    """A stack of GRU layers, optionally bidirectional, with dropout between the layers.

    Layer k reads the outputs of layer k−1 at every step; in a bidirectional stack those are the
    forward and the backward output side by side. Computes what `torch.nn.GRU(D, units,
    num_layers, batch_first=True, bidirectional=bidirectional, dropout=dropout)` does, whose
    weights `keras_gru.convert.load_pytorch` brings over.

    With W = 2U if bidirectional, else U::

        sequences (B, T, D) → outputs of the top layer (B, T, W)   return_sequences=True
                            → last output of the top layer (B, W)  return_sequences=False
                            → and the final states of all layers,  return_state=True
                              num_layers times (B, W)

    A backward direction's last output and final state are those after the first step.
    `keras.ops.stack(states)` has the shape (num_layers, B, W); the states come one by one, batch
    first, because `Model.predict` joins batches along the first axis.

    >>> encoder = GRUEncoder(256, num_layers=2, dropout=0.3, return_sequences=True,
    ...                      return_state=True)
    >>> outputs, *states = encoder(np.zeros((32, 50, 100), "float32"))
    >>> tuple(outputs.shape), [tuple(state.shape) for state in states]
    ((32, 50, 256), [(32, 256), (32, 256)])

    A classifier of token ids (B, T), and a forecaster of 3 features for 5 steps ahead:

    >>> classifier = keras.Sequential([
    ...     keras.layers.Embedding(1000, 64, mask_zero=True),
    ...     GRUEncoder(128, num_layers=2, bidirectional=True, dropout=0.5),
    ...     keras.layers.Dropout(0.5),
    ...     keras.layers.Dense(2)])
    >>> tuple(classifier(np.ones((32, 50), "int32")).shape)
    (32, 2)
    >>> forecaster = keras.Sequential([
    ...     GRUEncoder(128, num_layers=2, dropout=0.2),
    ...     keras.layers.Dense(5 * 3),
    ...     keras.layers.Reshape((5, 3))])
    >>> tuple(forecaster(np.zeros((32, 20, 3), "float32")).shape)
    (32, 5, 3)

    Masks of any pattern reach every layer and, with `return_sequences`, the layer after the
    encoder.

    Args:
        units: Size U of each layer's state, per direction.
        num_layers: Number of layers.
        bidirectional: Whether each layer also reads backwards, with weights of its own.
        dropout: Rate in [0, 1) of dropout on the outputs of every layer but the last, drawn anew
            at every step (Zaremba et al. 2014, arXiv:1409.2329). For masks that stay the same over
            time give `recurrent_dropout`, an option of the layers.
        return_sequences: Return the outputs of all steps, not only the last.
        return_state: Whether to return the final states of all layers too.
        seed: Seed of all dropout; each layer gets its own seed from it.
        name: Name of the encoder.
        dtype: Dtype or dtype policy of the encoder.
        trainable: Whether the encoder's weights are trained.
        **gru_options: Arguments of `GRU` that every layer gets: `reset_after`, `update_gate`,
            `recurrent_dropout`, initializers and so on. Each layer and direction draws its own
            values from an initializer, seeded or not.

    Attributes:
        layers: The layers, bottom first: GRUs, or `keras.layers.Bidirectional` ones.

    Call arguments:
        sequences: (B, T, D), or a `tf.RaggedTensor` (B, None, D).
        initial_state: States to start from, num_layers times (B, W), as `return_state` gives them;
            zeros by default. A bidirectional state is the forward and the backward one side by
            side.
        mask: Boolean (B, T).
        training: Whether dropout applies.

    Raises:
        ValueError: An argument is outside the values named above.
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        seed: int | None = None,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
        **gru_options: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        for option in EXCLUDED_OPTIONS:
            if gru_options.get(option):
                raise ValueError(
                    f"Argument `{option}` must be left out: a GRUEncoder has no such mode. "
                    f"Received: {option}={gru_options[option]!r}"
                )
        self.units = units
        self.num_layers = positive_integer("num_layers", num_layers)
        self.bidirectional = bool(bidirectional)
        self.dropout = dropout_rate("dropout", dropout)
        self.return_sequences = bool(return_sequences)
        self.return_state = bool(return_state)
        self.seed = seed
        self.gru_options = {
            option: keras.initializers.get(value) if option.endswith("_initializer") else value
            for option, value in gru_options.items()
        }
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.layers = [self._make_layer(index) for index in range(self.num_layers)]
        self.dropouts = [
            keras.layers.Dropout(
                self.dropout,
                seed=self._seed(2 * self.num_layers + index),
                dtype=plain_policy(self.dtype_policy),
            )
            for index in range(self.num_layers - 1)
        ]
        # tf.train.Checkpoint silently skips layers in Keras' lists.
        for index, layer in enumerate(self.layers):
            self._track_trackable(layer, name=f"layer_{index}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse the settings of layers that have been made: these would not follow."""
        if name in LAYER_ATTRIBUTES and "layers" in vars(self):
            raise cannot_change(self, name, value)
        super().__setattr__(name, value)

    def _make_layer(self, index: int) -> Any:
        last = index == self.num_layers - 1
        names = ("forward_gru", "backward_gru") if self.bidirectional else (f"gru_{index}",)
        directions = [
            GRU(
                self.units,
                return_sequences=self.return_sequences or not last,
                return_state=True,
                seed=self._seed(2 * index + go_backwards),
                go_backwards=bool(go_backwards),
                name=layer_name,
                dtype=self.dtype_policy,
                **_of_layer(self.gru_options, 2 * index + go_backwards),
            )
            for go_backwards, layer_name in enumerate(names)
        ]
        if not self.bidirectional:
            return directions[0]
        return keras.layers.Bidirectional(
            directions[0],
            backward_layer=directions[1],
            name=f"bidirectional_{index}",
            dtype=plain_policy(self.dtype_policy),
        )

    def _seed(self, index: int) -> int | None:
        return None if self.seed is None else self.seed + index

    @property
    def width(self) -> int:
        """Size of the outputs and of each state: W of the class."""
        return int(self.units) * (1 + self.bidirectional)

    def build(
        self,
        sequences_shape: tuple[int | None, ...],
        initial_state_shape: Any = None,  # noqa: ARG002  Keras hands over a shape per tensor
    ) -> None:
        """Create the weights for sequences (B, T, D)."""
        batch, steps, features = sequences_shape
        for layer in self.layers:
            layer.build((batch, steps, features))
            features = self.width
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Encode sequences; see the class."""
        initial_states = self._checked(initial_state)
        outputs, states = sequences, []
        for index, layer in enumerate(self.layers):
            outputs, *final = layer(
                outputs,
                initial_state=initial_states[index],
                mask=mask,
                training=training,
            )
            states.append(tf.concat(final, axis=-1) if self.bidirectional else final[0])
            if index < self.num_layers - 1:
                outputs = tf.ragged.map_flat_values(
                    self.dropouts[index], outputs, training=training
                )
        return (outputs, *states) if self.return_state else outputs

    def _checked(self, initial_state: Any) -> list[Any]:
        """Per layer the list of states that it starts from, or None."""
        if initial_state is None:
            return [None] * self.num_layers
        states = list(initial_state) if isinstance(initial_state, list | tuple) else [initial_state]
        self._check_state_shapes([tuple(state.shape) for state in states])
        return [tf.split(state, 1 + self.bidirectional, axis=-1) for state in states]

    def _check_state_shapes(self, shapes: list[tuple[int | None, ...]]) -> None:
        if len(shapes) != self.num_layers or any(
            len(shape) != 2 or shape[-1] != self.width for shape in shapes
        ):
            raise ValueError(
                f"Argument `initial_state` of {self.name!r} must be {self.num_layers} states of "
                f"shape (batch, {self.width}). Received: shapes {shapes}"
            )

    def compute_output_shape(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> Any:
        """Shapes of what a call returns."""
        if initial_state_shape:
            nested = isinstance(initial_state_shape[0], list | tuple)
            shapes = initial_state_shape if nested else [initial_state_shape]
            self._check_state_shapes([tuple(shape) for shape in shapes])
        batch, steps, _ = sequences_shape
        state = (batch, self.width)
        outputs = (batch, steps, self.width) if self.return_sequences else state
        return (outputs, *[state] * self.num_layers) if self.return_state else outputs

    def compute_mask(self, sequences: Tensor, mask: Any = None) -> Any:  # noqa: ARG002
        """Return the mask for the layer after this one: of the outputs, none of the states."""
        output_mask = mask if self.return_sequences else None
        return (output_mask, *[None] * self.num_layers) if self.return_state else output_mask

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument, flat, for a complete round trip."""
        first = self.layers[0]
        of_layer = (first.forward_layer if self.bidirectional else first).get_config()
        return {
            **super().get_config(),
            **configuration(self, GRUEncoder.__init__),
            "dtype": of_layer["dtype"],
            **{option: of_layer[option] for option in self.gru_options if option in of_layer},
        }


def _of_layer(options: dict[str, Any], index: int) -> dict[str, Any]:
    """Options of one layer: an initializer draws the same values at every call."""
    return {
        name: _of_index(value, index) if isinstance(value, keras.Initializer) else value
        for name, value in options.items()
    }


def _of_index(initializer: Any, index: int) -> Any:
    seed = initializer.get_config().get("seed")
    if index and isinstance(seed, int):
        (word,) = np.random.SeedSequence([seed, index]).generate_state(1)
        seed = int(word >> 1)
    return with_seed(initializer, seed)
