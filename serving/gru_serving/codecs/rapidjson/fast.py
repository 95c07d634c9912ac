"""The readers written in C, for texts that they read as RapidJSON does."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from gru_serving.codecs.rapidjson.structure import is_deep

# What the faster readers take otherwise: half a surrogate pair, and exponents that may be beyond
# double. A false alarm only costs the slow reader. Patterns that start with a literal are searched
# for at memory speed.
_SUSPECTS = (
    re.compile(rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F])"),
    re.compile(rb"e\+?[0-9]{3}"),
    re.compile(rb"E\+?[0-9]{3}"),
)
# May be an integer beyond 64 bits, which is a float to RapidJSON, or a number beyond double.
_LONG_NUMBER = b"0" * 19
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)


def read_fast(body: bytes, shallow: bool = False) -> Any:
    """The object or array that a text begins with; None where only the slow reader can tell.

    Args:
        body: The text.
        shallow: Whether it is known not to be nested too deep.
    """
    if any(suspect.search(body) for suspect in _SUSPECTS):
        return None
    if not shallow and is_deep(body):
        return None
    long = _LONG_NUMBER in body.translate(_DIGITS_ALIKE)  # ten times as fast as a pattern
    value = None if long else _fastest(body)
    if value is not None:
        return value
    try:
        text = body.decode("utf-8", "surrogateescape").lstrip(" \t\n\r")
        value, _ = (_CAREFUL_DECODER if long else _DECODER).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _fastest(body: bytes) -> Any:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    # One colon per key of the outermost object: so no key is there twice, on no level.
    if isinstance(value, dict):
        return value if body.count(b":") == len(value) else None
    return value if isinstance(value, list) and b":" not in body else None


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        for key, first in reversed(pairs):
            value[key] = first
    return value


def _integer(text: str) -> int | float:
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 64 else _double(text)


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("beyond double")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_first_wins)
_CAREFUL_DECODER = json.JSONDecoder(
    object_pairs_hook=_first_wins, parse_int=_integer, parse_float=_double
)
