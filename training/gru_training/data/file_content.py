"""The content of a data file: its bytes, gunzipped, and its text."""

import codecs
import gzip
import zlib
from pathlib import Path

from gru_training.errors import DataError

LARGEST_GROWTH = 50
"""Times its size that a gzip file may have unpacked. Tables and texts reach 3 to 20."""
LEAST_UNPACKED = 64 * 2**20
"""Bytes that any gzip file may have unpacked."""
_CHUNK = 2**20
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def read_bytes(path: Path) -> bytes:
    """The file's content, gunzipped if its name ends in .gz.

    Raises:
        DataError: The file is missing, unreadable, an incomplete gzip file, or far too large
        when unpacked.
    """
    try:
        return _gunzipped(path) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def read_utf8(path: Path) -> str:
    """The file's text: UTF-8 with or without byte-order mark, without NUL characters.

    Raises:
        DataError: As for `read_bytes`, or the content is not such text; names the line.
    """
    content = read_bytes(path)
    try:
        return as_text(path, content)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: expected UTF-8 text, got byte 0x{content[error.start]:02x}"
        ) from error


def as_text(path: Path, content: bytes, encoding: str = "utf-8-sig") -> str:
    """A file's content decoded.

    Args:
        path: For messages.
        content: Of the file.
        encoding: Of the content.

    Raises:
        DataError: It is UTF-16 or UTF-32, or holds NUL characters; names the line.
        UnicodeDecodeError: It has another encoding.
    """
    wide = _wide_encoding(content)
    if wide:
        raise DataError(
            f"{path}: expected UTF-8 text, got {wide}; save it as UTF-8, or convert it with "
            f"`iconv -f {wide} -t UTF-8`"
        )
    text = content.decode(encoding)
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(f"{path}, line {line}: a NUL character; is this a text file?")
    return text


def _gunzipped(path: Path) -> bytes:
    largest = max(LEAST_UNPACKED, LARGEST_GROWTH * path.stat().st_size)
    unpacked = bytearray()
    with gzip.open(path) as file:
        while chunk := file.read(_CHUNK):
            unpacked += chunk
            if len(unpacked) > largest:
                raise DataError(
                    f"{path}: expected at most {largest / 2**20:,.0f} MiB when unpacked "
                    f"({LARGEST_GROWTH} times its size, or {LEAST_UNPACKED >> 20} MiB for a small "
                    "file), got more; if this is intended, unpack it with gunzip and pass the "
                    "file without .gz"
                )
    return bytes(unpacked)


def _wide_encoding(content: bytes) -> str | None:
    """UTF-16 or UTF-32, recognised by the mark at the start or the zeros between Latin letters."""
    for mark, name in _MARKS:
        if content.startswith(mark):
            return name
    low, high = content[:1024:2], content[1:1024:2]
    for name, letters, zeros in (("UTF-16LE", low, high), ("UTF-16BE", high, low)):
        if len(zeros) > 1 and 0 not in letters and zeros.count(0) > 0.9 * len(zeros):
            return name
    return None
