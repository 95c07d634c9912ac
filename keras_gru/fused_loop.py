"""The loop of a GRU layer over its sequence: which path it takes, and what Keras shows of it."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any

import keras
import tensorflow as tf

from keras_gru.cell import GRUCell
from keras_gru.kernel.cudnn import cudnn_sequence, obstacle
from keras_gru.kernel.recurrence import Rows, without_masked
from keras_gru.kernel.sequence import Sequence, gru_sequence
from keras_gru.kernel.weights import Gates

Tensor = Any

# Whether the layer is called within a `keras.RematScope` that it was made in.
_recomputes: ContextVar[bool] = ContextVar("keras_gru_recomputes", default=False)
# Passes gates from `inner_loop` to the `GRU.call` around it: RNN.call in between does not return
# them, and an attribute of the layer would be shared between threads.
_gates: ContextVar[tuple[Tensor, ...]] = ContextVar("keras_gru_gates", default=())


def taken_gates() -> tuple[Tensor, ...]:
    """The gates that the latest `inner_loop` of this thread left, once."""
    gates = _gates.get()
    _gates.set(())
    return gates


class FusedLoop:
    """Mixin of a `keras.layers.RNN` around a `GRUCell`: its loop is the fused sequence.

    Where that cannot be, it is the loop of `keras.layers.RNN`.
    """

    name: str
    cell: Any
    units: Any
    use_bias: Any
    layer_norm: Any
    unroll: bool
    use_cudnn: str | bool
    go_backwards: bool
    zero_output_for_mask: bool
    return_sequences: bool
    return_gates: bool
    last_path: str | None
    _asked_path: str

    @property
    def path(self) -> str:
        """How the layer runs: `"fused"`, `"loop"`, or the path asked for; see the class."""
        if self._asked_path != "auto":
            return self._asked_path
        if self.use_cudnn is True:
            return "cudnn"
        return "fused" if self._can_fuse else "loop"

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """What Keras calls for a layer made in a `keras.RematScope`.

        The fused sequence computes its segments again with the dropout masks that it had. Keras'
        way would draw others, and takes no keyword arguments in a graph.
        """
        rematerialized = super().rematerialized_call(layer_call, *args, **kwargs)  # type: ignore[misc]
        if rematerialized is layer_call or self.path == "loop":
            return rematerialized

        @functools.wraps(layer_call)
        def call(*args: Any, **kwargs: Any) -> Any:
            token = _recomputes.set(True)
            try:
                return layer_call(*args, **kwargs)
            finally:
                _recomputes.reset(token)

        return call

    @property
    def _can_fuse(self) -> bool:
        if type(self.cell).call is not GRUCell.call:  # a cell that replaces the layer's own
            return False
        return self.cell.convention.differentiable_by_hand and not self.unroll

    def inner_loop(
        self, sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Last output, outputs and final states, as `keras.layers.RNN` asks its loop for them."""
        if self.path == "loop":
            self.last_path = "loop"
            sequences = without_masked(sequences, mask)
            looped: tuple[Tensor, Tensor, list[Tensor]] = keras.layers.RNN.inner_loop(
                self, sequences, initial_state, mask=mask, training=training
            )
            return looped
        cell = self.cell
        h0 = tf.convert_to_tensor(tf.nest.flatten(initial_state)[0])
        recurrent_mask = input_mask = None
        if training:
            input_mask = cell.get_dropout_mask(sequences[:, 0, :])
            if input_mask is not None and not isinstance(input_mask, Gates):
                sequences *= input_mask[:, tf.newaxis, :]
                input_mask = None
            recurrent_mask = cell.get_recurrent_dropout_mask(h0)
        batch, steps = tf.unstack(tf.shape(sequences)[:2])
        share = cell.zoneout_share([batch, steps, self.units], training)
        # A wrapper with another dtype policy, as TimeDistributed, may have cast them to its own.
        weights = (
            tf.cast(cell.kernel, cell.compute_dtype),
            tf.cast(cell.effective_recurrent_kernel(training), cell.compute_dtype),
            None if cell.bias is None else tf.cast(cell.bias, cell.compute_dtype),
        )
        gain = cell.layer_norm_gain
        rows = Rows(sequences, h0, mask, share, recurrent_mask)
        if self._takes_cudnn(rows):
            result = cudnn_sequence(sequences, h0, *weights, cell.convention, self.go_backwards)
        else:
            result = gru_sequence(
                sequences,
                h0,
                *weights,
                cell.convention,
                layer_norm_gain=None if gain is None else tf.cast(gain, cell.compute_dtype),
                mask=mask,
                go_backwards=self.go_backwards,
                recurrent_mask=recurrent_mask,
                input_mask=input_mask,
                zoneout=share,
                return_sequences=self.return_sequences,
                return_gates=self.return_gates,
                training=bool(training),
                recompute=_recomputes.get(),
                path=self.path,
            )
        self.last_path = result.path
        _gates.set(tuple(result.gates or ()))
        last, outputs = self._shown(result, mask)
        return last, outputs, [result.final]

    def _takes_cudnn(self, rows: Rows) -> bool:
        if self.use_cudnn is False or self.path not in ("fused", "cudnn"):
            return False
        reason: str | None = "unroll"
        if self._can_fuse:
            reason = obstacle(
                self.cell.convention, rows, self.use_bias, self.layer_norm, self.return_gates
            )
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
                states = tf.where(tf.expand_dims(shown, -1), states, tf.zeros_like(states))
        return last, (last[:, tf.newaxis] if states is None else states)
