"""The access log: one line of JSON per request."""

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from gru_serving.errors import InvalidArgument
from gru_serving.telemetry.background_writer import BackgroundWriter
from gru_serving.telemetry.request_record import RequestRecord

STDOUT = "-"
_MAX_CHARACTERS = 1024
_EMPTY_ENTRY = 500  # bytes, roughly
_FIELDS = (
    *("transport", "method", "route", "model", "version", "signature", "status", "http_status"),
    *("seconds", "request_bytes", "response_bytes", "client", "request_id", "trace_id"),
)


class AccessLog:
    """Appends to a file, or writes to standard output.

    A file that was renamed or removed (for example by logrotate) is reopened.

    Args:
        path: Path of the file; "-" for standard output.

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
        """Queue a line for a request."""
        # The fields are copied, since the record may hold the whole request.
        fields = {name: _cut(getattr(record, name)) for name in _FIELDS}
        size = sum(len(value) for value in fields.values() if isinstance(value, str))
        self._writer.put((record.began, fields), _EMPTY_ENTRY + size)

    def close(self) -> None:
        """Write the queued lines and close the file."""
        self._writer.close()
        if self._file is not None:
            self._file.close()

    def _open(self) -> None:
        if self._path is None:
            # sys.stdout is bypassed, since it would keep what cannot be written without an error.
            self._file = open(sys.stdout.fileno(), "ab", buffering=0, closefd=False)  # noqa: SIM115
            return
        if self._file is not None:
            self._file.close()
        # The file is unbuffered: lines are written whole, and a failure is known when it happens.
        self._file = self._path.open("ab", buffering=0)

    def _write(self, entries: Sequence[tuple[float, dict[str, Any]]]) -> None:
        text = "".join(_line(*entry) for entry in entries)
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
        """Remove the last bytes written, to which the next line would be joined."""
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


def _cut(value: Any) -> Any:
    """Return a field, cut if it is a long name."""
    if not isinstance(value, str) or len(value) <= _MAX_CHARACTERS:
        return value
    return f"{value[:_MAX_CHARACTERS]}... ({len(value)} characters)"


def _line(began: float, fields: dict[str, Any]) -> str:
    time = datetime.fromtimestamp(began, UTC).isoformat(timespec="microseconds")
    fields = {**fields, "seconds": round(fields["seconds"], 6)}
    present = {key: _whole(value) for key, value in fields.items() if value not in ("", None)}
    return json.dumps({"time": time.replace("+00:00", "Z"), **present}) + "\n"


def _whole(value: Any) -> Any:
    # Strict parsers refuse a line with half a surrogate pair, as in a name that is not UTF-8, and a
    # client must not be able to hide its request that way.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
