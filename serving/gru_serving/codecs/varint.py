"""Protocol buffers' integers of a varying number of bytes."""

from __future__ import annotations

_MOST_BYTES = 10


def write_varint(value: int) -> bytes:
    """The bytes of a number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(content: bytes, position: int) -> tuple[int, int]:
    """A number, and where it ends.

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
