"""Atomic writing of files, and errors that name the file, which those of a full disk do not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add a file's name to an OSError without one that is raised inside the context."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a file completely or not at all; the permissions of a replaced file are kept."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming_file(path):
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o666
            opened = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(opened, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
