"""Where a table is to be written: looked at before the work, and again before the file appears."""

import os
from pathlib import Path
from typing import Literal, NamedTuple

from gru_training.errors import DataError, ScoringError

_KINDS = (".csv", ".tsv", ".jsonl", ".parquet")


class FileKind(NamedTuple):
    """What an output's name says of its content."""

    suffix: Literal[".csv", ".tsv", ".jsonl", ".parquet"]
    gzipped: bool


def file_kind(path: Path, flag: str = "") -> FileKind:
    """Find the kind of table to write by the end of the file's name.

    Args:
        path: The file, which need not exist.
        flag: Flag of the command line, for the message.

    Raises:
        DataError: The name does not name a kind.
    """
    gzipped = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem) if gzipped else path).suffix.lower()
    for kind in _KINDS:
        if suffix == kind and not (gzipped and kind == ".parquet"):
            return FileKind(kind, gzipped)  # type: ignore[arg-type]
    raise DataError(
        f"{flag + ' ' if flag else ''}{path}: expected a file name ending in {', '.join(_KINDS)}, "
        "or .gz after one of the first three"
    )


def require_writable(output: Path, overwrite: bool) -> None:
    """Raise ScoringError if the file cannot be written, or is there and is to stay.

    Args:
        output: As given with `--output`.
        overwrite: Whether it may be there already.
    """
    folder = output.parent
    if not folder.is_dir():
        raise ScoringError(f"--output {output}: there is no folder {folder}")
    if output.is_dir():
        raise ScoringError(f"--output {output}: expected the name of a file, got a folder")
    if not os.access(folder, os.W_OK):
        raise ScoringError(f"--output {output}: the folder {folder} cannot be written to")
    _require_free(output, overwrite)


def put_in_place(aside: Path, output: Path, overwrite: bool) -> None:
    """Put a complete file in the place of the output.

    Raises:
        ScoringError: The output has come into being meanwhile, and is to stay.
        OSError: The file cannot be put there.
    """
    to_disk(aside)
    _require_free(output, overwrite)
    aside.replace(output)


def to_disk(path: Path) -> None:
    """Make a file survive a power cut; before it is renamed, so that it never has no content."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def unwritten(output: Path, error: OSError) -> ScoringError:
    """The error for an output that the system does not let us write."""
    return ScoringError(f"cannot write {output}: {error.strerror or error}")


def _require_free(output: Path, overwrite: bool) -> None:
    if os.path.lexists(output) and not overwrite:
        raise ScoringError(
            f"{output} exists already; remove it, choose another --output, or add --overwrite"
        )
