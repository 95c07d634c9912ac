"""Serialized protocol buffers, field by field and number by number, without making a message."""

from collections.abc import Iterator

import numpy as np

_MOST_BYTES = 10


def write_varint(value: int) -> bytes:
    """Encode a non-negative number as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(content: bytes, position: int) -> tuple[int, int]:
    """Read a number; returns it and the position after it.

    Raises:
        IndexError: The content ends first.
        ValueError: No number of 64 bits is that long.
    """
    value = 0
    for shift in range(0, 7 * _MOST_BYTES, 7):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"a varint of more than {_MOST_BYTES} bytes")


VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_MOST_TAG = (1 << 32) - 1
_LONGEST_VARINT = 10
# Varints are read in parts of this many bytes, which lets other threads run and keeps intermediate
# arrays small.
_PART = 1 << 18

Field = tuple[int, int, int, int, int]
"""Number, wire type, start of the tag, start and end of the payload."""


def fields(raw: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of a message that stands from `start` to `end`.

    Raises:
        ValueError: The bytes are no message, or hold a group, which no message of ours has.
    """
    at = start
    while at < end:
        start = at
        try:
            tag, at = (raw[at], at + 1) if raw[at] < 0x80 else read_varint(raw, at)
            kind, payload = tag & 7, at
            if kind == LENGTH:
                size, at = (raw[at], at + 1) if raw[at] < 0x80 else read_varint(raw, at)
                payload = at
                at += size
            elif kind == VARINT:
                _, at = read_varint(raw, at)
            elif kind in _FIXED_SIZES:
                at += _FIXED_SIZES[kind]
            else:
                raise ValueError(f"a field of wire type {kind}")
        except IndexError:
            raise ValueError("a message that ends within a field") from None
        if at > end or not 7 < tag <= _MOST_TAG:
            raise ValueError("a field without a number, or one that ends after its message")
        yield tag >> 3, kind, start, payload, at


def count_varints(content: np.ndarray) -> int:
    """Count the varints in these bytes (uint8).

    Raises:
        ValueError: A varint has more than ten bytes, or the last one does not end.
    """
    count, last = 0, -1
    for at in range(0, len(content), _PART):
        ends = np.flatnonzero(content[at : at + _PART] < 0x80) + at
        if len(ends):
            longest = max(int(ends[0]) - last, int(np.diff(ends).max(initial=0)))
            if longest > _LONGEST_VARINT:
                raise ValueError(f"a varint of more than {_LONGEST_VARINT} bytes")
            count, last = count + len(ends), int(ends[-1])
    if last != len(content) - 1:
        raise ValueError("a varint without an end")
    return count


def unpack_varints(content: np.ndarray, out: np.ndarray) -> None:
    """Read consecutive varints, as in a packed field.

    Args:
        content: Bytes of the varints, uint8, checked by `count_varints`.
        out: Array as long as there are varints, of a type of integers or bool; numbers that are too
            large for it lose their upper bits, as in protocol buffers.
    """
    at = filled = 0
    while at < len(content):
        part = content[at : at + _PART]
        ends = np.flatnonzero(part < 0x80)
        part = part[: int(ends[-1]) + 1]
        values = part if len(ends) == len(part) else _read(part, ends)
        numbers = out[filled : filled + len(ends)]
        numbers[:] = values != 0 if out.dtype == np.bool_ else values.astype(out.dtype)
        at += len(part)
        filled += len(ends)


def _read(part: np.ndarray, ends: np.ndarray) -> np.ndarray:
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    values = (part[starts] & 0x7F).astype(np.uint64)
    for i in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > i)
        bits = (part[starts[longer] + i] & 0x7F).astype(np.uint64)
        values[longer] |= bits << np.uint64(7 * i)
    return values
