"""Classify and Regress over REST: JSON to tf.Examples, results to JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serving import json_writer
from serving.errors import InvalidArgument
from serving.json_debug import debug_text
from serving.json_inputs import signature_name
from serving.json_long import LongList
from serving.json_parser import parse
from serving.json_tensor import decode_base64, is_base64, type_name
from serving.protos.example_pb2 import Example, Feature
from serving.protos.input_pb2 import Input


def parse_examples(body: bytes | bytearray) -> tuple[Input, str]:
    """Parse a classify or regress request.

    Returns:
        The examples, and the signature name (empty where the request has none).

    Raises:
        InvalidArgument: With TF Serving's text.
    """
    document = parse(body)
    name = signature_name(document)
    value = document.value
    proto = Input()
    context = value.get("context")
    if "context" in value:
        proto.example_list_with_context.context.CopyFrom(_example(context))
    if "examples" not in value:
        raise InvalidArgument(
            f"JSON Value: {debug_text(value)} When method is classify, key 'examples' is expected "
            "and was not found"
        )
    examples = value["examples"]
    if not isinstance(examples, list | LongList):
        raise InvalidArgument(
            f"JSON Value: {debug_text(value)} Expecting 'examples' value to be an list/array"
        )
    if not examples:
        raise InvalidArgument(f"JSON Value: {debug_text(value)} 'examples' value is an empty array")
    listed = (
        proto.example_list_with_context.examples
        if "context" in value
        else proto.example_list.examples
    )
    listed.extend(_example(example) for example in examples)
    return proto, name


def _example(value: Any) -> Example:
    if not isinstance(value, dict):
        raise InvalidArgument(f"Example must be JSON object but got JSON {type_name(value)}")
    example = Example()
    for name, content in value.items():
        try:
            feature = example.features.feature[name]
        except UnicodeEncodeError:
            raise InvalidArgument(f"Feature: {name} has a name that is not UTF-8") from None
        for element in content if isinstance(content, list | LongList) else [content]:
            _add(feature, name, element)
    return example


def _add(feature: Feature, name: str, value: Any) -> None:
    if (
        value is None
        or isinstance(value, list | LongList)
        or (isinstance(value, dict) and not is_base64(value))
    ):
        raise InvalidArgument(
            f"Feature: {name} has element with unexpected JSON type: {type_name(value)}"
        )
    kind = _kind(value)
    present = feature.WhichOneof("kind")
    if present not in (None, kind):
        expected = str(present).removesuffix("_list")
        raise InvalidArgument(
            f"Unexpected element type in feature: {name} expecting type: {expected}"
        )
    if kind == "int64_list" and value >= 1 << 63:
        raise InvalidArgument(f"Feature: {name} has uint64_t element. Only int64_t is supported.")
    element: Any = int(value) if kind == "int64_list" else _element(value)
    getattr(feature, kind).value.append(element)


def _kind(value: Any) -> str:
    if isinstance(value, str | dict):
        return "bytes_list"
    is_float = isinstance(value, float) or not -(1 << 63) <= value < 1 << 64
    return "float_list" if is_float else "int64_list"


def _element(value: Any) -> bytes | float:
    if isinstance(value, dict):
        return decode_base64(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def encode_classifications(rows: Sequence[Sequence[tuple[bytes, float]]]) -> bytes:
    """The answer to a classify request."""
    texts = []
    for row in rows:
        scores = json_writer.decimal_tokens([score for _, score in row], np.dtype(np.float32))
        pairs = (
            f"[{json_writer.quoted(label.decode('utf-8', 'surrogateescape'))}, {score}]"
            for (label, _), score in zip(row, scores, strict=True)
        )
        texts.append(f"[{', '.join(pairs)}]")
    return _results(f"{', '.join(texts)}\n    ")


def encode_regressions(values: np.ndarray) -> bytes:
    """The answer to a regress request."""
    return _results(", ".join(json_writer.decimal_tokens(values.tolist(), np.dtype(np.float32))))


def _results(texts: str) -> bytes:
    text = f'{{\n    "results": [{texts}]\n}}'
    return text.encode("utf-8", "surrogateescape")
