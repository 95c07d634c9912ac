"""Which kind of table a file name stands for."""

from pathlib import Path
from typing import Literal, NamedTuple

from gru_training.errors import DataError

KINDS = (".csv", ".tsv", ".jsonl", ".parquet")


class FileKind(NamedTuple):
    """What a file's name says of it."""

    suffix: Literal[".csv", ".tsv", ".jsonl", ".parquet"]
    gzipped: bool


def file_kind(path: Path, flag: str = "") -> FileKind:
    """The kind of a table file, by the end of its name.

    Args:
        path: Of the file, which need not exist.
        flag: Of the command line, for the message.

    Raises:
        DataError: The name says nothing of the kind.
    """
    gzipped = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem) if gzipped else path).suffix.lower()
    for kind in KINDS:
        if suffix == kind and not (gzipped and kind == ".parquet"):
            return FileKind(kind, gzipped)  # type: ignore[arg-type]
    raise DataError(
        f"{flag + ' ' if flag else ''}{path}: expected a file name ending in {', '.join(KINDS)}, "
        "or .gz after one of the first three"
    )
