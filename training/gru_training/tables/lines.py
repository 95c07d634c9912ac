"""The lines of a text file, one at a time, plain or gzipped."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gru_training.errors import DataError

LONGEST_LINE = 64 << 20
"""Bytes; a file with longer ones has no line breaks, or was made to fill the memory."""
_BUFFER = 1 << 20


class HashedFile(io.RawIOBase):
    """A file that is hashed while it is read from its beginning to its end."""

    def __init__(self, path: Path):
        super().__init__()
        self._file = path.open("rb", buffering=0)
        self._sha256 = hashlib.sha256()

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read on."""
        count = self._file.readinto(buffer) or 0
        self._sha256.update(memoryview(buffer)[:count])
        return count

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of what was read, and of what is left of the file."""
        while self.read(_BUFFER):
            pass
        return self._sha256.hexdigest()

    def close(self) -> None:
        """Do nothing: what reads it through a buffer would close it before it was hashed."""

    def release(self) -> None:
        """Close the file."""
        self._file.close()


def text_lines(path: Path, file: io.RawIOBase, gzipped: bool) -> Iterator[str]:
    """The lines of UTF-8 text with their line breaks, without a byte-order mark.

    Args:
        path: For messages.
        file: Opened at its beginning.
        gzipped: Whether to unpack it.

    Raises:
        DataError: It is not UTF-8 text, not a complete gzip file, or unreadable; names the line.
    """
    number = 0
    buffered: Any = io.BufferedReader(file, _BUFFER)
    if gzipped:
        buffered = io.BufferedReader(gzip.GzipFile(fileobj=buffered, mode="rb"), _BUFFER)
    try:
        while raw := buffered.readline(LONGEST_LINE):
            number += 1
            if number == 1:
                raw = _beginning(path, raw)
            if len(raw) == LONGEST_LINE:
                raise DataError(
                    f"{path}, line {number}: expected at most {LONGEST_LINE >> 20} MiB in a line"
                )
            if b"\0" in raw:
                raise DataError(f"{path}, line {number}: a NUL character; is this a text file?")
            yield raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: expected UTF-8 text, got byte 0x{raw[error.start]:02x}; "
            "convert it first, as with `iconv -f latin1 -t utf-8`"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def open_hashed(path: Path) -> Iterator[HashedFile]:
    """A file that is hashed while it is read, closed in the end.

    Raises:
        DataError: It cannot be opened.
    """
    try:
        file = HashedFile(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        yield file
    finally:
        file.release()


def _beginning(path: Path, raw: bytes) -> bytes:
    """The first line without its mark of UTF-8.

    Raises:
        DataError: The file is UTF-16 or UTF-32.
    """
    for mark, name in ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\0\0\xfe", "UTF-32")):
        if raw.startswith(mark):
            raise DataError(
                f"{path}: expected UTF-8 text, got {name}; save it as UTF-8, or convert it with "
                f"`iconv -f {name} -t UTF-8`"
            )
    return raw.removeprefix(b"\xef\xbb\xbf")
