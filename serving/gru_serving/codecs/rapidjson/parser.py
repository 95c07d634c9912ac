"""JSON as TF Serving reads it: RapidJSON's language, values and error texts.

The release is 1.1.0. It differs from Python's `json` in ways that requests can show: of duplicate
keys the first wins; bytes after the document are ignored; `NaN`, `Inf` and `Infinity` with or
without a minus are numbers; a number is too big by its form, not by its value. Faster readers read
what they read alike: orjson the plain requests, Python's C scanner most others; whatever it
refuses, and whatever it might read otherwise, goes to the slow reader, which is RapidJSON's
iterative parser in Python and knows the error texts and offsets. Long texts are read in pieces,
each by the fastest that can.

One thing differs: nesting that no request needs (`MAX_DEPTH`) is refused, where RapidJSON's has no
limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gru_serving.codecs.rapidjson.debug import debug_text
from gru_serving.codecs.rapidjson.fast import read_fast
from gru_serving.codecs.rapidjson.long import LongReader
from gru_serving.codecs.rapidjson.reader import Reader
from gru_serving.errors import InvalidArgument

# Texts beyond this are read in pieces.
_LONG = 1 << 20


@dataclass(frozen=True)
class Document:
    """A parsed request body.

    Attributes:
        value: Strings are str; bytes that are not UTF-8 survive as surrogate escapes.
        has_booleans: Whether `true` or `false` may occur in it. NumPy takes them for numbers, so
            only without them can lists of numbers be converted in one go.
    """

    value: dict[str, Any]
    has_booleans: bool


def parse(body: bytes | bytearray) -> Document:
    """Parse a request body.

    Args:
        body: A bytearray is taken over: what is returned may lean on it.

    Raises:
        InvalidArgument: It is no JSON, or no object; with TF Serving's text.
    """
    if not body:
        raise InvalidArgument("JSON Parse error: The document is empty")
    if len(body) > _LONG:
        value = LongReader(body).read()
    else:
        body = body if isinstance(body, bytes) else bytes(body)
        value = read_fast(body)
        if value is None:
            value = Reader(body).read()
    if not isinstance(value, dict):
        raise InvalidArgument(f"JSON Value: {debug_text(value)} Is not object")
    return Document(value, b"true" in body or b"false" in body)
