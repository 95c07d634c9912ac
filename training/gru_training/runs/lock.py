"""Keeps two processes from building the same run."""

import contextlib
import errno
from pathlib import Path

from filelock import FileLock, Timeout

# A holder that removes the file while we open it costs one attempt; a lock held is not waited for.
_SECONDS, _POLL_SECONDS = 0.1, 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


class RunLock:
    """A lock file: one holder at a time, free again when its process dies, gone when released.

    Args:
        path: Lock file, in a folder that exists.
    """

    def __init__(self, path: Path):
        self.path = path
        self.holds = False
        """Whether the lock was acquired; never where the file system knows no locks."""
        # Without a fallback that would outlive a process that is killed.
        self._lock = FileLock(path, fallback_to_soft=False)

    def acquire(self) -> bool:
        """Try to hold it.

        Returns:
            Whether no other process holds it.

        Raises:
            OSError: The file cannot be written.
        """
        try:
            self._lock.acquire(_SECONDS, _POLL_SECONDS)
        except Timeout:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self.path.unlink(missing_ok=True)  # training matters more than the lock
            return True
        self.holds = True
        return True

    def release(self) -> None:
        """Let go of it, if it was acquired."""
        if self.holds:
            # Before the release, so that nobody else's is removed; Windows removes it after that.
            with contextlib.suppress(OSError):
                self.path.unlink()
            self._lock.release()
            self.holds = False
