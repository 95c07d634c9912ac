"""NumPy arrays as JSON text with TF Serving's digits and layout."""

import array as packed
import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import orjson

from gru_serving.codecs.dtypes import by_numpy
from gru_serving.errors import InvalidArgument

INDENT = "    "
_BLOCK = 1 << 16
# Number of elements that one call of C's formatter joins; layouts up to this size are cached.
_LAYOUT = 1 << 12
# The first alternative keeps an escaped backslash from being read as the beginning of the second.
_ESCAPE = re.compile(r"\\(?:\\|u[0-9a-f]{4})")


def decimal_tokens(values: Sequence[float], dtype: np.dtype) -> list[str]:
    """Format numbers as decimals that read back as the same values of type `dtype`.

    Six significant digits are used where they suffice, otherwise as many as the type may need (9
    for float32, 17 for float64); a `.` or an exponent always marks a decimal.

    Args:
        values: Python floats, holding values of `dtype`.
        dtype: float32 or float64.
    """
    # One call of C's formatter or parser for all values is much faster than one per value.
    short = "%g," * len(values) % tuple(values)
    tokens = short.split(",")[:-1]
    single = dtype == np.float32
    try:
        numbers = orjson.loads(f"[{short[:-1]}]")
    except orjson.JSONDecodeError:  # infinite, or no number
        numbers = map(float, tokens)
    read_back = packed.array("f" if single else "d", numbers).tolist()
    wrong = [i for i, value in enumerate(values) if read_back[i] != value]
    if wrong:
        digits = "%.9g " if single else "%.17g "
        long = digits * len(wrong) % tuple([values[i] for i in wrong])
        for i, token in zip(wrong, long.split(), strict=True):
            tokens[i] = token
    for i, token in enumerate(tokens):
        if "." not in token and "e" not in token:
            tokens[i] = _SPECIAL.get(token) or token + ".0"
    return tokens


_QUOTED = json.JSONEncoder(ensure_ascii=False).encode
_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def tokens(name: str, array: np.ndarray) -> list[str]:
    """Format all elements as JSON texts, row by row.

    Args:
        name: Name of the output; one that ends in `_bytes` has its strings written in base64.
        array: Array of any shape.

    Raises:
        InvalidArgument: JSON has no form for elements of this type, and there are some.
    """
    flat = array.ravel().tolist()
    kind = array.dtype.kind
    if array.dtype in (np.float32, np.float64):
        # Blocks are formatted one by one, since no other thread can run during a call of C's
        # formatter.
        texts: list[str] = []
        for start in range(0, len(flat), _BLOCK):
            texts += decimal_tokens(flat[start : start + _BLOCK], array.dtype)
        return texts
    if array.dtype == np.bool_:
        return ["true" if value else "false" for value in flat]
    if kind in "OSUT":
        return [_string_token(value, name.endswith("_bytes")) for value in flat]
    if kind in "iu" and array.dtype != np.uint16:
        return [str(value) for value in flat]
    if not flat:
        return []
    raise InvalidArgument(
        f"Failed to write JSON value for tensor type: {by_numpy(array.dtype).name}"
    )


def _string_token(value: bytes | str, as_bytes: bool) -> str:
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if as_bytes:
        return json.dumps({"b64": base64.b64encode(raw).decode("ascii")})
    return quoted(raw.decode("utf-8", "surrogateescape"))


def quoted(text: str) -> str:
    """Quote a JSON string, with RapidJSON's capitals in the escapes of control characters."""
    token = _QUOTED(text)
    if "\\u" not in token:
        return token
    return _ESCAPE.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), token)


def rows(outputs: Mapping[str, np.ndarray]) -> bytes:
    """Write the answer to a request in row format, `{"predictions": [...]}`.

    Args:
        outputs: Arrays that share their first dimension.

    Raises:
        InvalidArgument: An output has no batch dimension, batches differ in size, or a type has no
            JSON form; the message is TF Serving's.
    """
    batch = -1
    for name in sorted(outputs):
        shape = outputs[name].shape
        if not shape:
            raise InvalidArgument(f"Tensor name: {name} has no shape information ")
        if batch not in (-1, shape[0]):
            raise InvalidArgument(
                f"Tensor name: {name} has inconsistent batch size: {shape[0]} expecting: {batch}"
            )
        batch = shape[0]
    columns = {}
    for name in sorted(outputs):
        array = outputs[name]
        columns[name] = _nested(tokens(name, array), array.shape, 1)
    if len(columns) == 1:
        (items,) = columns.values()
        listed = ", ".join(items)
    else:
        deep = 3 * INDENT
        keys = [f"\n{deep}{quoted(name)}: " for name in columns]
        listed = ",".join(
            f"\n{2 * INDENT}{{"
            + ",".join(key + value for key, value in zip(keys, row, strict=True))
            + f"\n{2 * INDENT}}}"
            for row in zip(*columns.values(), strict=True)
        )
    closing = f"\n{INDENT}" if batch else ""
    text = f'{{\n{INDENT}"predictions": [{listed}{closing}]\n}}'
    return text.encode("utf-8", "surrogateescape")


def columns(outputs: Mapping[str, np.ndarray]) -> bytes:
    """Write the answer to a request in column format, `{"outputs": ...}`.

    Raises:
        InvalidArgument: A type without a JSON form.
    """
    one = len(outputs) == 1
    texts = []
    for name in sorted(outputs):
        array = outputs[name]
        (text,) = _nested(tokens(name, array), array.shape, 0, depth=1 if one else 2)
        texts.append(text if one else f"\n{2 * INDENT}{quoted(name)}: {text}")
    body = texts[0] if one else "{" + ",".join(texts) + f"\n{INDENT}}}"
    return f'{{\n{INDENT}"outputs": {body}\n}}'.encode("utf-8", "surrogateescape")


def compact(name: str, array: np.ndarray) -> str:
    """Write an array on one line."""
    (text,) = _nested(tokens(name, array), array.shape, 0)
    return text


def _nested(
    items: list[str], shape: tuple[int, ...], keep: int, depth: int | None = None
) -> list[str]:
    """Join elements into nested lists.

    Args:
        items: Texts of the elements, row by row.
        shape: Shape of the array.
        keep: Number of leading axes to leave unjoined.
        depth: Indents in front of the lists, whose elements have a line each; None for one line.

    Returns:
        One text per index of the remaining axes.
    """
    end = len(shape)
    while end > keep:
        start = end - 1
        while start > keep and math.prod(shape[start - 1 : end]) <= _LAYOUT:
            start -= 1
        size, groups = math.prod(shape[start:end]), math.prod(shape[:start])
        make = _layout if size <= _LAYOUT else _layout.__wrapped__
        layout = make(shape[start:end], None if depth is None else depth + start)
        items = [layout % tuple(items[i * size : (i + 1) * size]) for i in range(groups)]
        end = start
    return items


@lru_cache(128)
def _layout(shape: tuple[int, ...], depth: int | None) -> str:
    """Build the nested lists of an array with `%s` for each element; for `depth` see `_nested`."""
    text = "%s"
    between, before, after = ", ", "", ""
    for axis in range(len(shape) - 1, -1, -1):
        if depth is not None:
            after = "\n" + INDENT * (depth + axis)
            before = after + INDENT
            between = "," + before
        text = f"[{before}{between.join([text] * shape[axis])}{after}]" if shape[axis] else "[]"
    return text


def error(message: str) -> bytes:
    """Write the body of an error answer."""
    return f'{{\n{INDENT}"error": {quoted(message)}\n}}'.encode("utf-8", "surrogateescape")
