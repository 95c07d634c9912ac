"""The files of a version: their list, and a fingerprint that shows changes."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

Entry = tuple[str, tuple[int, ...]]
Contents = frozenset[Entry]
_MISSING_FILE_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def files_of(directory: Path) -> Iterator[Path]:
    """List all files in a directory at any depth; links are not followed.

    Raises:
        OSError: A directory in it cannot be read.
    """
    for root, directories, files in os.walk(directory, onerror=_raise):
        links = [name for name in directories if Path(root, name).is_symlink()]
        for name in sorted((*files, *links)):
            yield Path(root, name)


def contents_of(directory: Path) -> Contents | None:
    """Compute a cheap fingerprint of a version's files that changes when any of them does.

    Returns:
        Attributes of every file that change when it is written, replaced or made readable; None if
        a directory cannot be read.
    """
    try:
        if not directory.is_dir():
            return frozenset([(".", _state(directory))])
        return frozenset(_entries(os.fspath(directory), ""))
    except OSError:
        return None


def _entries(directory: str, prefix: str) -> Iterator[Entry]:
    """Yield the files below a directory; no `Path` is made, as servers scan every second."""
    with os.scandir(directory) as found:
        for one in found:
            if one.is_dir(follow_symlinks=False):
                yield from _entries(one.path, f"{prefix}{one.name}/")
            else:
                yield prefix + one.name, _state(one)


def _state(one: os.DirEntry[str] | Path) -> tuple[int, ...]:
    try:
        status = one.stat()
    except OSError as error:
        if error.errno not in _MISSING_FILE_ERRORS:
            raise
        status = one.stat(follow_symlinks=False)  # of a link that leads nowhere
    owner = (status.st_mode, status.st_uid, status.st_gid)
    return status.st_ino, status.st_size, status.st_mtime_ns, *owner


def _raise(error: OSError) -> None:
    raise error
