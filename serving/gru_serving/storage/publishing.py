"""Publication of a version in a base path: built aside by one publisher at a time, then renamed.

An engine loads a version directory as soon as it exists, so under its number there must be either a
complete version or none.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from gru_serving.errors import NotFound
from gru_serving.storage.file_lock import LockedError, file_lock
from gru_serving.storage.version_scan import is_version, versions_on_disk

LOCK = ".publishing"
_TEMPORARY_PREFIX = ".publish-"


class PublishError(Exception):
    """A base path cannot be written, or another process is writing it."""


@contextmanager
def publisher(base: Path) -> Iterator[Path]:
    """Make an empty directory in a base path in which to build a version.

    Removed at the end if it remains.

    The base path's lock is held inside the context; the lock of a dead process is free.

    Args:
        base: Base path of the served model; made when absent, and removed again if nothing came of
            it.

    Raises:
        PublishError: Another process is publishing to it, or it is no base path but a version.
        OSError: The base path cannot be written.
    """
    if is_version(base):
        raise PublishError(
            f"{base}: expected a base path, in which every version has its directory; got a "
            f"version (with a saved_model.pb); its base path is {base.parent}"
        )
    made = not base.exists()
    try:
        base.mkdir(parents=True, exist_ok=True)
        with file_lock(base / LOCK):
            for left in base.glob(f"{_TEMPORARY_PREFIX}*"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            aside = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX, dir=base))
            try:
                yield aside
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except LockedError as error:
        raise PublishError(
            f"{base}: another process is publishing to it ({error.holder}); wait for it to end "
            "and try again"
        ) from None
    finally:
        if made and base.is_dir() and not any(base.iterdir()):
            base.rmdir()


def put_in_place(aside: Path, base: Path, number: int | None = None) -> Path:
    """Move the built directory to its version number.

    Args:
        aside: Directory of `publisher`, complete.
        base: Base path of the served model.
        number: Number of the version; None for the one after the highest.

    Raises:
        PublishError: There is a version of that number.
    """
    aside.chmod(0o755)  # mkdtemp's 0700 would lock out a server with another user
    while True:
        taken = versions_on_disk(base)
        chosen = max([0, *taken]) + 1 if number is None else number
        version = base / str(chosen)
        if chosen in taken:
            raise PublishError(
                f"{taken[chosen]} exists already: a version never changes once it is published. "
                f"Choose another number, or leave it out for {max(taken) + 1}"
            )
        _sync(aside)
        try:
            aside.rename(version)
        except OSError:
            if number is None and version.exists():
                continue  # a publisher that knows no lock took the number
            raise
        _sync_one(base)
        return version


def remove_old(
    base: Path, keep: int, protected: Collection[int] = (), dry_run: bool = False
) -> list[Path]:
    """Remove all versions but the highest.

    Args:
        base: Base path of the served model.
        keep: Number of highest versions to keep, at least 1.
        protected: Versions that stay besides.
        dry_run: Whether to remove nothing.

    Returns:
        Directories of the removed versions.

    Raises:
        PublishError: Another process is publishing to the base path.
        NotFound: There is no such base path.
    """
    if keep < 1:
        raise ValueError(f"keep: expected at least 1, as a server needs a version; got {keep}")
    old = _old(base, keep, protected)
    if dry_run or not old:
        return old
    with publisher(base) as aside:
        old = _old(base, keep, protected)  # again, as others may have published and removed some
        for version in old:
            # It is renamed first, so that an engine never sees an incomplete version.
            version.rename(aside / version.name)
    return old


def _old(base: Path, keep: int, protected: Collection[int]) -> list[Path]:
    found = versions_on_disk(base)
    return [found[n] for n in sorted(found)[:-keep] if n not in protected]


def find_version(path: Path) -> Path:
    """Find the version directory that a user means.

    Args:
        path: Path of a version, or a base path, which stands for its highest version.

    Raises:
        NotFound: There is none; the message says what to give instead.
    """
    if is_version(path):
        return path
    if not path.is_dir():
        raise NotFound(f"{path}: expected the directory of a version, or of a model's versions")
    found = versions_on_disk(path)
    if not found:
        raise NotFound(
            f"{path}: expected a version (with a saved_model.pb) or versions (directories with "
            "numbers as names), found neither; `gru-serve export RUN --to DIRECTORY` makes one"
        )
    return found[max(found)]


def _sync(directory: Path) -> None:
    """Flush a tree to disk, so that it survives a power cut."""
    for root, _, files in os.walk(directory):
        for name in files:
            _sync_one(Path(root, name))
        _sync_one(Path(root))


def _sync_one(path: Path) -> None:
    if sys.platform == "win32":  # opens no directories, and syncs nothing that is open for reading
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
