"""Errors of files that say which file: those of a write, as on a full disk, name none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within, an OSError that names no file names this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise
