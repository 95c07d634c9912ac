"""Keeps two processes from building the same run."""

import contextlib
import fcntl
import os
from pathlib import Path


class RunLock:
    """A lock file: one holder at a time, free again when its process dies, gone when released.

    Args:
        path: of the file, in a folder that exists.
    """

    def __init__(self, path: Path):
        self.path = path
        self.holds = False
        """Whether it was acquired; never where the file system knows no locks."""
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Tries to hold it.

        Returns:
            Whether no other process holds it.

        Raises:
            OSError: the file cannot be written.
        """
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError:  # a file system without locks: to train is more than to be safe
                os.close(descriptor)
                self.path.unlink(missing_ok=True)
                return True
            # The holder before may have removed the file between our opening and locking it.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self.path.stat()):
                    self.holds, self._descriptor = True, descriptor
                    return True
            os.close(descriptor)

    def release(self) -> None:
        """Lets go of it, if it was acquired."""
        if self._descriptor is not None:
            self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self.holds, self._descriptor = False, None
