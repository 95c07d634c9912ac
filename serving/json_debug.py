"""JSON values as TF Serving's error texts show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from serving.json_writer import decimal_tokens


def debug_text(value: Any, limit: int = 256) -> str:
    """A JSON value as in error texts: indented by four, at most `limit` bytes."""
    if isinstance(value, float):
        return decimal_tokens([value], np.dtype(np.float64))[0]
    pieces: list[str] = []
    size = 0
    for piece in _pretty(value, ""):
        pieces.append(piece)
        size += len(piece)
        if size >= limit:
            break
    text = "".join(pieces).encode("utf-8", "surrogateescape")[:limit]
    return text.decode("utf-8", "ignore")


def _pretty(value: Any, indent: str) -> Iterator[str]:
    """Yield the pieces of an indented JSON text, so that a long one need not be finished."""
    if not isinstance(value, list | dict):
        yield (
            _number_text(value)
            if isinstance(value, float)
            else json.dumps(value, ensure_ascii=False)
        )
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = indent + "    "
    yield opening
    for i, item in enumerate(value):
        yield f",\n{inner}" if i else f"\n{inner}"
        if isinstance(value, dict):
            yield json.dumps(item, ensure_ascii=False) + ": "
            yield from _pretty(value[item], inner)
        else:
            yield from _pretty(item, inner)
    yield f"\n{indent}{closing}" if value else closing


def _number_text(value: float) -> str:
    """Shortest digits, written as RapidJSON does: 1e21 for Python's 1e+21, 1e-7 for 1e-07."""
    text = json.dumps(value)
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    if 16 <= int(exponent) <= 20:
        return f"{int(value)}.0"
    return f"{digits}e{int(exponent)}"
