"""The GRU as a Keras layer."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from keras_gru.cell import GRUCell
from keras_gru.sequence import gru_sequence

Tensor = Any


class _OfCell:
    """An attribute of the layer that lives in its cell."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        return self if layer is None else getattr(layer.cell, self.name)


@keras.saving.register_keras_serializable(package="keras_gru")
class GRU(keras.layers.RNN):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078); drop-in for `keras.layers.GRU`.

    The equations, the weights and all arguments not named here are those of `GRUCell`. The
    constructor, the defaults and the layout of the weights are those of `keras.layers.GRU`.

    Masked steps keep the state. Their output repeats the output before them, or zero where there
    is none, or zero at all masked steps with `zero_output_for_mask=True`. Masks of any pattern
    run on every path.

    `path` tells how the layer runs:

    - `"fused"`: one input projection for the whole sequence and hand-derived backpropagation
      through time (`sequence.gru_sequence`). Taken whenever both activations are among sigmoid,
      hard_sigmoid, tanh, relu and linear.
    - `"loop"`: the cell step by step under automatic differentiation. Taken for other
      activations and with `unroll=True`.

    Args:
        units: Size U of the state and of the output.
        return_sequences: Return the outputs of all steps, (B, T, U), not only the last, (B, U).
        return_state: Also return the final state, (B, U).
        go_backwards: Run from the last step to the first and return outputs in that order.
        stateful: Carry the state of each row over to the next batch. Needs a fixed batch size.
        unroll: Unroll the loop in the graph. Needs a fixed number of steps.
        zero_output_for_mask: Output zeros at masked steps.
        use_cudnn: `"auto"` or False. This version has no cuDNN path: with True a call is an error.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        sequences: (B, T, D), T at least 1.
        initial_state: (B, U), or a list of one; zeros by default.
        mask: Boolean (B, T); False marks a step to pass over.
        training: Whether dropout applies.

    Returns:
        The output, or with `return_state` the output and the final state.

    Raises:
        ValueError: An argument or a shape cannot work; the message names it.
    """

    units = _OfCell()
    activation = _OfCell()
    recurrent_activation = _OfCell()
    use_bias = _OfCell()
    kernel_initializer = _OfCell()
    recurrent_initializer = _OfCell()
    bias_initializer = _OfCell()
    kernel_regularizer = _OfCell()
    recurrent_regularizer = _OfCell()
    bias_regularizer = _OfCell()
    kernel_constraint = _OfCell()
    recurrent_constraint = _OfCell()
    bias_constraint = _OfCell()
    dropout = _OfCell()
    recurrent_dropout = _OfCell()
    reset_after = _OfCell()
    seed = _OfCell()
    update_gate = _OfCell()
    implementation = _OfCell()

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        reset_after: bool = True,
        use_cudnn: str | bool = "auto",
        *,
        update_gate: str = "keep",
        implementation: int = 2,
        **kwargs: Any,
    ) -> None:
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                "Argument `use_cudnn` must be 'auto', True or False. "
                f"Received: use_cudnn={use_cudnn!r}"
            )
        cell = GRUCell(
            units,
            activation=activation,
            recurrent_activation=recurrent_activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            reset_after=reset_after,
            seed=seed,
            update_gate=update_gate,
            implementation=implementation,
            name="gru_cell",
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.use_cudnn = use_cudnn
        self.input_spec = keras.layers.InputSpec(ndim=3)
        # `fit(jit_compile="auto")` would compile anew for every length of a bucketed data set.
        self.supports_jit = False

    @property
    def path(self) -> str:
        """How the layer runs: `"fused"` or `"loop"`; see the class."""
        fused = self.cell.convention.differentiable_by_hand and not self.unroll
        return "fused" if fused else "loop"

    def build(self, sequences_shape: tuple[int | None, ...], **kwargs: Any) -> None:
        """Create the weights for sequences (B, T, D)."""
        super().build(sequences_shape, **kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Run over a sequence; see the class."""
        if self.use_cudnn is True:
            raise ValueError(
                f"Argument `use_cudnn` of layer {self.name!r} must be 'auto' or False to run it: "
                "this version of keras_gru has no cuDNN path. Received: use_cudnn=True"
            )
        if sequences.shape[1] == 0:
            raise ValueError(
                f"Layer {self.name!r} needs at least one time step. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        for state in tf.nest.flatten(initial_state):
            if state is not None and (len(state.shape) != 2 or state.shape[-1] != self.units):
                raise ValueError(
                    f"Argument `initial_state` of layer {self.name!r} must have shape "
                    f"(batch, {self.units}). Received: {tuple(state.shape)}"
                )
        return super().call(sequences, initial_state=initial_state, mask=mask, training=training)

    def inner_loop(
        self, sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Last output, outputs and final states, as `keras.layers.RNN` asks its loop for them."""
        if self.path == "loop":
            result: tuple[Tensor, Tensor, list[Tensor]] = super().inner_loop(
                sequences, initial_state, mask=mask, training=training
            )
            return result
        (h0,) = tf.nest.flatten(initial_state)
        if mask is not None:
            (mask,) = tf.nest.flatten(mask)
            mask = tf.cast(mask, tf.bool)
        recurrent_mask = None
        if training:
            input_mask = self.cell.get_dropout_mask(sequences[:, 0, :])
            if input_mask is not None:
                sequences *= input_mask[:, tf.newaxis, :]
            recurrent_mask = self.cell.get_recurrent_dropout_mask(h0)
        states, final = gru_sequence(
            tf.cast(sequences, self.cell.compute_dtype),
            tf.convert_to_tensor(h0),
            tf.convert_to_tensor(self.cell.kernel),
            tf.convert_to_tensor(self.cell.recurrent_kernel),
            None if self.cell.bias is None else tf.convert_to_tensor(self.cell.bias),
            self.cell.convention,
            mask=mask,
            go_backwards=self.go_backwards,
            recurrent_mask=recurrent_mask,
            return_sequences=self.return_sequences,
            training=bool(training),
        )
        if mask is not None and self.go_backwards:
            mask = tf.reverse(mask, [1])
        last = final
        if mask is not None:
            shown = mask if self.zero_output_for_mask else tf.cumsum(tf.cast(mask, tf.int32), 1) > 0
            last = tf.where(shown[:, -1:], final, tf.zeros_like(final))
            if states is not None:
                states = tf.where(shown[..., tf.newaxis], states, tf.zeros_like(states))
        return last, (last[:, tf.newaxis] if states is None else states), [final]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, flat, for a complete round trip."""
        config = super().get_config()
        del config["cell"]
        of_cell = self.cell.get_config()
        for key in ("name", "trainable", "dtype"):
            del of_cell[key]
        return {
            **config,
            **of_cell,
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            "use_cudnn": self.use_cudnn,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> GRU:  # noqa: ARG003
        """Build a layer from `get_config`."""
        return cls(**config)
