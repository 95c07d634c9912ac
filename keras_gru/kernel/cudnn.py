"""The fused sequence by cuDNN, on a GPU.

cuDNN supports reset_after with a sigmoid and a tanh, and nothing between the steps. Masks use the
XLA path, which takes any pattern. The call itself is Keras' own, which follows cuDNN's layout of
weights.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src import backend

from keras_gru.kernel import execution
from keras_gru.kernel.equations import Convention
from keras_gru.kernel.weights import PackedWeights, with_opposite_gate

Tensor = Any


def obstacle(convention: Convention, dtype: tf.DType, refused: dict[str, bool]) -> str | None:
    """Name what keeps cuDNN from running a sequence, or return None if it can.

    `refused` names features that cuDNN lacks, each with whether the layer asks for it.
    """
    if not execution.on_gpu():
        return "no GPU"
    wrong = {
        "an export, which must run anywhere": execution.export_target() is not None,
        "a function that XLA compiles as a whole": execution.in_xla(),
        "reset_after=False": not convention.reset_after,
        "activation other than tanh": convention.activation is not keras.activations.tanh,
        "recurrent_activation other than sigmoid": (
            convention.recurrent_activation is not keras.activations.sigmoid
        ),
        **refused,
        f"dtype {dtype.name}": dtype not in (tf.float32, tf.float16),
    }
    return next((reason for reason, holds in wrong.items() if holds), None)


def cudnn_sequence(
    inputs: Tensor,
    initial_state: Tensor,
    weights: PackedWeights,
    convention: Convention,
    go_backwards: bool,
) -> tuple[Tensor, Tensor]:
    """Run a GRU over a sequence; arguments as for `functional.sequence`.

    Returns:
        The state after each step, (B, T, U), in the order of processing, and the final one, (B, U).
    """
    kernel, recurrent_kernel, bias, _ = weights
    if convention.update_gate == "replace":  # σ(−a) = 1 − σ(a)
        kernel, recurrent_kernel, bias = map(with_opposite_gate, (kernel, recurrent_kernel, bias))
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
    return states, final
