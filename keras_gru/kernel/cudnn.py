"""The fused sequence by cuDNN, on a GPU.

cuDNN computes reset_after with a sigmoid and a tanh, and nothing between the steps. Masks run on
the XLA path, which takes any pattern. The call itself is Keras' own, which keeps up with cuDNN's
layout of weights.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src import backend

from keras_gru.kernel import execution
from keras_gru.kernel.convention import Convention
from keras_gru.kernel.recurrence import Rows
from keras_gru.kernel.sequence import Sequence
from keras_gru.kernel.weights import split_gates

Tensor = Any


def obstacle(
    convention: Convention, rows: Rows, use_bias: bool, layer_norm: bool, return_gates: bool
) -> str | None:
    """Why cuDNN cannot run a sequence, or None if it can.

    Args:
        convention: Which GRU.
        rows: Its inputs.
        use_bias: Whether there is a bias.
        layer_norm: Whether there is layer normalisation.
        return_gates: Whether gates are wanted.
    """
    if not execution.on_gpu():
        return "no GPU"
    wrong = {
        "an export, which must run anywhere": execution.exporting(),
        "a function that XLA compiles as a whole": execution.in_xla(),
        "reset_after=False": not convention.reset_after,
        "activation other than tanh": convention.activation is not keras.activations.tanh,
        "recurrent_activation other than sigmoid": (
            convention.recurrent_activation is not keras.activations.sigmoid
        ),
        "use_bias=False": not use_bias,
        "layer_norm=True": layer_norm,
        "a mask": rows.mask is not None,
        "recurrent dropout": rows.recurrent_mask is not None,
        "zoneout": rows.zoneout is not None,
        "return_gates=True": return_gates,
        f"dtype {rows.inputs.dtype.name}": rows.inputs.dtype not in (tf.float32, tf.float16),
    }
    return next((reason for reason, holds in wrong.items() if holds), None)


def cudnn_sequence(
    inputs: Tensor,
    initial_state: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor,
    convention: Convention,
    go_backwards: bool,
) -> Sequence:
    """Run a GRU over a sequence; arguments as for `gru_sequence`, states in processing order."""
    if convention.update_gate == "replace":  # σ(−a) = 1 − σ(a) swaps (4b) for (4a)
        kernel, recurrent_kernel, bias = (
            tf.concat([-z, r, g], -1)
            for z, r, g in map(split_gates, (kernel, recurrent_kernel, bias))
        )
    final, states, _ = backend.gru(
        inputs,
        initial_state,
        None,
        kernel,
        recurrent_kernel,
        bias,
        convention.activation,
        convention.recurrent_activation,
        return_sequences=True,
        go_backwards=go_backwards,
    )
    return Sequence(states, final, None, "cudnn")
