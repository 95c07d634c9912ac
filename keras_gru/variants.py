"""GRUs with one gate: the minimal gated unit and the GRU with coupled gates.

Cells for `keras.layers.RNN`, and layers around them. Numbers in parentheses are those of
DERIVATION.md; weights are packed `z | g` on the last axis (gate, candidate).
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from keras_gru.arguments import (
    UPDATE_GATES,
    check_choice,
    configuration,
    feature_count,
    named_arguments,
    positive_integer,
    real,
)

Tensor = Any

BLOCKS = 2  # gate, candidate


class _SingleGateCell(keras.layers.Layer):
    """Weights, checks and configuration of the cells below; arguments as they document them."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        update_gate: str = "replace",
        **kwargs: Any,
    ) -> None:
        units = positive_integer("units", units)
        check_choice("update_gate", update_gate, UPDATE_GATES)
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.update_gate = update_gate
        self.state_size = units
        self.output_size = units

    def reset(self, added: Tensor) -> Tensor:
        """Compute the reset gate (B, U) from the share (B, U) of the candidate that is added."""
        raise NotImplementedError

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights for inputs (B, D)."""
        features = feature_count(self.name, input_shape)
        packed = BLOCKS * self.units
        self.kernel = self.add_weight(
            shape=(features, packed), name="kernel", initializer=self.kernel_initializer
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, packed),
            name="recurrent_kernel",
            initializer=self.recurrent_initializer,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(packed,), name="bias", initializer=self.bias_initializer
            )
        self.built = True

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, Any]:  # noqa: ARG002
        """Advance by one step; see the class."""
        nested = isinstance(states, list | tuple)
        inputs = real("inputs", inputs, self.compute_dtype)
        h = tf.cast(states[0] if nested else states, self.compute_dtype)
        x = tf.matmul(inputs, self.kernel)
        x_z, x_g = tf.split(x if self.bias is None else x + self.bias, BLOCKS, axis=-1)
        U_z, U_g = tf.split(tf.convert_to_tensor(self.recurrent_kernel), BLOCKS, axis=-1)
        z = self.recurrent_activation(x_z + tf.matmul(h, U_z))  # (31), (33)
        added = z if self.update_gate == "replace" else 1 - z
        g = self.activation(x_g + tf.matmul(self.reset(added) * h, U_g))
        h = (1 - added) * h + added * g  # (4a), (4b)
        return h, [h] if nested else h

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Return a zero state, [(batch_size, U)], in the compute dtype."""
        return [tf.zeros((batch_size, self.units), dtype=self.compute_dtype)]

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument, for a complete round trip."""
        return {**super().get_config(), **configuration(self, _SingleGateCell.__init__)}


@keras.saving.register_keras_serializable(package="keras_gru")
class MGUCell(_SingleGateCell):
    """Minimal gated unit (Zhou et al. 2016, arXiv:1603.09420), for `keras.layers.RNN`.

    One gate resets the state inside the candidate and lets the candidate in::

        z  = σ(x·W_z + b_z + h·U_z)
        g  = φ(x·W_g + b_g + (z ⊙ h)·U_g)                                   (31)
        h′ = (1 − z) ⊙ h + z ⊙ g                                            (4b)

    With `update_gate="keep"` z keeps the state: 1 − z stands in the place of z in the last two
    lines. With the logistic σ this is the same cell with the gate's weights negated.

    Two thirds of a GRU's parameters. (Implementations differ: some keep the state with the gate
    that also resets it, which is `CoupledGRUCell(update_gate="keep")`.)

    Args:
        units: Size U of the state; a positive integer.
        activation: φ, of the candidate. None is the identity.
        recurrent_activation: σ, of the gate. None is the identity.
        use_bias: Whether there are biases.
        kernel_initializer: Initializer of `kernel`, (D, 2U).
        recurrent_initializer: Initializer of `recurrent_kernel`, (U, 2U).
        bias_initializer: Initializer of `bias`, (2U,).
        update_gate: `"replace"` (as published: z lets the candidate in) or `"keep"`.
        gate_candidate: Whether the gate acts inside the candidate. Without it the cell is the
            "minimal GRU" without any reset gate: g = φ(x·W_g + b_g + h·U_g); as it is usually
            written, its gate keeps the state.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Inputs of one step, (B, D).
        states: Previous state (B, U), or a list or tuple of one.
        training: Ignored; the cell behaves alike in training.

    Returns:
        The output (B, U) and the new state, nested like `states`.

    Raises:
        ValueError: `units` is not a positive integer, or `update_gate` is unknown.
    """

    def __init__(self, units: int, *arguments: Any, gate_candidate: bool = True, **kwargs: Any):
        super().__init__(units, *arguments, **kwargs)
        self.gate_candidate = bool(gate_candidate)

    def reset(self, added: Tensor) -> Tensor:
        """Return the share added, or ones."""
        return added if self.gate_candidate else tf.ones_like(added)

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument, for a complete round trip."""
        return {**super().get_config(), "gate_candidate": self.gate_candidate}


@keras.saving.register_keras_serializable(package="keras_gru")
class CoupledGRUCell(_SingleGateCell):
    """GRU whose reset gate is the complement of its update gate, for `keras.layers.RNN`.

    What is replaced is also forgotten inside the candidate::

        z  = σ(x·W_z + b_z + h·U_z),   r = 1 − z
        g  = φ(x·W_g + b_g + (r ⊙ h)·U_g)                                   (33)
        h′ = (1 − z) ⊙ h + z ⊙ g                                            (4b)

    With `update_gate="keep"` z keeps the state, so r = z and h′ = z ⊙ h + (1 − z) ⊙ g.

    Arguments, call arguments, results and errors are those of `MGUCell` without
    `gate_candidate`; weights have the same shapes.
    """

    def reset(self, added: Tensor) -> Tensor:
        """Return the share of the state that is kept."""
        return 1 - added


class _SingleGateLayer(keras.layers.RNN):
    """An RNN around one of the cells; its arguments are those of the cell and of `RNN`."""

    cell_class: type[keras.layers.Layer]

    def __init__(self, units: int, **options: Any) -> None:
        names = {
            *named_arguments(_SingleGateCell.__init__),
            *named_arguments(self.cell_class.__init__),
        }
        of_cell = {name: options.pop(name) for name in names & options.keys()}
        shared = {name: options[name] for name in {"dtype", "trainable"} & options.keys()}
        super().__init__(self.cell_class(units, **shared, **of_cell), **options)
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument, flat, for a complete round trip."""
        config = super().get_config()
        del config["cell"]
        return {**self.cell.get_config(), **config}

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
        **options: Arguments by name of `MGUCell` and of `keras.layers.RNN`: `return_sequences`,
            `return_state`, `go_backwards`, `stateful`, `unroll`, `zero_output_for_mask`.

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
