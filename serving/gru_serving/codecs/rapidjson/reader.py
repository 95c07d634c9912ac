"""RapidJSON's iterative parser in Python: the slow reader with its error texts and offsets."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import orjson

from gru_serving.errors import InvalidArgument

_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


class Structure(NamedTuple):
    """The structure of a text that begins outside of strings.

    Attributes:
        depth: Containers opened in the text and not closed, after each of its bytes.
        outside: Whether a byte lies outside of strings.
        codes: The bytes themselves.
    """

    depth: np.ndarray
    outside: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, text: bytes) -> Structure:
        """Analyse a text, which may end within an escape or a string."""
        if b"\\" in text:  # quotes that end no string
            text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        codes = np.frombuffer(text, np.uint8)
        steps = _STEPS.take(codes)
        if b'"' in text:
            # A position inside of a string has an odd number of quotes before it; this is faster
            # than a cumulative exclusive or.
            inside = (np.cumsum(codes == ord('"'), dtype=np.uint8) & 1).view(bool)
            steps[inside] = 0
            outside = ~inside
        else:
            outside = np.ones(len(codes), bool)
        return cls(np.cumsum(steps, dtype=np.int32), outside, codes)

    def close(self) -> int | None:
        """Find where the container around the text is closed; None if it stays open."""
        below = self.depth < 0
        at = int(below.argmax()) if len(below) else 0
        return at if len(below) and below[at] else None

    def last_comma(self) -> int | None:
        """Find the last comma between two elements of the container around the text."""
        commas = np.flatnonzero((self.codes == ord(",")) & (self.depth == 0) & self.outside)
        return int(commas[-1]) if len(commas) else None

    def deeper_than(self, most: int, end: int | None = None) -> int | None:
        """Find the first position before `end` at which more than `most` containers are open."""
        deep = self.depth[:end] > most
        at = int(deep.argmax()) if len(deep) else 0
        return at if len(deep) and deep[at] else None


# A tensor has at most 254 dimensions. Around it stand the object of the request and the list of
# rows or the object of inputs; inside of it there may be objects of base64.
MAX_DEPTH = 1 + 1 + 254 + 1
DEPTH_MESSAGE = f"Nesting is deeper than {MAX_DEPTH}."
# Calls into C that read more than this at once would block all other threads.
PIECE = 1 << 19
_WHITESPACE = b" \t\n\r"
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?([eE][+-]?[0-9]+)?")
_CONSTANT = re.compile(rb"(-?)(?:(NaN)|Inf(inity)?)")
# Bounded, as each repetition takes memory.
_STRING = re.compile(
    rb'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|'
    rb"(?![dD][89abAB])[0-9a-fA-F]{2})[0-9a-fA-F]{2})){0,4096}"
)
_HEX = re.compile(rb"[0-9a-fA-F]{4}")
_ESCAPE = re.compile(rb"(\\u[dD][89abAB]..\\u....|\\u....|\\.)")
_BLANKS = re.compile(rb"[ \t\n\r]*")
_MOST_DIGITS = 308
_MAX_EXPONENT = 308
_SIGNIFICANT_DIGITS = 17
_TENTH_OF_DOUBLE = 1.7976931348623157e307
_LITERALS = {ord("n"): (b"null", None), ord("t"): (b"true", True), ord("f"): (b"false", False)}


class Reader:
    """RapidJSON's iterative parser over bytes, with its error texts and offsets.

    Args:
        body: The document; a byte order mark in front is skipped.
        base: Offset of the body's first byte, where it is a piece of a longer one.
        level: Number of containers around the piece.
    """

    def __init__(self, body: bytes | bytearray, base: int = 0, level: int = 0) -> None:
        # As with RapidJSON's stream, the end reads as NUL, so every position that is looked at
        # exists.
        self._body = body + b"\0"
        self._at = 0
        self._base = base
        self._most = MAX_DEPTH - level

    def read(self) -> Any:
        """Read the first document of the body."""
        self._begin()
        root: list[Any] = []
        # Open containers with the key of the next value (None in arrays).
        stack: list[tuple[Any, str | None]] = [(root, None)]
        self._value(stack)
        while len(stack) > 1:
            container, _ = stack[-1]
            if isinstance(container, list):
                self._array(container, stack)
            else:
                self._object(container, stack)
        return root[0]

    def _begin(self) -> None:
        if self._body.startswith(b"\xef\xbb\xbf"):
            self._at = 3
        self._skip()
        if self._end() or self._body[self._at] in b",:]}":
            raise self._error("The document is empty.")

    def _array(self, container: list[Any], stack: list[tuple[Any, str | None]]) -> None:
        """Continue inside an array: read one element, or its end."""
        self._skip()
        byte = self._body[self._at]
        if byte == ord("]") and not self._end():
            self._at += 1
            stack.pop()
            return
        if container:
            if byte != ord(","):
                raise self._error("Missing a comma or ']' after an array element.")
            self._at += 1
            self._skip()
        self._value(stack)

    def _object(self, container: dict[str, Any], stack: list[tuple[Any, str | None]]) -> None:
        """Continue inside an object: read one member, or its end."""
        self._skip()
        byte = self._body[self._at]
        if byte == ord("}"):
            self._at += 1
            stack.pop()
            return
        if container:
            if byte != ord(","):
                raise self._error("Missing a comma or '}' after an object member.")
            self._at += 1
            self._skip()
        if self._body[self._at] != ord('"'):
            raise self._error("Missing a name for object member.")
        key = self._string()
        self._skip()
        if self._body[self._at] != ord(":"):
            raise self._error("Missing a colon after a name of object member.")
        self._at += 1
        self._skip()
        stack[-1] = (container, key)
        self._value(stack)

    def _value(self, stack: list[tuple[Any, str | None]]) -> None:
        byte = self._body[self._at]
        value: Any
        if byte in b"[{":
            if len(stack) > self._most:
                raise self._error(DEPTH_MESSAGE)
            self._at += 1
            value = [] if byte == ord("[") else {}
        elif byte == ord('"'):
            value = self._string()
        elif byte in _LITERALS:
            value = self._literal(*_LITERALS[byte])
        else:
            value = self._number()
        container, key = stack[-1]
        if key is None:
            container.append(value)
        else:
            container.setdefault(key, value)
        if byte in b"[{":
            stack.append((value, None))

    def _literal(self, text: bytes, value: Any) -> Any:
        for expected in text:
            if self._body[self._at] != expected:
                raise self._error("Invalid value.")
            self._at += 1
        return value

    def _number(self) -> int | float:
        start = self._at
        match = _NUMBER.match(self._body, start)
        if match is None:
            return self._constant()
        self._at = match.end()
        following = self._body[self._at]
        _, fraction, exponent = match.groups()
        if following == ord(".") and fraction is None and exponent is None:
            raise self._error("Miss fraction part in number.", self._at + 1)
        if following in b"eE" and exponent is None:
            signed = self._body[self._at + 1] in b"+-"
            raise self._error("Miss exponent in number.", self._at + 1 + signed)
        if fraction is None and exponent is None and self._at - start <= 20:
            integer = int(match.group())
            if integer < 1 << 64 and integer >= -(1 << 63):
                return integer
        if _is_too_big(match):
            raise self._error("Number too big to be stored in double.", start)
        return float(match.group())

    def _constant(self) -> float:
        start = self._at
        match = _CONSTANT.match(self._body, start)
        if match is None or (not match.group(3) and self._body[match.end()] == ord("i")):
            wrong = start + (self._body[start] == ord("-"))
            text = b"NaN" if self._body[wrong] == ord("N") else b"Infinity"
            for expected in text:
                if self._body[wrong] != expected:
                    break
                wrong += 1
            raise self._error("Invalid value.", wrong)
        self._at = match.end()
        if match.group(2):
            return float("nan")
        return float("-inf") if match.group(1) else float("inf")

    def _string(self) -> str:
        self._at += 1
        parts = []
        while True:
            match = _STRING.match(self._body, self._at, self._at + PIECE)
            assert match is not None
            if match.end() == self._at:
                break
            pieces = _ESCAPE.split(match.group())
            pieces[1::2] = map(_unescaped, pieces[1::2])
            parts.append(b"".join(pieces))
            self._at = match.end()
        byte = self._body[self._at]
        if byte == ord("\\"):
            raise self._wrong_escape()
        if byte == 0:
            raise self._error("Missing a closing quotation mark in string.")
        if byte < 0x20:
            raise self._error("Invalid escape character in string.")
        self._at += 1
        return b"".join(parts).decode("utf-8", "surrogateescape")

    def _wrong_escape(self) -> InvalidArgument:
        if self._body[self._at + 1] != ord("u"):
            return self._error("Invalid escape character in string.")
        pair = self._body[self._at : self._at + 12]
        if not _HEX.match(pair, 2) or (pair[6:8] == b"\\u" and not _HEX.match(pair, 8)):
            return self._error("Incorrect hex digit after \\u escape in string.")
        return self._error("The surrogate pair in string is invalid.")

    def _skip(self) -> None:
        while self._body[self._at] in _WHITESPACE:
            blanks = _BLANKS.match(self._body, self._at, self._at + PIECE)
            assert blanks is not None
            self._at = blanks.end()

    def _end(self) -> bool:
        return self._body[self._at] == 0

    def _error(self, text: str, offset: int | None = None) -> InvalidArgument:
        where = self._at if offset is None else offset
        return InvalidArgument(f"JSON Parse error: {text} at offset: {self._base + where}")


@lru_cache(1 << 16)
def _unescaped(escape: bytes) -> bytes:
    # A lone low surrogate passes, as three bytes that are not UTF-8.
    text: str = json.loads(f'"{escape.decode()}"')
    return text.encode("utf-8", "surrogatepass")


def _is_too_big(number: re.Match[bytes]) -> bool:
    """Tell whether RapidJSON refuses a number by its form: `0e309` is refused, `1.8e308` is not.

    RapidJSON refuses another digit of the integer part from DBL_MAX / 10 on, and exponents of more
    than 308 plus the digits of the fraction that it keeps, which are those until the number has
    more than 53 bits and 17 significant digits.
    """
    whole, fraction, exponent = number.groups()
    if len(whole) > _MOST_DIGITS and float(whole[:-1]) >= _TENTH_OF_DOUBLE:
        return True
    if exponent is None or exponent[1:2] == b"-":
        return False
    digits = exponent[1:].lstrip(b"+0")
    # Python does not parse integers of thousands of digits.
    if len(digits) > _MOST_DIGITS:
        return True
    return int(digits or b"0") > _MAX_EXPONENT + _kept_digits(whole, fraction or b"")


def _kept_digits(whole: bytes, fraction: bytes) -> int:
    value = int(whole)
    significant = len(whole) - 1
    for count, digit in enumerate(fraction):
        if value >> 53 and significant >= _SIGNIFICANT_DIGITS:
            return count
        value = value * 10 + digit - ord("0")
        significant += value > 0
    return len(fraction)


# What the faster readers read differently: half a surrogate pair, and exponents that may exceed a
# double. A false alarm only costs the slow reader. Patterns that start with a literal are searched
# for at memory speed.
_SUSPECTS = (
    re.compile(rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F])"),
    re.compile(rb"e\+?[0-9]{3}"),
    re.compile(rb"E\+?[0-9]{3}"),
)
# Possibly an integer beyond 64 bits, which RapidJSON reads as a float, or a number beyond a double.
_LONG_NUMBER = b"0" * 19
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)


def read_fast(body: bytes, shallow: bool = False) -> Any:
    """Read the object or array at the beginning of a text.

    None where only the slow reader can tell.

    Args:
        body: The text.
        shallow: Whether it is known not to be nested too deep.
    """
    for suspect in _SUSPECTS:
        if suspect.search(body):
            return None
    many = not shallow and body.count(b"[") + body.count(b"{") > MAX_DEPTH
    if many and Structure.of(body).deeper_than(MAX_DEPTH) is not None:
        return None
    long = _LONG_NUMBER in body.translate(_DIGITS_ALIKE)  # ten times as fast as a pattern
    if not long:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            value = None
        # As many colons as keys of the outermost object mean that no key appears twice on any
        # level.
        if isinstance(value, dict | list) and body.count(b":") == (
            len(value) if isinstance(value, dict) else 0
        ):
            return value
    try:
        text = body.decode("utf-8", "surrogateescape").lstrip(" \t\n\r")
        value, _ = (_STRICT_DECODER if long else _DECODER).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


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
_STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=_first_wins, parse_int=_integer, parse_float=_double
)
