"""Runs in temporary folders, which go when the last reference to their run does."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from multiprocessing.util import Finalize
from pathlib import Path

from gru_training.errors import RunDirectoryError
from gru_training.runs.directory import RunDirectory


def temporary_folder() -> Path:
    """Make a folder in the system's folder of temporary files.

    Raises:
        RunDirectoryError: Nothing can be written there.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="keras-gru-"))
    except OSError as error:
        raise _unwritable(error) from error


def remove_with(owner: object, folder: Path) -> None:
    """Remove a folder when an object is collected, or at the end of this process.

    Unlike `weakref.finalize`, this also runs at the end of worker processes, and never in a
    process that was forked from this one.

    Args:
        owner: Object that the folder belongs to.
        folder: Folder to remove.
    """
    Finalize(owner, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=0)


def run_files(run: RunDirectory) -> dict[str, bytes]:
    """Read all files of a run, by name.

    Raises:
        RunDirectoryError: A file cannot be read.
    """
    try:
        files = sorted(path for path in run.path.iterdir() if path.is_file())
        return {path.name: path.read_bytes() for path in files}
    except OSError as error:
        raise RunDirectoryError(
            f"cannot read {run.path}, which the estimator was fitted into: "
            f"{error.strerror or error}; load the run from where it is now, or fit again"
        ) from error


def written_run(name: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of a run to a temporary folder of its own.

    Args:
        name: Name of the run's directory.
        files: Contents by file name, as of `run_files`.

    Returns:
        The run directory, inside the temporary folder.

    Raises:
        RunDirectoryError: They cannot be written; nothing is left behind.
    """
    folder = temporary_folder()
    path = folder / name
    try:
        path.mkdir()
        for file, content in files.items():
            (path / file).write_bytes(content)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _unwritable(error, sum(map(len, files.values()))) from error
    return path


def _unwritable(error: OSError, size: int | None = None) -> RunDirectoryError:
    """Say that there is no place for a run, and how to give it another."""
    room = "" if size is None else f" of {size:,} bytes"
    place = os.environ.get("TMPDIR") or tempfile.tempdir or "the temporary folder"
    return RunDirectoryError(
        f"cannot write a run{room} to {place}: {error.strerror or error}; set TMPDIR to a folder "
        "that can be written and has room"
    )
