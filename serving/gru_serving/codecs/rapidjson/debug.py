"""JSON values as TF Serving's error texts show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from gru_serving.codecs.rapidjson.long import LongList
from gru_serving.codecs.rapidjson.writer import decimal_tokens, quoted

_MAX_FLOAT = 3.4028234e38


def debug_text(value: Any, limit: int = 256) -> str:
    """A JSON value as in error texts: indented by four, at most `limit` bytes.

    A number on its own has the digits of a float if that can hold it. A text ends before NaN or
    infinity inside of it, which RapidJSON's writer refuses.
    """
    if isinstance(value, float):
        dtype = np.dtype(np.float32 if abs(value) <= _MAX_FLOAT else np.float64)
        return decimal_tokens([float(dtype.type(value))], dtype)[0]
    pieces: list[str] = []
    size = 0
    for piece in _pretty(value, "", limit):
        if piece in ("NaN", "Infinity", "-Infinity"):
            break
        pieces.append(piece)
        size += len(piece)
        if size >= limit:
            break
    text = "".join(pieces).encode("utf-8", "surrogateescape")[:limit]
    return text.decode("utf-8", "ignore")


def _pretty(value: Any, indent: str, limit: int) -> Iterator[str]:
    """Yield the pieces of an indented JSON text, so that a long one need not be finished."""
    if not isinstance(value, list | dict | LongList):
        if isinstance(value, float):
            yield _number_text(value)
        else:
            yield quoted(value[:limit]) if isinstance(value, str) else json.dumps(value)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = indent + "    "
    yield opening
    for i, item in enumerate(value):
        yield f",\n{inner}" if i else f"\n{inner}"
        if isinstance(value, dict):
            yield quoted(item[:limit]) + ": "
            yield from _pretty(value[item], inner, limit)
        else:
            yield from _pretty(item, inner, limit)
    yield f"\n{indent}{closing}" if value else closing


def _number_text(value: float) -> str:
    """Shortest digits, as RapidJSON writes them: an exponent only below 1e-6 and from 1e21 on."""
    text = json.dumps(value)
    if not 1e-6 <= abs(value) < 1e21:
        return text.replace("e-0", "e-").replace("e+", "e")
    if "e" not in text:
        return text
    plain = f"{Decimal(text):f}"
    return plain if "." in plain else plain + ".0"
