"""One line of JSON per request."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from gru_serving.errors import InvalidArgument
from gru_serving.telemetry.background_writer import BackgroundWriter
from gru_serving.telemetry.request_record import RequestRecord

STDOUT = "-"
_LONGEST = 1024
_EMPTY_ENTRY = 500  # bytes, roughly


class AccessLog:
    """Appends to a file, or writes to standard output.

    A file that was renamed or removed (for example by logrotate) is reopened.

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
        # Not the record itself, which may hold the whole request.
        entry = _Entry.of(record)
        self._writer.put(entry, entry.size)

    def close(self) -> None:
        """Write what waits and close the file."""
        self._writer.close()
        if self._file is not None:
            self._file.close()

    def _open(self) -> None:
        if self._path is None:
            # Past sys.stdout, which would keep what cannot be written and then say nothing.
            self._file = open(sys.stdout.fileno(), "ab", buffering=0, closefd=False)  # noqa: SIM115
            return
        if self._file is not None:
            self._file.close()
        # Unbuffered: lines go out whole, and a failure is known when it happens.
        self._file = self._path.open("ab", buffering=0)

    def _write(self, entries: Sequence[_Entry]) -> None:
        text = "".join(_line(entry) for entry in entries)
        if self._path is not None and self._replaced():
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
        if self._path is None:  # a pipe, or a file that is not ours alone
            return
        with contextlib.suppress(OSError):
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


class _Entry(NamedTuple):
    """The fields of a line, in order; long names are truncated."""

    began: float
    transport: str
    method: str
    route: str
    model: str
    version: int | None
    signature: str
    status: str
    http_status: int | None
    seconds: float
    request_bytes: int
    response_bytes: int
    client: str

    @classmethod
    def of(cls, record: RequestRecord) -> _Entry:
        return cls(
            record.began,
            record.transport,
            _cut(record.method),
            _cut(record.route),
            _cut(record.model),
            record.version,
            _cut(record.signature),
            record.status,
            record.http_status,
            record.seconds,
            record.request_bytes,
            record.response_bytes,
            record.client,
        )

    @property
    def size(self) -> int:
        names = (self.method, self.route, self.model, self.signature, self.client)
        return _EMPTY_ENTRY + sum(map(len, names))


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}... ({len(name)} characters)"


def _line(entry: _Entry) -> str:
    began = datetime.fromtimestamp(entry.began, UTC)
    fields: dict[str, Any] = {
        "time": began.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        **entry._asdict(),
        "seconds": round(entry.seconds, 6),
    }
    del fields["began"]
    present = {key: _whole(value) for key, value in fields.items() if value not in ("", None)}
    return json.dumps(present) + "\n"


def _whole(value: Any) -> Any:
    # Strict parsers refuse a line with half a surrogate pair, as in a name that is not UTF-8: a
    # client must not be able to hide its request that way.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
