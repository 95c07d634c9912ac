"""Weights of other frameworks' GRUs, in and out, and whole models for other runtimes.

Every function goes through `GRUWeights`, which holds one direction of one layer and says which of
the published GRUs the arrays belong to:

=============  ==================  ========  =========================================
framework      reset placement     z gate    biases
=============  ==================  ========  =========================================
Keras          both                keeps     two per gate (reset after), else one
PyTorch        after               keeps     two per gate
ONNX           both                keeps     two per gate
Flax linen     after               keeps     one per gate, two for the candidate
Flax nnx       after               keeps     one per gate
Sonnet 2       before              replaces  one per gate
=============  ==================  ========  =========================================

The reset placement cannot be converted: the two are different functions. The meaning of the update
gate can (`GRUWeights.with_update_gate`), and so can the number of biases, because two biases of a
gate that are only ever added can be replaced by their sum.

    weights = from_flax(params)              # another framework -> GRUWeights
    weights.assign_to(layer)                 # -> keras_gru.GRU, keras.layers.GRU or their cells
    to_pytorch(GRUWeights.of(layer))         # a layer -> another framework
    load_pytorch(encoder, torch_gru)         # all layers and directions at once

`keras_model` exchanges the GRUs of a whole Keras model: ours for Keras', or back.

No other framework is imported: the functions take and return arrays. With the package `onnx`,
whole models are written as ONNX files and the GRUs of such files are read:

    to_onnx_model(model, "model.onnx")
    load_onnx("model.onnx")                  # GRUWeights by node

`to_tflite(model, "model.tflite")` writes a file for TensorFlow Lite.
"""

from keras_gru.convert.frameworks import (
    from_flax,
    from_flax_nnx,
    from_pytorch,
    from_sonnet,
    keras_model,
    load_pytorch,
    pytorch_state_dict,
    to_flax,
    to_flax_nnx,
    to_pytorch,
    to_sonnet,
)
from keras_gru.convert.gru_weights import GRUWeights
from keras_gru.convert.onnx_gru import from_onnx, to_onnx
from keras_gru.convert.onnx_model import load_onnx, to_onnx_model
from keras_gru.convert.tflite import to_tflite

__all__ = [
    "GRUWeights",
    "from_flax",
    "from_flax_nnx",
    "from_onnx",
    "from_pytorch",
    "from_sonnet",
    "keras_model",
    "load_onnx",
    "load_pytorch",
    "pytorch_state_dict",
    "to_flax",
    "to_flax_nnx",
    "to_onnx",
    "to_onnx_model",
    "to_pytorch",
    "to_sonnet",
    "to_tflite",
]
