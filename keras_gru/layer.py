"""The GRU as a Keras layer."""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_gru.arguments import cannot_change, check_choice, named_arguments, real
from keras_gru.cell import GRUCell, current_call
from keras_gru.functional import Sequence, sequence
from keras_gru.kernel.cudnn import cudnn_sequence, obstacle
from keras_gru.kernel.execution import on_gpu
from keras_gru.kernel.loop import without_masked
from keras_gru.kernel.weights import Gates
from keras_gru.quantization import Int8ByCell, saved_policy

Tensor = Any

PATHS = ("auto", "fused", "xla", "plain", "cudnn", "loop")

# Attributes of the layer that live in its cell.
CELL_ATTRIBUTES = frozenset(named_arguments(GRUCell.__init__))


@keras.saving.register_keras_serializable(package="keras_gru")
class GRU(Int8ByCell, keras.layers.RNN):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078); drop-in for `keras.layers.GRU`.

    The equations, the weights and all arguments not named here are those of `GRUCell`. The
    constructor, the defaults and the layout of the weights are those of `keras.layers.GRU`.

    Masked steps keep the state. Their output repeats the output before them, or zero where there
    is none, or zero at all masked steps with `zero_output_for_mask=True`. Their contents, even NaN,
    reach no output and no gradient. Masks of any pattern run on every path.

    `path` tells how the layer runs, `last_path` how its latest call or trace did:

    - `"fused"`: input projections and weight gradients as large matrix products, and hand-derived
      backpropagation through time (`functional.sequence`), by the rule of `kernel.execution`:
      `"xla"` in graphs, `"plain"` operations in eager code and in exports; and on a GPU `"cudnn"`
      for what it can compute (`kernel.cudnn.obstacle`). Taken whenever both activations are among
      sigmoid, hard_sigmoid, tanh, relu and linear.
    - `"loop"`: the cell step by step under automatic differentiation. Taken for other
      activations, with `unroll=True` and where the layer was given a `cell` whose `call` is its
      own.

    Args:
        units: Size U of the state and of the output.
        return_sequences: Return the outputs of all steps, (B, T, U), not only the last, (B, U).
        return_state: Whether to return the final state too, (B, U).
        go_backwards: Run from the last step to the first and return outputs in that order.
        stateful: Carry the state of each row over to the next batch, until it is set or reset.
            Needs a fixed batch size.
        unroll: Unroll the loop in the graph, as a conversion to TensorFlow Lite needs it. Needs a
            fixed number of steps.
        zero_output_for_mask: Output zeros at masked steps.
        return_gates: Whether to return the update gate, the reset gate and the candidate of every
            step too, (B, T, U) each, in the order of processing and zero at masked steps. Needs the
            path `"fused"`; not for a layer inside `keras.layers.Bidirectional`, which knows no
            gates.
        path: `"auto"` for the rule above; or the path to take, `"fused"`, `"xla"`, `"plain"`,
            `"cudnn"` or `"loop"`, where one that cannot be taken is an error.
        use_cudnn: `"auto"`; False for another path on a GPU; True for `path="cudnn"`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        sequences: (B, T, D); without a step the state stays, but on the path `"loop"`, which needs
            one; or a `tf.RaggedTensor` (B, None, D), whose rows are
            masked at their ends and whose outputs with `return_sequences` are ragged again.
        initial_state: State to start from, (B, U), or (1, U) for all rows, or a list of one; zeros
            by default.
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
        check_choice("path", path, PATHS)
        check_choice("use_cudnn", use_cudnn, ("auto", True, False))
        cell = GRUCell(
            units=units,
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
            seed=seed,
            reset_after=reset_after,
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

    def __getattr__(self, name: str) -> Any:
        """Find what `CELL_ATTRIBUTES` names."""
        if name in CELL_ATTRIBUTES:
            return getattr(self.cell, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what `CELL_ATTRIBUTES` names, as Keras' layer does: the cell would not follow."""
        if name in CELL_ATTRIBUTES:
            raise cannot_change(self, name, value)
        super().__setattr__(name, value)

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> None:
        """Create the weights for sequences (B, T, D)."""
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})

    @property
    def path(self) -> str:
        """Path of the layer: `"fused"`, `"loop"`, or the path asked for; see the class."""
        if self._asked_path != "auto":
            return self._asked_path
        if self.use_cudnn is True:
            return "cudnn"
        return "fused" if self._can_fuse else "loop"

    @property
    def _can_fuse(self) -> bool:
        if type(self.cell).call is not GRUCell.call:  # a cell that replaces the layer's own
            return False
        return self.cell.convention.differentiable_by_hand and not self.unroll

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Run over a sequence; see the class."""
        cell, path = self.cell, self.path
        if path == "loop" and sequences.shape[1] == 0:
            raise ValueError(
                f"Layer {self.name!r} needs at least one time step on the path 'loop'. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        if self.return_gates:
            self._refuse_gates_in_bidirectional()
        sequences = real("sequences", sequences, cell.compute_dtype)
        if mask is not None:
            mask = self._checked_mask(mask, sequences)
        h0 = self._checked_state(initial_state, sequences)
        if self.stateful and sequences.shape[0] is None:  # the last batch may be a short one
            sequences = tf.ensure_shape(sequences, (*h0.shape[:1], None, None), "stateful_batch")
        if path == "loop":
            self.last_path = "loop"
            sequences = without_masked(sequences, mask)
            try:
                return super().call(sequences, initial_state=h0, mask=mask, training=training)
            finally:
                # After an error, the next batch would otherwise reuse the masks of this one.
                self._maybe_reset_dropout_masks(cell)
        input_mask = recurrent_mask = dropconnect_mask = None
        if training and cell.dropout:
            first = tf.reduce_sum(sequences[:, :1], 1)  # not `[:, 0]`: there may be no step
            input_mask = cell.draw_dropout_mask(first)
        if training and cell.dropconnect:
            dropconnect_mask = cell.draw_dropconnect_mask()
        if training and cell.recurrent_dropout:
            recurrent_mask = cell.draw_recurrent_dropout_mask(h0)
        if input_mask is not None and not isinstance(input_mask, Gates):
            sequences, input_mask = sequences * input_mask[:, tf.newaxis, :], None
        share = None
        if cell.zoneout:
            batch, steps = tf.unstack(tf.shape(sequences)[:2])
            share = cell.zoneout_share([batch, steps, cell.units], training)
        weights = cell.packed_weights(dropconnect_mask)
        noise = {"a mask": mask, "recurrent dropout": recurrent_mask, "zoneout": share}
        if self._takes_cudnn(path, sequences.dtype, noise):
            states, final = cudnn_sequence(
                sequences, h0, weights, cell.convention, self.go_backwards
            )
            result = Sequence(states, final, None, "cudnn")
        else:
            result = sequence(
                sequences,
                h0,
                weights.kernel,
                weights.recurrent_kernel,
                weights.bias,
                cell.convention,
                layer_norm_gain=weights.layer_norm_gain,
                mask=mask,
                go_backwards=self.go_backwards,
                recurrent_mask=recurrent_mask,
                input_mask=input_mask,
                zoneout=share,
                return_sequences=self.return_sequences,
                return_gates=self.return_gates,
                training=bool(training),
                recompute=self._remat_mode is not None and self._recomputes(sequences),
                path=path,
            )
        self.last_path = result.path
        if self.stateful:
            self.states[0].assign(result.final)
        return self._returned(result, mask)

    def _refuse_gates_in_bidirectional(self) -> None:
        """Raise ValueError if `keras.layers.Bidirectional` is at work around `return_gates`."""
        outermost = getattr(current_call(), "entry_layer", None)
        for layer in () if outermost is None else outermost._flatten_layers():
            if isinstance(layer, keras.layers.Bidirectional) and (
                self in (layer.forward_layer, layer.backward_layer)
            ):
                raise ValueError(
                    f"Argument `return_gates` of layer {self.name!r} must be False in the "
                    f"Bidirectional layer {layer.name!r}, which knows no gates. Use two layers, "
                    "one of them with `go_backwards=True`. Received: return_gates=True"
                )

    def _returned(self, result: Sequence, mask: Tensor | None) -> Any:
        """Arrange what a call returns, with Keras' semantics of masked steps."""
        output = result.states if self.return_sequences else result.final
        if mask is not None:
            mask = tf.reverse(mask, [1]) if self.go_backwards else mask
            if self.return_sequences:
                shown = mask
                if not self.zero_output_for_mask:
                    shown = tf.cumsum(tf.cast(mask, tf.int32), axis=1) > 0
                # TensorFlow Lite cuts no booleans, as `shown[..., tf.newaxis]` would.
                shown = tf.expand_dims(shown, -1)
            else:  # a sum, which is zero where there is no step
                some = mask[:, -1:] if self.zero_output_for_mask else mask
                shown = tf.reduce_sum(tf.cast(some, tf.int32), axis=1, keepdims=True) > 0
            output = tf.where(shown, output, tf.zeros_like(output))
        results = [output]
        if self.return_state:
            results.append(result.final)
        if result.gates is not None:
            results.extend(result.gates)
        results = list(map(tf.cast, results, itertools.repeat(self.compute_dtype)))
        return tuple(results) if len(results) > 1 else results[0]

    def _checked_mask(self, mask: Any, sequences: Tensor) -> Tensor | None:
        """Return the mask as bool (B, T), whatever its dtype, or (B, T, 1), perhaps in a list."""
        if isinstance(mask, list | tuple):
            mask = mask[0] if mask else None
        if mask is None:  # it was in a list
            return None
        received = tuple(mask.shape) if hasattr(mask, "shape") else mask
        mask = tf.convert_to_tensor(mask)
        if mask.shape.rank == 3 and mask.shape[-1] == 1:
            mask = mask[..., 0]
        batch, steps = sequences.shape[:2]
        message = (
            f"Argument `mask` of layer {self.name!r} must be a boolean tensor or array of "
            f"shape {(batch, steps)}. Received: {received}"
        )
        if not any(mask.shape.is_compatible_with((rows, steps)) for rows in (batch, 1)):
            raise ValueError(message)
        if mask.shape[1] == 1 and steps is None:  # it would be that of all steps
            tf.debugging.assert_equal(tf.shape(sequences)[1], 1, message)
        mask = tf.cast(mask, tf.bool)
        if mask.shape[0] == 1 and batch != 1:
            mask = tf.broadcast_to(mask, tf.shape(sequences)[:2])
            mask.set_shape((batch, steps))
        return mask

    def _checked_state(self, initial_state: Any, sequences: Tensor) -> Tensor:
        """Return the state to start from, (B, U): the given, the carried or the cell's own."""
        batch, units = sequences.shape[0], self.cell.units
        if self.stateful and batch is not None and self.states[0].shape[0] != batch:
            raise ValueError(
                f"Layer {self.name!r} is stateful, with a batch size of {self.states[0].shape[0]}. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        if initial_state is None:
            if self.stateful:
                (h0,) = self.states
            else:
                (h0,) = self.get_initial_state(batch or tf.shape(sequences)[0])
            return tf.cast(h0, self.cell.compute_dtype)
        states = tf.nest.flatten(initial_state)
        shapes = [tuple(state.shape) if hasattr(state, "shape") else state for state in states]
        wanted = tf.TensorShape((batch, units)), tf.TensorShape((1, units))
        if len(states) != 1 or not (
            isinstance(shapes[0], tuple) and any(w.is_compatible_with(shapes[0]) for w in wanted)
        ):
            raise ValueError(
                f"Argument `initial_state` of layer {self.name!r} must be one state of shape "
                f"(batch, {units}), for a batch of {batch}. Received: shapes {shapes}"
            )
        h0 = tf.cast(states[0], self.cell.compute_dtype)
        if h0.shape[0] == 1 and batch != 1:
            h0 = tf.broadcast_to(h0, [batch or tf.shape(sequences)[0], units])
        return h0

    def _takes_cudnn(self, path: str, dtype: tf.DType, noise: dict[str, Any]) -> bool:
        """Tell whether cuDNN runs a call; ValueError if it was asked for and cannot."""
        if path != "cudnn" and (path != "fused" or self.use_cudnn is False or not on_gpu()):
            return False
        refused = {
            "unroll or a cell of its own": not self._can_fuse,
            "use_bias=False": not self.cell.use_bias,
            "layer_norm=True": self.cell.layer_norm,
            "return_gates=True": self.return_gates,
            **{name: value is not None for name, value in noise.items()},
        }
        reason = obstacle(self.cell.convention, dtype, refused)
        if reason is not None and path == "cudnn":
            raise ValueError(
                f"Layer {self.name!r} was asked for cuDNN (`path='cudnn'` or `use_cudnn=True`), "
                f"which cannot run it. Reason: {reason}"
            )
        return reason is None

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """Give Keras what to call in a layer made in a `keras.RematScope`.

        The fused sequence computes its segments again with the dropout masks that it had. Keras'
        way would draw others, and takes no keyword arguments in a graph.
        """
        if self.path == "loop":
            return super().rematerialized_call(layer_call, *args, **kwargs)
        return layer_call

    def _recomputes(self, sequences: Tensor) -> bool:
        """Tell whether the `keras.RematScope` that the layer was made in applies to a call."""
        return bool(super().rematerialized_call(self.call, sequences) != self.call)

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

    def get_states(self) -> list[Tensor]:
        """Return the carried state of a `stateful` layer, [(B, U)]."""
        return [tf.identity(state) for state in self._carried()]

    def set_states(self, states: Any) -> None:
        """Continue from these states.

        Args:
            states: States (B, U), or a list of one.

        Raises:
            ValueError: A state has another shape than the layer's.
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

    def compute_output_shape(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> Any:
        """Shapes of what a call returns."""
        shapes = super().compute_output_shape(sequences_shape, initial_state_shape)
        if not self.return_gates:
            return shapes
        self._refuse_gates_in_bidirectional()
        gate = (sequences_shape[0], sequences_shape[1], self.units)
        return (*shapes, gate, gate, gate) if self.return_state else (shapes, gate, gate, gate)

    def compute_mask(self, sequences: Any, mask: Any) -> Any:
        """Masks of what a call returns: the input's for sequences, none for states and gates."""
        masks = super().compute_mask(sequences, mask)
        if not self.return_gates:
            return masks
        return [*(masks if self.return_state else [masks]), None, None, None]

    def get_config(self) -> dict[str, Any]:
        """Constructor arguments, flat.

        Those that `keras.layers.GRU` does not know are left out at their defaults, so that Keras'
        layer can take the place of this one.
        """
        config = super().get_config()
        del config["cell"]
        config = {
            **self.cell.get_config(),
            **config,
            "dtype": saved_policy(self.cell, config["dtype"]),
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            "use_cudnn": self.use_cudnn,
            "return_gates": self.return_gates,
            "path": self._asked_path,
        }
        plain = {"use_cudnn": "auto", **(GRU.__init__.__kwdefaults__ or {})}
        return {k: value for k, value in config.items() if k not in plain or value != plain[k]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> GRU:  # noqa: ARG003
        """Build a layer from `get_config`."""
        return cls(**config)


def _checked_rows(rows: Any, batch: int, name: str) -> npt.NDArray[np.int32]:
    """Indices of rows as an array; no boolean mask, in which True would be read as row 1."""
    chosen = np.array(list(rows))
    integers = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not chosen.size)
    if not (integers and np.all((chosen >= 0) & (chosen < batch))):
        raise ValueError(
            f"Argument `rows` of layer {name!r} must be indices in [0, {batch}). Received: {rows}"
        )
    return chosen.astype(np.int32)
