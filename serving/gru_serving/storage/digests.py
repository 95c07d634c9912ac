"""Digests of a version's files: written when it is complete, checked before it is loaded.

`<version>/assets.extra/digests.json`::

    {"algorithm": "sha256",
     "files": {"saved_model.pb": {"size": 791149, "sha256": "9f86d0…"}, …}}

Paths are relative to the version, with slashes. The list contains all files except itself. Whoever
can write the version can write the list as well: it detects accidents, not attacks.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from gru_serving.config.batching_options import PER_MODEL_FILE
from gru_serving.errors import RefusedVersion
from gru_serving.storage.version_files import files_of

FILE = Path("assets.extra", "digests.json")

_ALGORITHM = "sha256"
_BLOCK = 1 << 20
_LARGEST_LIST = 64 << 20
_HEX = re.compile(r"[0-9a-f]{64}")


class Digest(NamedTuple):
    """Size and SHA-256 of one file.

    Attributes:
        size: Number of bytes.
        sha256: SHA-256 of its bytes, in lower-case hexadecimal.
    """

    size: int
    sha256: str


def has_digests(version: Path) -> bool:
    """Tell whether there is a list, or something in its place."""
    return os.path.lexists(version / FILE)


def write_digests(version: Path) -> Path:
    """Write the list of a version whose files are complete.

    Args:
        version: Directory of the version.

    Returns:
        List that was written.

    Raises:
        OSError: A file cannot be read, or the list not be written.
    """
    path = version / FILE
    path.unlink(missing_ok=True)
    files = {
        file.relative_to(version).as_posix(): digest_of(file)._asdict()
        for file in sorted(files_of(version))
    }
    path.parent.mkdir(exist_ok=True)
    text = json.dumps({"algorithm": _ALGORITHM, "files": files}, ensure_ascii=False, indent=1)
    path.write_text(f"{text}\n", "utf-8")
    return path


def check_digests(version: Path, check: Callable[[], None] = lambda: None) -> int:
    """Compare a version's files with its list.

    Args:
        version: Directory of the version, with a list.
        check: Function that is called again and again meanwhile; may raise to end it.

    Returns:
        Number of bytes compared.

    Raises:
        RefusedVersion: A file is missing, altered or not listed, and the message names the first;
            or the list cannot be read.
    """
    listed = read_digests(version)
    for name, digest in listed.items():
        path = version / name
        try:
            found = digest_of(path, digest.size, check)
        except OSError as error:
            reason = error.strerror or error
            raise RefusedVersion(
                f"{path}: listed in {FILE}, but cannot be read: {reason}"
            ) from None
        if found.size != digest.size:
            raise RefusedVersion(
                f"{path}: expected {digest.size} bytes by {FILE}; got {found.size}"
            )
        if found != digest:
            raise RefusedVersion(
                f"{path}: expected the SHA-256 digest {digest.sha256} by {FILE}; got "
                f"{found.sha256}: the file was altered since the version was written"
            )
    try:
        files = list(files_of(version))
    except OSError as error:
        where = error.filename or version
        raise RefusedVersion(f"{where}: cannot be read: {error.strerror or error}") from None
    for path in files:
        relative = path.relative_to(version)
        if relative.as_posix() not in listed and not may_be_added(relative):
            raise RefusedVersion(f"{path}: not listed in {FILE}: the file was added later")
    return sum(digest.size for digest in listed.values())


def read_digests(version: Path) -> dict[str, Digest]:
    """Read the list of a version, by path.

    Raises:
        RefusedVersion: The list cannot be read, or is not what `write_digests` writes.
    """
    path = version / FILE
    try:
        if (size := path.stat().st_size) > _LARGEST_LIST:
            raise RefusedVersion(f"{path}: expected at most {_LARGEST_LIST} bytes; got {size}")
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RefusedVersion(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise RefusedVersion(f"{path}: expected JSON; got {error}") from None
    algorithm = content.get("algorithm") if isinstance(content, dict) else None
    if algorithm != _ALGORITHM:
        raise RefusedVersion(
            f"{path}: expected the algorithm {_ALGORITHM!r}; got {algorithm!r:.60}"
        )
    files = content.get("files")
    if not isinstance(files, dict) or not files:
        raise RefusedVersion(f"{path}: expected files with their digests; got {files!r:.60}")
    return {_name(path, name): _digest(path, name, entry) for name, entry in files.items()}


def digest_of(
    path: Path, at_most: int | None = None, check: Callable[[], None] = lambda: None
) -> Digest:
    """Compute the digest of a file.

    Args:
        path: Path of the file; a link counts as what it points to.
        at_most: Bytes after which it is too large to be the one expected, and is not read on.
        check: Function that is called before every block; may raise to end the reading.

    Raises:
        OSError: The file cannot be read, or is no file (a pipe would never end).
    """
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "not a file")
        if at_most is not None and status.st_size != at_most:
            return Digest(status.st_size, "")
        while block := file.read(_BLOCK):
            check()
            digest.update(block)  # without the interpreter's lock: requests go on
            size += len(block)
    return Digest(size, digest.hexdigest())


def altered_files(version: Path, listed: Mapping[str, Digest], names: Iterable[str]) -> list[str]:
    """Return those of the given files that differ from a version's list, in their order.

    Args:
        version: Directory of the version.
        listed: List of the version as it once was; empty where there was none, and then all
            count.
        names: Paths inside the version; those that may be added later never count.
    """
    found = []
    for name in names:
        if may_be_added(Path(name)):
            continue
        try:
            if name in listed and digest_of(version / name) == listed[name]:
                continue
        except OSError:
            pass
        found.append(name)
    return found


def may_be_added(path: Path) -> bool:
    """Tell whether a file may be added later: TensorFlow ignores it, or this server parses it."""
    return (
        path.parts[0] == FILE.parts[0]  # assets.extra: warmup and golden requests, notes
        or path == Path(PER_MODEL_FILE)
        or path.name.startswith(".")
    )


def _name(path: Path, name: str) -> str:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\0" in name or not pure.parts:
        raise RefusedVersion(f"{path}: expected paths inside the version; got {name!r:.200}")
    return pure.as_posix()


def _digest(path: Path, name: str, entry: Any) -> Digest:
    size, sha256 = (entry.get("size"), entry.get("sha256")) if isinstance(entry, dict) else (0, 0)
    if not (isinstance(size, int) and isinstance(sha256, str) and _HEX.fullmatch(sha256)):
        raise RefusedVersion(
            f"{path}: expected size and sha256 of {name!r:.200}; got {entry!r:.60}"
        )
    return Digest(size, sha256)
