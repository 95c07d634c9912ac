"""One line of JSON per request."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from serving.background_writer import BackgroundWriter
from serving.errors import InvalidArgument
from serving.request_record import RequestRecord

STDOUT = "-"


class AccessLog:
    """Appends to a file, or writes to standard output.

    A file that was renamed or removed (logrotate and its like) is opened anew.

    Args:
        path: Of the file; "-" for standard output.

    Raises:
        InvalidArgument: The file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = None if path == STDOUT else Path(path)
        self._file: BinaryIO | None = None
        try:
            self._open()
        except OSError as error:
            raise InvalidArgument(
                f"--access_log: cannot write to {path}: {error.strerror or error}"
            ) from None
        self._writer = BackgroundWriter("access log", self._write)

    def __call__(self, record: RequestRecord) -> None:
        """Have a line written for a request."""
        self._writer.put(record)

    def close(self) -> None:
        """Write what waits and close the file."""
        self._writer.close()
        if self._file is not None:
            self._file.close()

    def _open(self) -> None:
        if self._path is None:
            return
        if self._file is not None:
            self._file.close()
        # Unbuffered: lines go out whole, and a failure is known when it happens.
        self._file = self._path.open("ab", buffering=0)

    def _write(self, records: Sequence[RequestRecord]) -> None:
        text = "".join(_line(record) for record in records)
        if self._path is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        if self._replaced():
            self._open()
        assert self._file is not None
        data = memoryview(text.encode("utf-8", "replace"))
        done = 0
        try:
            while done < len(data):
                done += self._file.write(data[done:])
        except OSError:
            self._take_back(done)
            raise

    def _take_back(self, count: int) -> None:
        """Remove the last bytes written: the next line must not be joined to half a line."""
        assert self._file is not None
        with contextlib.suppress(OSError):  # a pipe takes nothing back
            self._file.truncate(max(0, os.fstat(self._file.fileno()).st_size - count))

    def _replaced(self) -> bool:
        assert self._path is not None
        assert self._file is not None
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return True
        ours = os.fstat(self._file.fileno())
        return (now.st_dev, now.st_ino) != (ours.st_dev, ours.st_ino)


def _line(record: RequestRecord) -> str:
    began = datetime.fromtimestamp(record.began, UTC)
    entry: dict[str, Any] = {
        "time": began.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "transport": record.transport,
        "method": record.method,
        "route": record.route,
        "model": record.model,
        "version": record.version,
        "signature": record.signature,
        "status": record.status,
        "http_status": record.http_status,
        "seconds": round(record.seconds, 6),
        "request_bytes": record.request_bytes,
        "response_bytes": record.response_bytes,
        "client": record.client,
    }
    present = {key: _whole(value) for key, value in entry.items() if value not in ("", None)}
    return json.dumps(present) + "\n"


def _whole(value: Any) -> Any:
    # Half a surrogate pair, as of a name that is not UTF-8, is what strict parsers refuse a line
    # for: who asks so must not be able to keep out of sight.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
