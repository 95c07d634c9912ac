"""A lock file: one holder at a time, free again when its process dies, and gone when released."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serving.named_files import naming_file


class LockedError(Exception):
    """Another process holds the lock.

    Attributes:
        holder: What it says of itself.
    """

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is locked by {holder}")
        self.holder = holder


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock.

    Args:
        path: Of the lock file, in a directory that exists.

    Raises:
        LockedError: Another process holds it.
        OSError: The file cannot be written.
    """
    with naming_file(path):
        descriptor = _acquire(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder before may have removed the file between our opening and locking it.
            if _is_still(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()}".encode())
                return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, 100, 0).decode("utf-8", "replace")
            os.close(descriptor)
            raise LockedError(path, holder or "a process that just started") from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
