"""One string of each tf.Example, as `tf.io.parse_example` reads it."""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.errors import InvalidArgument
from gru_serving.protos.example_pb2 import Example

_KINDS = {"float_list": "float", "int64_list": "int64"}


def text_feature(examples: np.ndarray, name: str) -> np.ndarray:
    """The feature of each example, (B,) `bytes` objects.

    Args:
        examples: (B,) serialized tf.Examples.
        name: Of a feature that holds exactly one string.

    Raises:
        InvalidArgument: With TensorFlow's text: an example cannot be read, or its feature is
            missing, of another type or not one string.
    """
    texts = np.empty(len(examples), object)
    for place, serialized in enumerate(examples.tolist()):
        texts[place] = _text(serialized, name, place)
    return texts


def _text(serialized: bytes, name: str, place: int) -> bytes:
    try:
        example = Example.FromString(serialized)
    except DecodeError:
        raise _unreadable(serialized) from None
    found = name in example.features.feature and example.features.feature[name]
    kind = found.WhichOneof("kind") if found else None
    where = f"Name: <unknown>, Key: {name}, Index: {place}. "
    if not found or kind is None:
        raise InvalidArgument(
            f"Name: <unknown>, Feature: {name} (data type: string) is required but could not be "
            "found."
        )
    if kind != "bytes_list":
        raise InvalidArgument(
            f"{where} Data types don't match. Data type: {_KINDS[kind]} but expected type: string"
        )
    values = found.bytes_list.value
    if not values:
        raise InvalidArgument(
            f"{where} Number of bytes values != expected.  Values size: 0 but output shape: []"
        )
    if len(values) > 1:
        raise InvalidArgument(f"{where} Can't parse serialized Example.")
    return bytes(values[0])


def _unreadable(serialized: bytes) -> InvalidArgument:
    said = b"Could not parse example input, value: '" + serialized + b"'"
    try:
        return InvalidArgument(said.partition(b"\0")[0].decode())
    except UnicodeDecodeError as error:
        return InvalidArgument(f"the graph refused its input: {error}")
