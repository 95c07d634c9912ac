"""JSON as TF Serving reads it: RapidJSON's language, values and error texts.

The release is 1.1.0. It differs from Python's `json` in ways that requests can show: of duplicate
keys the first wins; bytes after the document are ignored; `NaN`, `Inf` and `Infinity` with or
without a minus are numbers; a number is too big by its form, not by its value. Faster readers
handle what they read identically: orjson the plain requests, Python's C scanner most others.
Whatever these refuse, or might read differently, goes to the slow reader, which is RapidJSON's
iterative parser in Python and has its error texts and offsets. Long texts are read in pieces, each
by the fastest suitable reader.

One thing differs: nesting deeper than any request needs (`MAX_DEPTH`) is refused, while RapidJSON
has no limit.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from gru_serving.codecs.rapidjson.reader import (
    DEPTH_MESSAGE,
    MAX_DEPTH,
    PIECE,
    Reader,
    Structure,
    read_fast,
)
from gru_serving.codecs.rapidjson.writer import decimal_tokens, quoted
from gru_serving.errors import InvalidArgument

# Greatest number of names in one object; no request has this many.
MOST_MEMBERS = 1 << 16
_CLOSING = {b"[": b"]", b"{": b"}"}


class _Piece(NamedTuple):
    """Some elements of a list: their position in the text, or a single long element."""

    elements: int
    start: int
    end: int
    array: np.ndarray | None
    value: Any


class LongList(Sequence[Any]):
    """A JSON array that is parsed again, piece by piece, whenever it is iterated.

    As Python objects, a long list of numbers or of short lists takes ten to thirty times the memory
    of its text, and while they are created no other thread can run.

    Args:
        text: The document.
    """

    def __init__(self, text: memoryview) -> None:
        self._text = text
        self._pieces: list[_Piece] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for piece in self._pieces:
            yield from self._values(piece)

    def __getitem__(self, index: Any) -> Any:
        at = range(self._count)[index]
        for piece in self._pieces:
            if at < piece.elements:
                return self._values(piece)[at]
            at -= piece.elements
        raise IndexError(index)

    @property
    def text_bytes(self) -> int:
        """Size of the document in bytes, an upper bound for the number of its elements."""
        return len(self._text)

    def pieces(self) -> Iterator[list[Any] | np.ndarray]:
        """Yield the elements as short lists, or as arrays where they are numbers of one shape.

        Such an array holds integers only if all its numbers are written as integers.
        """
        for piece in self._pieces:
            yield self._values(piece) if piece.array is None else piece.array

    def add(self, start: int, end: int, values: list[Any]) -> None:
        """Append the elements parsed from `start` to `end` of the text."""
        if values:
            array = _packed(bytes(self._text[start:end]), values)
            self._pieces.append(_Piece(len(values), start, end, array, None))
            self._count += len(values)

    def add_long(self, value: Any) -> None:
        """Append an element longer than a piece."""
        self._pieces.append(_Piece(1, 0, 0, None, value))
        self._count += 1

    def _values(self, piece: _Piece) -> list[Any]:
        if piece.end == 0:
            return [piece.value]
        text = b"[" + bytes(self._text[piece.start : piece.end]) + b"]"
        values = read_fast(text, shallow=True)
        found: list[Any] = Reader(text).read() if values is None else values
        return found


def _packed(text: bytes, values: list[Any]) -> np.ndarray | None:
    """Pack the values into an array if they are numbers or equally nested lists of numbers."""
    if any(sign in text for sign in (b'"', b"true", b"false", b"{")):
        return None
    try:
        array = np.array(values)
    except (ValueError, OverflowError):
        return None
    if array.dtype.kind == "i" and array.size:
        widest = min(int(array.min()), -int(array.max()) - 1)
        return array.astype(np.min_scalar_type(widest))
    return array if array.dtype.kind in "iuf" else None


class LongReader(Reader):
    """Reads a long document into dictionaries and `LongList`s.

    Short elements and members are read in groups by the fastest suitable reader; long ones are read
    recursively. So no call into C takes more than a few milliseconds, and errors are found where
    the slow reader would find them.

    Args:
        body: The document. To a bytearray a NUL is appended, so that it need not be copied.
    """

    def __init__(self, body: bytes | bytearray) -> None:
        super().__init__(b"")
        if isinstance(body, bytearray):
            body.append(0)
            self._body = body
        else:
            self._body = body + b"\0"
        self._text = memoryview(self._body)
        self._length = len(self._body) - 1

    def read(self) -> Any:
        """Read the first document of the body."""
        self._begin()
        return self._any(0)

    def _any(self, level: int) -> Any:
        """Read one value inside this many containers."""
        byte = self._body[self._at]
        if byte not in b"[{":
            root: list[Any] = []
            self._value([(root, None)])
            return root[0]
        if level >= MAX_DEPTH:
            raise self._error(DEPTH_MESSAGE)
        self._at += 1
        return self._list(level + 1) if byte == ord("[") else self._members(level + 1)

    def _list(self, level: int) -> LongList | list[Any]:
        found = LongList(self._text)
        while True:
            self._skip()
            start = self._at
            end, closes = self._cut(b"[", level)
            if end is None:
                found.add_long(self._any(level))
                closes = self._closes("]", "Missing a comma or ']' after an array element.")
            else:
                if (len(found) or not closes) and self._is_blank(start, end):
                    raise self._error("Invalid value.", end)
                values = self._piece(b"[", end, closes, level)
                if closes and not len(found):
                    return values  # type: ignore[no-any-return]
                found.add(start, end, values)
            if closes:
                return found

    def _members(self, level: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            self._skip()
            start = self._at
            end, closes = self._cut(b"{", level)
            if end is None:
                if self._body[self._at] != ord('"'):
                    raise self._error("Missing a name for object member.")
                name = self._string()
                self._skip()
                if self._body[self._at] != ord(":"):
                    raise self._error("Missing a colon after a name of object member.")
                self._at += 1
                self._skip()
                value = self._any(level)
                found.setdefault(name, value)
                closes = self._closes("}", "Missing a comma or '}' after an object member.")
            else:
                if (found or not closes) and self._is_blank(start, end):
                    raise self._error("Missing a name for object member.", end)
                for name, value in self._piece(b"{", end, closes, level).items():
                    found.setdefault(name, value)
            if len(found) > MOST_MEMBERS:
                raise InvalidArgument(
                    f"JSON Parse error: An object has more than {MOST_MEMBERS} members."
                )
            if closes:
                return found

    def _closes(self, closing: str, wrong: str) -> bool:
        """Skip what follows a long element; returns whether it ends the container."""
        self._skip()
        byte = self._body[self._at]
        if byte not in (ord(","), ord(closing)):
            raise self._error(wrong)
        self._at += 1
        return byte == ord(closing)

    def _cut(self, opening: bytes, level: int) -> tuple[int | None, bool]:
        """Find the end of the container or of its last complete element.

        None within a long element.
        """
        start = self._at
        window = bytes(self._text[start : min(start + PIECE, self._length)])
        structure = Structure.of(window)
        close = structure.close()
        end = structure.last_comma() if close is None else close
        deep = structure.deeper_than(MAX_DEPTH - level, end)
        if deep is not None:
            # An error before that position takes precedence.
            Reader(opening + window[: deep + 1], start - 1, level - 1).read()
        if end is None and start + len(window) >= self._length:
            return self._length, True
        return (None if end is None else start + end), close is not None

    def _piece(self, opening: bytes, end: int, closes: bool, level: int) -> Any:
        """Parse the bytes from here to `end` as a container of their own."""
        start, self._at = self._at, end + 1
        closing = bytes(self._text[end : end + 1]) if closes else _CLOSING[opening]
        text = opening + bytes(self._text[start:end]) + closing
        value = read_fast(text, shallow=True)
        return Reader(text, start - 1, level - 1).read() if value is None else value

    def _is_blank(self, start: int, end: int) -> bool:
        return not bytes(self._text[start:end]).strip()


_MAX_FLOAT = 3.4028234e38


def debug_text(value: Any, limit: int = 256) -> str:
    """Write a JSON value as in error texts: indented by four spaces, at most `limit` bytes.

    A number on its own has the digits of a float if a float can hold it. The text ends before NaN
    or infinity, which RapidJSON's writer refuses.
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
    """Yield the pieces of an indented JSON text, so that a long one can be cut off early."""
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
    """Format a number with the shortest digits, as RapidJSON does.

    It has an exponent only below 1e-6 and from 1e21 on.
    """
    text = json.dumps(value)
    if not 1e-6 <= abs(value) < 1e21:
        return text.replace("e-0", "e-").replace("e+", "e")
    if "e" not in text:
        return text
    plain = f"{Decimal(text):f}"
    return plain if "." in plain else plain + ".0"


# Length of text beyond which a document is read in pieces.
_PIECEWISE_BYTES = 1 << 20


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
        InvalidArgument: The body is no JSON, or no object; the message is TF Serving's.
    """
    if not body:
        raise InvalidArgument("JSON Parse error: The document is empty")
    if len(body) > _PIECEWISE_BYTES:
        value = LongReader(body).read()
    else:
        body = body if isinstance(body, bytes) else bytes(body)
        value = read_fast(body)
        if value is None:
            value = Reader(body).read()
    if not isinstance(value, dict):
        raise InvalidArgument(f"JSON Value: {debug_text(value)} Is not object")
    return Document(value, b"true" in body or b"false" in body)
