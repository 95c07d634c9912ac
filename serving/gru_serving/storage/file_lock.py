"""A lock file with one holder at a time, released when its process dies and removed on release."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from gru_serving.named_files import naming_file

# A holder that removes the file while we open it costs one attempt; a held lock is not waited for.
_SECONDS, _POLL_SECONDS = 0.1, 0.02


class LockedError(Exception):
    """Another process holds the lock.

    Attributes:
        holder: Description of that process, from the lock file.
    """

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is locked by {holder}")
        self.holder = holder


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file.

    Args:
        path: Path of the lock file, in a directory that exists.

    Raises:
        LockedError: Another process holds it.
        OSError: The file cannot be written.
    """
    path.parent.stat()  # the library would make the directory
    # On a file system without locks, the file would outlive a process that is killed.
    lock = FileLock(path, fallback_to_soft=False)
    with naming_file(path):
        try:
            lock.acquire(_SECONDS, _POLL_SECONDS)
        except Timeout:
            raise LockedError(path, _holder(path)) from None
    try:
        with naming_file(path), contextlib.suppress(PermissionError):  # Windows locks the content
            path.write_text(f"process {os.getpid()}", "utf-8")
        yield
    finally:
        # The file is removed before the release, so that no other holder's is; Windows removes it
        # afterwards.
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


def _holder(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")[:100] or "a process that just started"
    except OSError:  # it has just ended, or this is Windows
        return "another process"
