"""The GRU as a Keras layer."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from keras_gru.call_arguments import check_initial_state, checked_mask
from keras_gru.cell import GRUCell
from keras_gru.fused_loop import FusedLoop, taken_gates
from keras_gru.quantization import Int8ByCell, saved_policy
from keras_gru.session import CarriedState

Tensor = Any

PATHS = ("auto", "fused", "xla", "plain", "cudnn", "loop")


class _OfCell:
    """An attribute of the layer that lives in its cell."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        return self if layer is None else getattr(layer.cell, self.name)


@keras.saving.register_keras_serializable(package="keras_gru")
class GRU(CarriedState, Int8ByCell, FusedLoop, keras.layers.RNN):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078); drop-in for `keras.layers.GRU`.

    The equations, the weights and all arguments not named here are those of `GRUCell`. The
    constructor, the defaults and the layout of the weights are those of `keras.layers.GRU`.

    Masked steps keep the state. Their output repeats the output before them, or zero where there
    is none, or zero at all masked steps with `zero_output_for_mask=True`. Their contents, even NaN,
    reach no output and no gradient. Masks of any pattern run on every path.

    `path` tells how the layer runs, `last_path` how its latest call or trace did:

    - `"fused"`: input projections and weight gradients as large matrix products, and hand-derived
      backpropagation through time (`functional.sequence`), by the rule of `execution`: `"xla"`
      in graphs, `"plain"` operations in eager code and in exports; and on a GPU `"cudnn"` for
      what it can compute (`cudnn.obstacle`). Taken whenever both activations are among sigmoid,
      hard_sigmoid, tanh, relu and linear.
    - `"loop"`: the cell step by step under automatic differentiation. Taken for other
      activations, with `unroll=True` and where the layer was given a `cell` whose `call` is its
      own.

    Args:
        units: Size U of the state and of the output.
        return_sequences: Return the outputs of all steps, (B, T, U), not only the last, (B, U).
        return_state: Also return the final state, (B, U).
        go_backwards: Run from the last step to the first and return outputs in that order.
        stateful: Carry the state of each row over to the next batch. Needs a fixed batch size.
        unroll: Unroll the loop in the graph, as a conversion to TensorFlow Lite needs it. Needs a
            fixed number of steps.
        zero_output_for_mask: Output zeros at masked steps.
        return_gates: Also return the update gate, the reset gate and the candidate of every step,
            (B, T, U) each, in the order of processing and zero at masked steps. Needs the path
            `"fused"`; not for a layer inside `keras.layers.Bidirectional`, which knows no gates.
        path: `"auto"` for the rule above; or the path to take, `"fused"`, `"xla"`, `"plain"`,
            `"cudnn"` or `"loop"`, where one that cannot be taken is an error.
        use_cudnn: `"auto"`; False for another path on a GPU; True for `path="cudnn"`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        sequences: (B, T, D), T at least 1; or a `tf.RaggedTensor` (B, None, D), whose rows are
            masked at their ends and whose outputs with `return_sequences` are ragged again.
        initial_state: (B, U), or a list of one; zeros by default.
        mask: Boolean (B, T) or (B, T, 1); False marks a step to pass over.
        training: Whether dropout applies, and whether to keep what gradients need. Pass True in a
            loop of your own around a `tf.GradientTape`; without it the forward pass runs a second
            time when the gradients are asked for.

    Returns:
        The output alone, or followed by the final state (`return_state`) and by z, r and g
        (`return_gates`).

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
    zoneout = _OfCell()
    dropconnect = _OfCell()
    layer_norm = _OfCell()
    learn_initial_state = _OfCell()
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
        zoneout: float = 0.0,
        dropconnect: float = 0.0,
        layer_norm: bool = False,
        learn_initial_state: bool = False,
        return_gates: bool = False,
        implementation: int = 2,
        path: str = "auto",
        **kwargs: Any,
    ) -> None:
        if path not in PATHS:
            raise ValueError(f"Argument `path` must be one of {PATHS}. Received: path={path!r}")
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
            zoneout=zoneout,
            dropconnect=dropconnect,
            layer_norm=layer_norm,
            learn_initial_state=learn_initial_state,
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
        self.return_gates = bool(return_gates)
        self._asked_path = path
        self.last_path: str | None = None
        wants_fused = self.return_gates or path not in ("auto", "loop")
        if wants_fused and (path == "loop" or not self._can_fuse):
            raise ValueError(
                f"Argument `{'return_gates' if self.return_gates else 'path'}` needs the path "
                "'fused': no `unroll`, and activations among sigmoid, hard_sigmoid, tanh, relu and "
                f"linear. Received: path={path!r}, unroll={unroll}, "
                f"activation={activation!r}, "
                f"recurrent_activation={recurrent_activation!r}"
            )
        self.input_spec = keras.layers.InputSpec(ndim=3)
        # On a GPU `fit` would compile unasked, anew for every length of a bucketed data set and
        # without cuDNN; on a CPU it compiles only what `compile(jit_compile=True)` asks for.
        self.supports_jit = not tf.config.list_physical_devices("GPU")

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> None:
        """Create the weights for sequences (B, T, D)."""
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Run over a sequence; see the class."""
        if sequences.shape[1] == 0:
            raise ValueError(
                f"Layer {self.name!r} needs at least one time step. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        sequences = tf.cast(sequences, self.cell.compute_dtype)
        check_initial_state(self.name, initial_state, sequences.shape[0], self.units)
        mask = checked_mask(self.name, mask, sequences.shape)
        try:
            results = super().call(
                sequences, initial_state=initial_state, mask=mask, training=training
            )
        finally:
            # After an error, the next batch would otherwise reuse the masks drawn for this one.
            self._maybe_reset_dropout_masks(self.cell)
        if not self.return_gates:
            return results
        gates = taken_gates()
        return (*results, *gates) if self.return_state else (results, *gates)

    def __call__(self, sequences: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the layer; ragged sequences become padded ones with a mask, and back."""
        if not isinstance(sequences, tf.RaggedTensor):
            return super().__call__(sequences, *args, **kwargs)
        if kwargs.get("mask") is not None:
            raise ValueError(
                f"Layer {self.name!r} takes the mask of a ragged tensor from its row lengths. "
                "Received: `mask` beside ragged `sequences`"
            )
        mask = tf.sequence_mask(sequences.row_lengths())
        results = super().__call__(sequences.to_tensor(), *args, **{**kwargs, "mask": mask})
        shown = tf.reverse(mask, [1]) if self.go_backwards else mask
        return tf.nest.map_structure(
            lambda t: tf.ragged.boolean_mask(t, shown) if t.shape.rank == 3 else t, results
        )

    def compute_output_shape(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> Any:
        """Shapes of what a call returns."""
        shapes = super().compute_output_shape(sequences_shape, initial_state_shape)
        if not self.return_gates:
            return shapes
        gate = (sequences_shape[0], sequences_shape[1], self.units)
        return (*shapes, gate, gate, gate) if self.return_state else (shapes, gate, gate, gate)

    def compute_mask(self, sequences: Any, mask: Any) -> Any:
        """Masks of what a call returns: the input's for sequences, none for states and gates."""
        masks = super().compute_mask(sequences, mask)
        if not self.return_gates:
            return masks
        return [*(masks if self.return_state else [masks]), None, None, None]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, flat, for a complete round trip."""
        config = super().get_config()
        del config["cell"]
        of_cell = self.cell.get_config()
        for key in ("name", "trainable", "dtype"):
            del of_cell[key]
        return {
            **config,
            "dtype": saved_policy(self.cell, config["dtype"]),
            **of_cell,
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            "use_cudnn": self.use_cudnn,
            "return_gates": self.return_gates,
            "path": self._asked_path,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> GRU:  # noqa: ARG003
        """Build a layer from `get_config`."""
        return cls(**config)
