"""The content of a text file: decompressed, decoded, and cut into lines."""

import codecs
import gzip
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from gru_training.errors import DataError

Compression = Literal["", "gzip", "zstd"]
LARGEST_GROWTH = 50
"""Largest ratio of unpacked to packed size of a file; tables and texts reach 3 to 20."""
LEAST_UNPACKED = 64 << 20
"""Bytes that any compressed file may have after decompression."""
LONGEST_LINE = 64 << 20
"""Most characters of a line; a file with longer lines has no line breaks, or was made to fill the
memory.
"""
_CHUNK = 1 << 20
_MAGIC: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


def compression_of(head: bytes) -> Compression:
    """Recognise a compression by the first bytes of a file; empty if there is none."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "")


def first_bytes(path: Path, size: int) -> bytes:
    """Read the first bytes of a file unchanged.

    Raises:
        DataError: The path is no file, or cannot be read.
    """
    if not path.is_file():
        what = "is not a file" if path.exists() else "there is no such file"
        raise DataError(f"cannot read {path}: {what}")
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def chunks(path: Path, bounded: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a file piece by piece, decompressed if necessary.

    Args:
        path: The file.
        bounded: Whether to refuse a compressed file that grows beyond measure, as where all of it
            is to be held in memory.

    Raises:
        DataError: The file is missing, unreadable, incomplete, or far too large when unpacked.
    """
    compression = compression_of(first_bytes(path, 4))
    largest = 0
    try:
        with path.open("rb") as file:
            stream: Any = file
            if compression:
                stream = _unpacked(file, compression)
                largest = max(LEAST_UNPACKED, LARGEST_GROWTH * path.stat().st_size)
            read = 0
            while chunk := stream.read(_CHUNK):
                read += len(chunk)
                if bounded and compression and read > largest:
                    raise DataError(
                        f"{path}: expected at most {largest / 2**20:,.0f} MiB when unpacked "
                        f"({LARGEST_GROWTH} times its size, or {LEAST_UNPACKED >> 20} MiB for a "
                        "small file), got more; if this is intended, unpack it with "
                        f"{'gunzip' if compression == 'gzip' else 'zstd -d'} and pass the "
                        "unpacked file"
                    )
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file: {error}") from error
    except OSError as error:
        if compression == "zstd":
            raise DataError(f"{path} is not a complete zstd file: {error}") from error
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _unpacked(file: Any, compression: Compression) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=file, mode="rb")
    import pyarrow as pa  # Python has zstd from 3.14 on

    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


def read_bytes(path: Path) -> bytes:
    """Read the whole content of a file, decompressed if necessary.

    Raises:
        DataError: The file cannot be read or is too large, see `chunks`.
    """
    return b"".join(chunks(path, bounded=True))


def text_lines(
    name: str, content: Iterable[bytes], encoding: str, line_end: str = "\n"
) -> Iterator[str]:
    """Yield the lines of a text with their line ends, without a byte-order mark.

    Args:
        name: The file's name, for messages.
        content: Pieces of its bytes.
        encoding: Python's name of the encoding.
        line_end: The character that ends a line; no other one does.

    Raises:
        DataError: A character is NUL or has another encoding, or a line is too long; names
            the line.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    rest, number = "", 1
    for chunk in chain(content, (None,)):
        try:
            text = decoder.decode(chunk or b"", final=chunk is None)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "replace")
            way = "shift_jis, big5 or gb18030"
            if encoding != "cp1252":
                way = "cp1252, or convert the file, as with `iconv -f latin1 -t utf-8`"
            raise DataError(
                f"{name}, line {number + before.count(line_end)}: expected "
                f"{spoken(encoding)} text, got byte 0x{error.object[error.start]:02x}; name the "
                f"encoding with --encoding, such as {way}"
            ) from error
        if (nul := text.find("\0")) >= 0:
            raise DataError(
                f"{name}, line {number + text.count(line_end, 0, nul)}: a NUL character; is this "
                "a text file?"
            )
        *lines, rest = (rest + text).split(line_end)
        for line in lines:
            yield line + line_end
        number += len(lines)
        if len(rest) > LONGEST_LINE:
            raise DataError(
                f"{name}, line {number}: expected at most {LONGEST_LINE >> 20} MiB in a line"
            )
    if rest:
        yield rest


def spoken(encoding: str) -> str:
    """Return the usual spelling of an encoding's name."""
    known = {"utf-8-sig": "UTF-8", "cp1252": "Windows-1252 (cp1252)"}
    return known.get(encoding, encoding.upper() if encoding.startswith("utf") else encoding)
