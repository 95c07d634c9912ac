"""Programs compiled by XLA, kept for later processes on this machine.

TensorFlow can write each compiled program to a folder and read it from there. By itself it trusts
that folder: a training step fails if a file is truncated or cannot be written, and a program for
another processor, other flags or another version is loaded like any other. So each process gets a
folder of its own, which begins with hard links to the complete programs of its kind, and publishes
the programs that it compiled when it ends. No process changes what another reads.

    ~/.cache/keras-gru/programs/KIND/NAME.CRC     a program; KIND is a digest of `_kind`
    ~/.cache/keras-gru/programs/KIND/.process-X/  the folder of a process, with `lock` in it

This module does not import TensorFlow, which reads its settings once, when it starts.
"""

import atexit
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from importlib import metadata
from pathlib import Path

VARIABLE = "KERAS_GRU_PROGRAMS"
"""The environment variable that names another folder, or is `off`."""
LIMIT = 64 << 20
"""Total bytes of the programs that are kept: some 450 of them."""
_LEAST_FREE = 256 << 20
"""Bytes that must be free on the disk, since TensorFlow fails if it cannot write."""
_MAX_BUILD_SECONDS = 60.0
"""Seconds after which a process's folder without a lock counts as abandoned."""
_FLAG = "--tf_xla_persistent_cache_directory"
_CPU_INFO = Path("/proc/cpuinfo")
_CPU_FIELDS = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features",
)  # fmt: skip


def keep_programs(folder: str | os.PathLike[str] | None = None, limit: int = LIMIT) -> Path | None:
    """Keep the programs that XLA compiles in this process for later ones, and use the kept ones.

    Call it before TensorFlow or Keras is imported. It hides TensorFlow's messages unless
    `TF_CPP_MIN_LOG_LEVEL` is set, since TensorFlow reports each program that it reads as an error.

    Args:
        folder: Folder of the programs; by default what `KERAS_GRU_PROGRAMS` names, or
            `keras-gru/programs` in the user's cache folder.
        limit: Bytes of all programs that are kept; the oldest are removed first.

    Returns:
        Folder of the programs for this process; None if none are kept: the variable is `off`,
        `TF_XLA_FLAGS` names a folder, there is a GPU, the system is not Linux, or the folder cannot
        be written, belongs to another user, or is on a full disk.

    Raises:
        RuntimeError: TensorFlow is imported already.
    """
    if "tensorflow" in sys.modules:
        raise RuntimeError(
            "keep_programs: expected a process that has not imported TensorFlow; call it first, "
            "before tensorflow, keras and keras_gru are imported"
        )
    chosen = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    if chosen == "off" or _FLAG in os.environ.get("TF_XLA_FLAGS", "") or _has_gpu():
        return None
    kind = _kind()
    if kind is None:
        return None
    try:
        root = Path(chosen).absolute() if chosen else _user_cache() / "keras-gru" / "programs"
        store = root / kind
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (_is_private(root) and _is_private(store)):
            return None
        _collect(root)
        _shrink(root, limit)
        if shutil.disk_usage(store).free < _LEAST_FREE:
            return None
        own = _Process(store)
    except (OSError, RuntimeError):  # no home, a folder that cannot be written, no hard links
        return None
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    flags = f"{os.environ.get('TF_XLA_FLAGS', '')} {_FLAG}={own.folder}"
    os.environ["TF_XLA_FLAGS"] = flags.strip()
    atexit.register(own.end)
    return store


class _Process:
    """The folder in which TensorFlow reads and writes in this process.

    Args:
        store: The programs of its kind.
    """

    def __init__(self, store: Path):
        self._pid = os.getpid()
        self.folder = Path(tempfile.mkdtemp(prefix=".process-", dir=store))
        self._lock = _locked(self.folder)
        for program in store.iterdir():
            name, _, crc = program.name.rpartition(".")
            if not name:  # the folder of a process
                continue
            with suppress(FileExistsError, FileNotFoundError):  # removed meanwhile
                if _crc(program) == crc:
                    os.link(program, self.folder / name)
                else:
                    program.unlink()

    def end(self) -> None:
        """Publish the compiled programs, and remove the folder; not in a forked process."""
        if os.getpid() == self._pid:
            with suppress(OSError):
                _hand_on(self.folder)


def _locked(folder: Path) -> int | None:
    """Lock a process's folder until the lock is closed; None if its process is alive."""
    import fcntl  # missing in Python for Windows

    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _hand_on(folder: Path) -> None:
    """Move the programs that only this folder has to the place where later processes find them."""
    for program in folder.glob("*.pb"):  # TensorFlow renames a file when it is whole
        if program.stat().st_nlink == 1:
            program.rename(folder.parent / f"{program.name}.{_crc(program)}")
    shutil.rmtree(folder, ignore_errors=True)


def _collect(root: Path) -> None:
    """Publish the programs of processes that were killed."""
    for folder in root.glob("*/.process-*"):
        with suppress(OSError):
            if (folder / "lock").exists():
                lock = _locked(folder)
                if lock is not None:
                    _hand_on(folder)
                    os.close(lock)
            elif time.time() - folder.stat().st_mtime > _MAX_BUILD_SECONDS:
                _hand_on(folder)


def _shrink(root: Path, limit: int) -> None:
    """Remove the oldest programs of any kind until the others are within the limit."""
    found = []
    for program in root.glob("*/[!.]*"):
        with suppress(FileNotFoundError):
            status = program.stat()
            found.append((status.st_mtime, status.st_size, program))
    total = sum(size for _, size, _ in found)
    for _, size, program in sorted(found):
        if total <= limit:
            break
        program.unlink(missing_ok=True)
        total -= size
    for kind in root.iterdir():
        with suppress(OSError):  # not empty
            if time.time() - kind.stat().st_mtime > _MAX_BUILD_SECONDS:
                kind.rmdir()


def _kind() -> str | None:
    """Compute a digest of everything besides its source on which a program depends.

    None if it is not known.
    """
    versions = [_version("tensorflow", "tensorflow-cpu", "tf-nightly"), _version("keras-gru")]
    processor = _processor()
    if versions[0] is None or processor is None or sys.platform == "win32":
        return None
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "TF_XLA_FLAGS")]
    parts = [versions, platform.machine(), processor, os.cpu_count(), flags]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _version(*packages: str) -> str | None:
    """Return the version of the first of these packages that is installed."""
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return None


def _processor() -> list[str] | None:
    """Return model and features of the processors, as reported by Linux."""
    try:
        lines = _CPU_INFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    fields = (line.partition(":") for line in lines)
    return sorted({f"{name.strip()}:{v.strip()}" for name, _, v in fields
                   if name.strip() in _CPU_FIELDS}) or None  # fmt: skip


def _has_gpu() -> bool:
    """Tell whether TensorFlow may find a GPU, whose programs depend on other things."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return Path("/dev/kfd").exists() or any(Path("/dev").glob("nvidia[0-9]*"))


def _user_cache() -> Path:
    """Return the user's cache folder by the XDG Base Directory Specification."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".cache"


def _is_private(folder: Path) -> bool:
    """Tell whether no other user can put programs there."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _crc(path: Path) -> str:
    return f"{zlib.crc32(path.read_bytes()):08x}"
