"""One step of a GRU as a Keras cell."""

from __future__ import annotations

import threading
from typing import Any

import keras
import tensorflow as tf

# keras.layers.RNN draws masks before its loop only for subclasses of this class, which Keras does
# not export, and only Keras' global state tells a cell whether the surrounding call is a training.
from keras.src.backend.common import global_state
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

from keras_gru.arguments import (
    UPDATE_GATES,
    check_choice,
    configuration,
    dropout_rate,
    feature_count,
    positive_integer,
    real,
)
from keras_gru.functional import step
from keras_gru.kernel.equations import Convention
from keras_gru.kernel.weights import (
    GATE_COUNT,
    Gates,
    PackedWeights,
    bias_shape,
    kernel_shape,
    layer_norm_gain_shape,
    recurrent_kernel_shape,
)
from keras_gru.quantization import Int8Kernels

Tensor = Any


@keras.saving.register_keras_serializable(package="keras_gru")
class GRUCell(Int8Kernels, keras.layers.Layer, DropoutRNNCell):
    """Cell of a gated recurrent unit; drop-in for `keras.layers.GRUCell`.

    With `x` the input, `h` the previous and `h′` the new state (numbers of DERIVATION.md)::

        z  = σ(x·W_z + b_z + h·U_z + b′_z)                    update gate            (1)
        r  = σ(x·W_r + b_r + h·U_r + b′_r)                    reset gate             (2)
        g  = φ(x·W_g + b_g + r ⊙ (h·U_g + b′_g))              reset_after=True       (3a)
        g  = φ(x·W_g + b_g + (r ⊙ h)·U_g)                     reset_after=False      (3b)
        h′ = z ⊙ h + (1 − z) ⊙ g                              update_gate="keep"     (4a)
        h′ = (1 − z) ⊙ h + z ⊙ g                              update_gate="replace"  (4b)

    Weights are packed `z | r | g` on the last axis: `kernel` (D, 3U), `recurrent_kernel` (U, 3U),
    `bias` (2, 3U) with `reset_after`, else (3U,): the layout of `keras.layers.GRUCell`, so that
    `get_weights` and `set_weights` interchange with it.

    Args:
        units: Size U of the state; a positive integer.
        activation: φ, of the candidate. None is the identity.
        recurrent_activation: σ, of the two gates. None is the identity.
        use_bias: Whether there are biases.
        kernel_initializer: Initializer of `kernel`.
        recurrent_initializer: Initializer of `recurrent_kernel`.
        bias_initializer: Initializer of `bias`.
        kernel_regularizer: Regularizer of `kernel`.
        recurrent_regularizer: Regularizer of `recurrent_kernel`.
        bias_regularizer: Regularizer of `bias`.
        kernel_constraint: Constraint of `kernel`.
        recurrent_constraint: Constraint of `recurrent_kernel`.
        bias_constraint: Constraint of `bias`.
        dropout: Rate in [0, 1) at which inputs are dropped in training; one mask for all gates,
            or with `recurrent_dropout` one per gate, as Keras draws them.
        recurrent_dropout: Rate in [0, 1) at which states are dropped on their way into the
            matmuls in training; one mask per gate.
        reset_after: Reset gate after the matmul (3a; cuDNN, PyTorch, Keras' default) or before
            (3b; Cho et al. 2014, arXiv:1406.1078v3).
        seed: Seed of the dropout masks.
        zoneout: Share in [0, 1) of the units that keep their old value at a step, drawn anew for
            each step in training, in expectation at inference (Krueger et al. 2017,
            arXiv:1606.01305).
        dropconnect: Rate in [0, 1) at which weights of `recurrent_kernel` are dropped in training,
            once for all steps (Merity et al. 2017, arXiv:1708.02182).
        layer_norm: Normalise x·W and h·U, each gate over its units, before the biases are added
            (38; Ba et al. 2016, arXiv:1607.06450); adds the weight `layer_norm_gain` (2, 3U).
        learn_initial_state: Start from a trained state, the weight `learned_state` (U,), where no
            state is given, instead of zeros.
        update_gate: `"keep"` (4a; Cho et al. 2014, Keras, PyTorch, cuDNN) or `"replace"` (4b;
            Chung et al. 2014, arXiv:1412.3555).
        implementation: 0, 1 or 2; accepted for configurations of `keras.layers.GRUCell`, where it
            chooses between arrangements of the same equations. Kept in the config, without effect.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: Inputs of one step, (B, D).
        states: Previous state (B, U), or a list or tuple of one.
        training: Whether dropout applies.

    Returns:
        The output (B, U) and the new state, nested like `states`.

    Raises:
        ValueError: An argument is outside the values named above.
    """

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
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        reset_after: bool = True,
        seed: int | None = None,
        *,
        update_gate: str = "keep",
        zoneout: float = 0.0,
        dropconnect: float = 0.0,
        layer_norm: bool = False,
        learn_initial_state: bool = False,
        implementation: int = 2,
        **kwargs: Any,
    ) -> None:
        units = positive_integer("units", units)
        check_choice("update_gate", update_gate, UPDATE_GATES)
        check_choice("implementation", implementation, (0, 1, 2))
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.dropout = dropout_rate("dropout", dropout)
        self.recurrent_dropout = dropout_rate("recurrent_dropout", recurrent_dropout)
        self.reset_after = bool(reset_after)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.update_gate = update_gate
        self.zoneout = dropout_rate("zoneout", zoneout)
        self.dropconnect = dropout_rate("dropconnect", dropconnect)
        self.layer_norm = bool(layer_norm)
        self.learn_initial_state = bool(learn_initial_state)
        self.implementation = implementation
        self.state_size = self.units
        self.output_size = self.units
        self._drawn = _DrawnMasks()

    @property
    def convention(self) -> Convention:
        """The published GRU that this cell is."""
        return Convention(
            self.reset_after, self.update_gate, self.activation, self.recurrent_activation
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights for inputs (B, D)."""
        features = feature_count(self.name, input_shape)
        self.add_kernels(
            kernel=kernel_shape(features, self.units),
            recurrent_kernel=recurrent_kernel_shape(self.units),
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=bias_shape(self.units, self.reset_after),
                name="bias",
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.layer_norm_gain = None
        if self.layer_norm:
            self.layer_norm_gain = self.add_weight(
                shape=layer_norm_gain_shape(self.units), name="layer_norm_gain", initializer="ones"
            )
        self.learned_state = None
        if self.learn_initial_state:
            self.learned_state = self.add_weight(
                shape=(self.units,), name="learned_state", initializer="zeros"
            )
        self.built = True

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, Any]:
        """Advance by one step; see the class."""
        nested = isinstance(states, list | tuple)
        inputs = real("inputs", inputs, self.compute_dtype)
        h = tf.cast(states[0] if nested else states, self.compute_dtype)
        input_mask = recurrent_mask = dropconnect_mask = None
        if training:
            input_mask = self.get_dropout_mask(inputs)
            recurrent_mask = self.get_recurrent_dropout_mask(h)
            dropconnect_mask = self.get_dropconnect_mask()
        if input_mask is not None and not isinstance(input_mask, Gates):
            inputs, input_mask = inputs * input_mask, None
        kernel, recurrent_kernel, bias, gain = self.packed_weights(dropconnect_mask)
        h_new = step(
            inputs,
            h,
            kernel,
            recurrent_kernel,
            bias,
            self.convention,
            layer_norm_gain=gain,
            recurrent_mask=recurrent_mask,
            input_mask=input_mask,
        )
        share = self.zoneout_share(tf.shape(h), training)
        if share is not None:
            h_new = share * h + (1 - share) * h_new
        return h_new, [h_new] if nested else h_new

    def packed_weights(self, dropconnect_mask: Tensor | None = None) -> PackedWeights:
        """Return the weights in the compute dtype, after DropConnect if there is a mask (U, 3U)."""
        # A wrapper with another dtype policy, such as TimeDistributed, may have cast them already.
        dtype, bias, gain = self.compute_dtype, self.bias, self.layer_norm_gain
        kernel, recurrent_kernel = (
            tf.cast(self.kernel, dtype),
            tf.cast(self.recurrent_kernel, dtype),
        )
        bias = None if bias is None else tf.cast(bias, dtype)
        gain = None if gain is None else tf.cast(gain, dtype)
        if dropconnect_mask is not None:
            recurrent_kernel *= dropconnect_mask
        return PackedWeights(kernel, recurrent_kernel, bias, gain)

    def zoneout_share(self, shape: Tensor, training: bool) -> Tensor | None:
        """Return the share of the old state to keep.

        In training it is a 0/1 draw of `shape`, otherwise the rate.
        """
        if not self.zoneout:
            return None
        if not training:
            return tf.constant(self.zoneout, self.compute_dtype)
        draw = keras.random.uniform(shape, seed=self.seed_generator, dtype="float32")
        return tf.cast(draw < self.zoneout, self.compute_dtype)

    def draw_dropout_mask(self, step_input: Tensor) -> Tensor | Gates:
        """Draw a mask of the inputs, shaped and typed like `step_input` (B, D).

        With `recurrent_dropout` it draws one per gate, as `keras.layers.GRU` does.
        """
        draw = self._draw_gates if self.recurrent_dropout else self._draw
        return draw(tf.ones_like(step_input), self.dropout)

    def draw_recurrent_dropout_mask(self, state: Tensor) -> Gates:
        """Draw masks of the state, one per gate, each like `state` (B, U)."""
        return self._draw_gates(tf.ones_like(state), self.recurrent_dropout)

    def draw_dropconnect_mask(self) -> Tensor:
        """Draw a mask of the recurrent kernel, (U, 3U)."""
        ones = tf.ones_like(tf.convert_to_tensor(self.recurrent_kernel))
        return self._draw(ones, self.dropconnect)

    def _draw_gates(self, ones: Tensor, rate: float) -> Gates:
        """Draw one mask per gate, one after the other.

        With the same seed they are those of Keras' layer.
        """
        return Gates(*[self._draw(ones, rate) for _ in range(GATE_COUNT)])

    def _draw(self, ones: Tensor, rate: float) -> Tensor:
        return keras.random.dropout(ones, rate, seed=self.seed_generator)

    # `keras.layers.RNN` requests the masks before its loop, in training or not, then calls the cell
    # at every step, and after the loop resets the masks.

    def get_dropout_mask(self, step_input: Tensor) -> Tensor | Gates | None:
        """Return the mask of the inputs in this call of the surrounding layer.

        None outside of training.
        """
        if self._drawn.inputs is None and self.dropout and _in_training_call():
            self._drawn.inputs = self.draw_dropout_mask(step_input)
        return self._drawn.inputs

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> Gates | None:
        """Return the masks of the state, like `step_input` (B, U), in this call."""
        self.get_dropconnect_mask()  # Keras asks for masks before its loop only here
        if self._drawn.states is None and self.recurrent_dropout and _in_training_call():
            self._drawn.states = self.draw_recurrent_dropout_mask(step_input)
        return self._drawn.states

    def get_dropconnect_mask(self) -> Tensor | None:
        """Return the mask of the recurrent kernel in this call of the surrounding layer."""
        if self._drawn.recurrent_kernel is None and self.dropconnect and _in_training_call():
            self._drawn.recurrent_kernel = self.draw_dropconnect_mask()
        return self._drawn.recurrent_kernel

    def reset_dropout_mask(self) -> None:
        """Forget the mask of the inputs."""
        self._drawn.inputs = None

    def reset_recurrent_dropout_mask(self) -> None:
        """Forget the masks of the state and of the recurrent kernel."""
        self._drawn.states = self._drawn.recurrent_kernel = None

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        """Return the initial state, [(batch_size, U)], in the compute dtype.

        It is zero, or with `learn_initial_state` the learned one (the cell must be built).
        """
        zeros = tf.zeros((batch_size, self.units), dtype=self.compute_dtype)
        if not self.learn_initial_state:
            return [zeros]
        if not self.built:
            raise ValueError(
                f"Cell {self.name!r} must be built before its learned initial state is asked for."
            )
        return [zeros + tf.cast(self.learned_state, self.compute_dtype)]

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument, for a complete round trip."""
        return {**super().get_config(), **configuration(self, GRUCell.__init__)}


def cell_of(layer: Any) -> Any:
    """Return the cell of a layer, or the layer itself, a GRU of ours or of Keras."""
    cell = getattr(layer, "cell", layer)
    if not isinstance(cell, GRUCell | keras.layers.GRUCell):
        raise ValueError(
            "Argument `layer` must be a GRU or a GRUCell of keras_gru or keras.layers. "
            f"Received: {layer!r}"
        )
    return cell


class _DrawnMasks(threading.local):
    """The masks that a cell has drawn for the call of the surrounding layer, one set per thread."""

    inputs: Tensor | Gates | None = None
    states: Gates | None = None
    recurrent_kernel: Tensor | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle a cell without its masks."""
        return _DrawnMasks, ()


def current_call() -> Any:
    """Return what Keras stores about the outermost layer call in progress, or None."""
    return global_state.get_global_attribute("current_call_ctx")


def _in_training_call() -> bool:
    """Tell whether the outermost layer call in progress has training=True."""
    return bool(getattr(current_call(), "training", False))
