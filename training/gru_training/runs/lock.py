"""The lock that keeps two processes from building the same run."""

import contextlib
import errno
from pathlib import Path

from filelock import FileLock, Timeout

# A holder that removes the file while we open it costs one attempt; a held lock is not waited for.
_SECONDS, _POLL_SECONDS = 0.1, 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


class RunLock:
    """A lock file with one holder at a time, released when its process dies and removed on release.

    Args:
        path: Lock file, in a folder that exists.
    """

    def __init__(self, path: Path):
        self.path = path
        self.holds = False
        """Whether the lock was acquired; never on file systems without locks."""
        # There is no fallback, which would outlive a process that is killed.
        self._lock = FileLock(path, fallback_to_soft=False)

    def acquire(self) -> bool:
        """Try to acquire the lock.

        Returns:
            Whether no other process holds the lock.

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
        """Release the lock if it was acquired."""
        if self.holds:
            # The file is removed before the release, so that no other holder's is; Windows removes
            # it afterwards.
            with contextlib.suppress(OSError):
                self.path.unlink()
            self._lock.release()
            self.holds = False
