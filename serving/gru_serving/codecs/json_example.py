"""Classify and Regress over REST, both directions: JSON to tf.Examples, results to JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gru_serving.codecs.example import Value, Values, add_features
from gru_serving.codecs.json_inputs import is_base64, signature_name, type_name
from gru_serving.codecs.json_predict import string_json
from gru_serving.codecs.rapidjson import writer as json_writer
from gru_serving.codecs.rapidjson.parser import LongList, debug_text, parse
from gru_serving.errors import InvalidArgument
from gru_serving.protos.example_pb2 import Example
from gru_serving.protos.input_pb2 import Input


def parse_examples(body: bytes | bytearray) -> tuple[Input, str]:
    """Parse a classify or regress request.

    Returns:
        The examples, and the signature name (empty where the request has none).

    Raises:
        InvalidArgument: The request is malformed; the message is TF Serving's.
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
    add_features(
        example,
        {
            name: _values(name, content if isinstance(content, list | LongList) else [content])
            for name, content in value.items()
        },
    )
    return example


def _values(name: str, content: Iterable[Any]) -> Iterator[Value]:
    """Values are checked one by one, since the error is about the first wrong one."""
    for value in content:
        if isinstance(value, list | LongList | dict | None) and not is_base64(value):
            raise InvalidArgument(
                f"Feature: {name} has element with unexpected JSON type: {type_name(value)}"
            )
        yield value


def encode_classifications(rows: Sequence[Sequence[tuple[bytes, float]]]) -> bytes:
    """Encode the answer to a classify request."""
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
    """Encode the answer to a regress request."""
    return _results(", ".join(json_writer.decimal_tokens(values.tolist(), np.dtype(np.float32))))


def _results(texts: str) -> bytes:
    text = f'{{\n    "results": [{texts}]\n}}'
    return text.encode("utf-8", "surrogateescape")


def encode_examples(examples: Sequence[Values], name: str = "") -> bytes:
    """Encode a classify or regress request.

    Args:
        examples: Values of the examples, from `gru_serving.codecs.example.example_values`.
        name: Signature name; empty for the default one.
    """
    rows = [
        {
            alias: [string_json(one) if isinstance(one, bytes) else one for one in content]
            for alias, content in values.items()
        }
        for values in examples
    ]
    value: dict[str, Any] = {"examples": rows}
    if name:
        value["signature_name"] = name
    return json.dumps(value).encode()
