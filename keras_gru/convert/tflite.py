"""Whole models as TensorFlow Lite files."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_gru.arguments import check_choice

QUANTIZATIONS = (None, "float16", "int8")


def to_tflite(model: Any, path: str | Path | None = None, *, quantize: str | None = None) -> bytes:
    """Convert a model for TensorFlow Lite, with its builtin operations alone.

    Batch and time stay open where the model leaves them open, and `resize_tensor_input` gives an
    interpreter their sizes. With known sizes, as in `keras.Input((steps, features), batch_size=1)`
    for a device, the file is smaller and faster.

    Args:
        model: A built Sequential or functional model.
        path: Path of the file to write; None writes none.
        quantize: None for float32; `"float16"` for weights of half the size, in which a runtime may
            also compute; `"int8"` for weights of a quarter of the size ("dynamic range"), between
            which values stay in float32.

    Returns:
        The file's content.

    Raises:
        ValueError: `quantize` is none of these, or the model has not been built.
        Exception: The converter's own, where an operation is not a builtin one.
    """
    check_choice("quantize", quantize, QUANTIZATIONS)
    if not getattr(model, "inputs", None):
        raise ValueError(
            "Argument `model` must be a Sequential or functional model that has its inputs: build "
            f"it, or give it a keras.Input. Received: {model!r}"
        )
    with tempfile.TemporaryDirectory() as directory:
        archive = keras.export.ExportArchive()
        archive.track(model)
        infer = functools.partial(model.__call__, training=False)
        archive.add_endpoint("serve", infer, input_signature=[_specs(model)])
        archive.write_out(directory, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(directory)
        if quantize is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        content = bytes(converter.convert())
    if path is not None:
        Path(path).write_bytes(content)
    return content


def _specs(model: Any) -> Any:
    """Describe the model's inputs in its own structure, under their own names."""
    # A Sequential that was never called has no `input`; it takes a single tensor.
    inputs = model.inputs[0] if isinstance(model, keras.Sequential) else model.input
    return keras.tree.map_structure(
        lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name), inputs
    )
