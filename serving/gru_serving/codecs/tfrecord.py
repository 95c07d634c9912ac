"""TFRecord files: each record follows its length, and both have a checksum."""

import struct
from collections.abc import Iterator
from pathlib import Path

import google_crc32c

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
HEADER = _LENGTH.size + _CHECKSUM.size
FOOTER = _CHECKSUM.size


class CorruptRecordError(Exception):
    """A file that is not a TFRecord file, or that was cut or altered; the text is TensorFlow's."""


def framed(record: bytes) -> bytes:
    """Frame a record as it stands in a file."""
    length = _LENGTH.pack(len(record))
    return b"".join((length, _masked(length), record, _masked(record)))


def read_records(path: Path) -> Iterator[bytes]:
    """Yield the records of a file.

    Raises:
        CorruptRecordError: A record is not as it was written; raised when it is reached.
        OSError: The file cannot be read.
    """
    offset = 0
    with path.open("rb") as file:
        # TensorFlow treats half a header at the end of a file as its end.
        while len(header := file.read(HEADER)) == HEADER:
            if _masked(header[: _LENGTH.size]) != header[_LENGTH.size :]:
                hint = "" if offset else " (Is this even a TFRecord file?)"
                raise CorruptRecordError(f"corrupted record at {offset}{hint}")
            (length,) = _LENGTH.unpack_from(header)
            body = file.read(length + FOOTER)
            if len(body) < length + FOOTER:
                raise CorruptRecordError(
                    f"truncated record at {offset}' failed with Read less bytes than requested"
                )
            record = body[:length]
            if _masked(record) != body[length:]:
                raise CorruptRecordError(f"corrupted record at {offset + HEADER}")
            offset += HEADER + len(body)
            yield record


def _masked(content: bytes) -> bytes:
    """Compute TFRecord's masked checksum.

    It is rotated and offset, since a record may itself hold checksums.
    """
    value = google_crc32c.value(content)
    return _CHECKSUM.pack((((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
