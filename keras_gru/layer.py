"""The GRU as a Keras layer."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import keras
import tensorflow as tf

from keras_gru.cell import GRUCell
from keras_gru.cudnn import cudnn_sequence, obstacle
from keras_gru.recurrence import Rows, without_masked
from keras_gru.sequence import Sequence, gru_sequence
from keras_gru.session import CarriedState

Tensor = Any

PATHS = ("auto", "fused", "xla", "plain", "cudnn", "loop")

# From `GRU.inner_loop` to the `GRU.call` around it: RNN.call between them hands on no gates, and on
# the layer they would meet those of another thread.
_gates: ContextVar[tuple[Tensor, ...]] = ContextVar("keras_gru_gates", default=())


class _OfCell:
    """An attribute of the layer that lives in its cell."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        return self if layer is None else getattr(layer.cell, self.name)


@keras.saving.register_keras_serializable(package="keras_gru")
class GRU(CarriedState, keras.layers.RNN):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078); drop-in for `keras.layers.GRU`.

    The equations, the weights and all arguments not named here are those of `GRUCell`. The
    constructor, the defaults and the layout of the weights are those of `keras.layers.GRU`.

    Masked steps keep the state. Their output repeats the output before them, or zero where there
    is none, or zero at all masked steps with `zero_output_for_mask=True`. What they hold, be it
    NaN, reaches no output and no gradient. Masks of any pattern run on every path.

    `path` tells how the layer runs, `last_path` how its latest call or trace did:

    - `"fused"`: input projections and weight gradients as large matrix products, and hand-derived
      backpropagation through time (`sequence.gru_sequence`), by the rule of `execution`: `"xla"`
      in graphs, `"plain"` operations in eager code and in exports; and on a GPU `"cudnn"` for
      what it can compute (`cudnn.obstacle`). Taken whenever both activations are among sigmoid,
      hard_sigmoid, tanh, relu and linear.
    - `"loop"`: the cell step by step under automatic differentiation. Taken for other
      activations, with `layer_norm=True`, with `unroll=True` and where the layer was given a `cell`
      whose `call` is its own.

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
                "'fused': no `unroll`, no `layer_norm`, "
                "and activations among sigmoid, hard_sigmoid, tanh, relu and linear. "
                f"Received: path={path!r}, unroll={unroll}, layer_norm={layer_norm}, "
                f"activation={activation!r}, "
                f"recurrent_activation={recurrent_activation!r}"
            )
        self.input_spec = keras.layers.InputSpec(ndim=3)
        # On a GPU `fit` would compile unasked, anew for every length of a bucketed data set and
        # without cuDNN; on a CPU it compiles only what `compile(jit_compile=True)` asks for.
        self.supports_jit = not tf.config.list_physical_devices("GPU")

    @property
    def path(self) -> str:
        """How the layer runs: `"fused"`, `"loop"`, or the path asked for; see the class."""
        if self._asked_path != "auto":
            return self._asked_path
        if self.use_cudnn is True:
            return "cudnn"
        return "fused" if self._can_fuse else "loop"

    @property
    def _can_fuse(self) -> bool:
        if type(self.cell).call is not GRUCell.call:  # a cell put in the place of the layer's own
            return False
        by_hand = self.cell.convention.differentiable_by_hand and not self.layer_norm
        return by_hand and not self.unroll

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
        if sequences.shape[1] == 0:
            raise ValueError(
                f"Layer {self.name!r} needs at least one time step. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        sequences = tf.cast(sequences, self.cell.compute_dtype)
        self._check_initial_state(initial_state, sequences.shape[0])
        mask = self._checked_mask(mask, sequences.shape)
        try:
            results = super().call(
                sequences, initial_state=initial_state, mask=mask, training=training
            )
        finally:
            # After an error, masks drawn for this batch would meet the next one.
            self._maybe_reset_dropout_masks(self.cell)
        if not self.return_gates:
            return results
        gates = _gates.get()
        _gates.set(())
        return (*results, *gates) if self.return_state else (results, *gates)

    def _check_initial_state(self, initial_state: Any, batch: int | None) -> None:
        if initial_state is None:
            return
        states = tf.nest.flatten(initial_state)
        shapes = [tuple(state.shape) if hasattr(state, "shape") else state for state in states]
        wanted = tf.TensorShape((batch, self.units))
        if len(states) != 1 or not (
            isinstance(shapes[0], tuple) and wanted.is_compatible_with(shapes[0])
        ):
            raise ValueError(
                f"Argument `initial_state` of layer {self.name!r} must be one state of shape "
                f"(batch, {self.units}), for a batch of {batch}. Received: shapes {shapes}"
            )

    def _checked_mask(self, mask: Any, shape: Any) -> Tensor | None:
        """The mask as bool (B, T), whatever its dtype, or (B, T, 1); Keras may put it in a list."""
        if isinstance(mask, list | tuple):
            mask = mask[0] if mask else None
        if mask is None:
            return None
        received = tuple(mask.shape) if hasattr(mask, "shape") else mask
        mask = tf.convert_to_tensor(mask)
        if mask.shape.rank == 3 and mask.shape[-1] == 1:
            mask = mask[..., 0]
        batch, steps = shape[:2]
        if not any(mask.shape.is_compatible_with((rows, steps)) for rows in (batch, 1)):
            raise ValueError(
                f"Argument `mask` of layer {self.name!r} must be a boolean tensor or array of "
                f"shape {(batch, steps)}. Received: {received}"
            )
        return tf.cast(mask, tf.bool)

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

    def inner_loop(
        self, sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Last output, outputs and final states, as `keras.layers.RNN` asks its loop for them."""
        if self.path == "loop":
            self.last_path = "loop"
            sequences = without_masked(sequences, mask)
            looped: tuple[Tensor, Tensor, list[Tensor]] = super().inner_loop(
                sequences, initial_state, mask=mask, training=training
            )
            return looped
        cell = self.cell
        h0 = tf.convert_to_tensor(tf.nest.flatten(initial_state)[0])
        recurrent_mask = None
        if training:
            input_mask = cell.get_dropout_mask(sequences[:, 0, :])
            if input_mask is not None:
                sequences *= input_mask[:, tf.newaxis, :]
            recurrent_mask = cell.get_recurrent_dropout_mask(h0)
        batch, steps = tf.unstack(tf.shape(sequences)[:2])
        share = cell.zoneout_share([batch, steps, self.units], training)
        # A wrapper with another dtype policy, as TimeDistributed, may have cast them to its own.
        weights = (
            tf.cast(cell.kernel, cell.compute_dtype),
            tf.cast(cell.effective_recurrent_kernel(training), cell.compute_dtype),
            None if cell.bias is None else tf.cast(cell.bias, cell.compute_dtype),
        )
        rows = Rows(sequences, h0, mask, share, recurrent_mask)
        if self._takes_cudnn(rows):
            result = cudnn_sequence(sequences, h0, *weights, cell.convention, self.go_backwards)
        else:
            result = gru_sequence(
                sequences,
                h0,
                *weights,
                cell.convention,
                mask=mask,
                go_backwards=self.go_backwards,
                recurrent_mask=recurrent_mask,
                zoneout=share,
                return_sequences=self.return_sequences,
                return_gates=self.return_gates,
                training=bool(training),
                path=self.path,
            )
        self.last_path = result.path
        _gates.set(tuple(result.gates or ()))
        last, outputs = self._shown(result, mask)
        return last, outputs, [result.final]

    def _takes_cudnn(self, rows: Rows) -> bool:
        if self.use_cudnn is False or self.path not in ("fused", "cudnn"):
            return False
        reason: str | None = "unroll or layer_norm"
        if self._can_fuse:
            reason = obstacle(self.cell.convention, rows, self.use_bias, self.return_gates)
        if reason is not None and self.path == "cudnn":
            raise ValueError(
                f"Layer {self.name!r} was asked for cuDNN (`path='cudnn'` or `use_cudnn=True`), "
                f"which cannot run it. Reason: {reason}"
            )
        return reason is None

    def _shown(self, result: Sequence, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The last output and all outputs, with Keras' semantics of masked steps."""
        last, states = result.final, result.states
        if mask is not None:
            if self.go_backwards:
                mask = tf.reverse(mask, [1])
            started = tf.cumsum(tf.cast(mask, tf.int32), axis=1) > 0
            shown = mask if self.zero_output_for_mask else started
            last = tf.where(shown[:, -1:], last, tf.zeros_like(last))
            if states is not None:
                states = tf.where(shown[..., tf.newaxis], states, tf.zeros_like(states))
        return last, (last[:, tf.newaxis] if states is None else states)

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
