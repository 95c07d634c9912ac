"""The files of a version: which there are, and whether they are still those seen before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

Entry = tuple[str, tuple[int, ...]]
Contents = frozenset[Entry]


def files_of(directory: Path) -> Iterator[Path]:
    """All that a directory holds but directories, at any depth; links are not followed.

    Raises:
        OSError: A directory in it cannot be read.
    """
    for root, directories, files in os.walk(directory, onerror=_raise):
        links = [name for name in directories if Path(root, name).is_symlink()]
        for name in sorted((*files, *links)):
            yield Path(root, name)


def contents_of(directory: Path) -> Contents | None:
    """A fingerprint of a version's files, cheap to take, that changes when any of them does.

    Returns:
        Every file with what changes when it is written, replaced or made readable; None where a
        directory cannot be read.
    """
    try:
        if not directory.is_dir():
            return frozenset([_entry(directory, directory)])
        return frozenset(_entry(path, directory) for path in files_of(directory))
    except OSError:
        return None


def _entry(path: Path, directory: Path) -> Entry:
    status = path.stat() if path.exists() else path.lstat()
    name = path.relative_to(directory).as_posix()
    owner = (status.st_mode, status.st_uid, status.st_gid)
    return name, (status.st_ino, status.st_size, status.st_mtime_ns, *owner)


def _raise(error: OSError) -> None:
    raise error
