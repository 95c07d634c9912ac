"""Conversion of tf.Examples to texts; refusals have TensorFlow's texts."""

from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.description import Step, Values
from gru_serving.preprocessing.texts import shape_text, vector
from gru_serving.protos.example_pb2 import Example

_KINDS = {"float_list": "float", "int64_list": "int64"}


@dataclass(frozen=True)
class ParseExample(Step, kind="parse_example"):
    """Converts tf.Examples to texts.

    Attributes:
        source: Serialized tf.Examples (B,).
        feature: Name of a feature that holds exactly one string.
        target: Texts (B,).
    """

    source: str
    feature: str
    target: str

    def numpy(self, values: Values) -> None:
        """Read the feature of each example; refusals have TensorFlow's texts."""
        examples = values[self.source]
        if examples.ndim > 1:
            raise InvalidArgument(
                f"Expected serialized to be a scalar or vector, got shape: {shape_text(examples)}"
            )
        values[self.target] = text_feature(vector(examples), self.feature)

    def graph(self, values: Values) -> None:
        """Read the feature of each example."""
        import tensorflow as tf

        wanted = {self.feature: tf.io.FixedLenFeature((), tf.string)}
        values[self.target] = tf.io.parse_example(values[self.source], wanted)[self.feature]


def text_feature(examples: np.ndarray, name: str) -> np.ndarray:
    """Return the text feature of each example, (B,) `bytes` objects.

    Args:
        examples: Serialized tf.Examples (B,).
        name: Name of a feature that holds exactly one string.

    Raises:
        InvalidArgument: An example cannot be read, or its feature is missing, of another type or
            not one string; the message is TensorFlow's.
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
            f"Name: <unknown>, Feature: {name} (data type: string) is required but could not "
            "be found."
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
