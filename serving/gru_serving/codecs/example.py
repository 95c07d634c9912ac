"""tf.Examples from the values that a feature can have: text, bytes and numbers, one or many."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gru_serving.codecs.dtypes import string_array
from gru_serving.errors import InvalidArgument
from gru_serving.protos.example_pb2 import Example, Feature
from gru_serving.protos.input_pb2 import Input

Value = str | bytes | int | float | dict[str, Any]
"""Value of a feature; a dictionary is `{"b64": ...}`, JSON's form of bytes."""
Values = dict[str, list[Value]]
"""Values of one example, by feature name."""

_INT64, _UINT64 = 1 << 63, 1 << 64


def example_values(examples: Sequence[Mapping[str, Any]]) -> list[Values]:
    """Convert the examples that users pass to lists of Python's own values.

    Args:
        examples: Mappings of a feature name to a value, a list or an array of one dimension. Values
            are text, bytes and numbers, Python's or NumPy's; `{"b64": ...}` stands for bytes, as in
            JSON.

    Raises:
        InvalidArgument: A value is of any other kind.
    """
    if isinstance(examples, str | bytes | Mapping) or not isinstance(examples, Iterable):
        raise _refusal("one mapping per example", examples)
    return [_of_example(example) for example in examples]


def _of_example(example: Any) -> Values:
    if not isinstance(example, Mapping):
        raise _refusal("a mapping from feature names to values", example)
    for name in example:
        if not isinstance(name, str):
            raise _refusal("names of features to be text", name)
    return {name: _of_feature(name, content) for name, content in example.items()}


def _of_feature(name: str, content: Any) -> list[Value]:
    if isinstance(content, np.ndarray) and content.ndim > 1:
        raise InvalidArgument(
            f"examples: feature {name!r}: expected one dimension at most; got an array of shape "
            f"{content.shape}"
        )
    listed: list[Any]
    if isinstance(content, np.ndarray) and content.dtype.kind in "SUT":
        listed = string_array(content).ravel().tolist()
    elif isinstance(content, np.ndarray):
        listed = list(content.ravel())
    else:
        listed = list(content) if isinstance(content, list | tuple) else [content]
    return [_plain(name, value) for value in listed]


def _plain(name: str, value: Any) -> Value:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, int | np.bool_ | np.integer):
        if abs(int(value)) > sys.float_info.max:
            raise InvalidArgument(f"examples: feature {name!r}: got an integer beyond a double")
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.generic) and value.dtype.kind == "V" and value.dtype.names is None:
        return float(value)  # bfloat16 and others of ml_dtypes
    if isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str):
        return value
    raise _refusal(f"text, numbers and lists of them as feature {name!r}", value)


def _refusal(expected: str, value: Any) -> InvalidArgument:
    return InvalidArgument(
        f"examples: expected {expected}; got {type(value).__name__}: {value!r:.80}"
    )


def encode_input(examples: Sequence[Values]) -> Input:
    """Encode the examples of a Classify or Regress request from the result of `example_values`.

    Raises:
        InvalidArgument: A feature mixes types, an integer is beyond 64 bits, or a text is no
            base64; the message is TF Serving's.
    """
    proto = Input()
    for values in examples:
        add_features(proto.example_list.examples.add(), values)
    proto.example_list.SetInParent()
    return proto


def add_features(example: Example, values: Mapping[str, Iterable[Value]]) -> None:
    """Put values by feature name into an empty example.

    Raises:
        InvalidArgument: A value cannot be encoded, see `encode_input`.
    """
    for name, content in values.items():
        try:
            feature = example.features.feature[name]
        except UnicodeEncodeError:
            raise InvalidArgument(f"Feature: {name} has a name that is not UTF-8") from None
        for value in content:
            add_value(feature, name, value)


def add_value(feature: Feature, name: str, value: Value) -> None:
    """Append a value to the feature of this name; all of its values must have one type.

    Raises:
        InvalidArgument: The value cannot be encoded, see `encode_input`.
    """
    kind = _kind(value)
    present = feature.WhichOneof("kind")
    if present not in (None, kind):
        expected = str(present).removesuffix("_list")
        raise InvalidArgument(
            f"Unexpected element type in feature: {name} expecting type: {expected}"
        )
    if kind == "int64_list" and value >= _INT64:  # type: ignore[operator]
        raise InvalidArgument(f"Feature: {name} has uint64_t element. Only int64_t is supported.")
    getattr(feature, kind).value.append(_ELEMENTS[kind](value))


def _kind(value: Value) -> str:
    if isinstance(value, str | bytes | dict):
        return "bytes_list"
    is_float = isinstance(value, float) or not -_INT64 <= value < _UINT64
    return "float_list" if is_float else "int64_list"


def _bytes(value: Any) -> bytes:
    if isinstance(value, dict):
        from gru_serving.codecs.json_inputs import (
            decode_base64,  # which most callers can do without
        )

        return decode_base64(value)
    encoded: bytes = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return encoded


_ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "bytes_list": _bytes,
    "float_list": float,
    "int64_list": int,
}
