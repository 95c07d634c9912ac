"""Trial loads of versions in a separate process, which protect the server from crashes.

TensorFlow does not check everything in a graph: some faults crash the process. The child loads the
version, runs its warmup requests and ends. A crash is reported; an error is left to the server's
own load, which has the text for it.

One process imports TensorFlow and forks for each version; it ends when it has been idle. Versions
that passed are remembered by the digests of their files.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING

from gru_serving.config.cpus import schedulable_cpus
from gru_serving.engine.trial_process import REFUSAL_STATUS, START_FAILURE, LastWords, TrialOutcome
from gru_serving.errors import Code, RefusedVersion, ResourceExhausted
from gru_serving.storage.digests import digest_of
from gru_serving.storage.version_files import files_of

if TYPE_CHECKING:
    from gru_serving.engine.load_options import LoadOptions
    from gru_serving.engine.load_watch import LoadWatch

log = logging.getLogger(__name__)

_PACKAGES = Path(__file__).resolve().parents[2]
_MAX_CHARACTERS = 500
_IDLE_SECONDS = 30.0
_MOST_REMEMBERED = 1000
_RUNTIMES = ("tensorflow", "tensorflow-cpu", "onnxruntime", "ai-edge-litert", "keras-gru")


class Trials:
    """Tries versions, as many at once as there are processors.

    Args:
        idle_seconds: Time without a trial after which the process for them ends.
    """

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._slots = threading.BoundedSemaphore(schedulable_cpus())
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def try_version(self, directory: Path, options: LoadOptions, watch: LoadWatch) -> bool:
        """Load a version and run its warmup requests in a child process.

        Args:
            directory: Directory of the version.
            options: Options of the load in this process.
            watch: Watch that ends the trial; its time begins when it is this trial's turn.

        Returns:
            Whether the version loaded in the child.

        Raises:
            RefusedVersion: The child died.
            ResourceExhausted: The child could not be started.
            ServingError: The time is over, or the server stops.
        """
        while not self._slots.acquire(timeout=0.1):
            watch.check()
        try:
            watch.begin()
            outcome = self._outcome(directory, options, watch)
        finally:
            self._slots.release()
        if outcome.status == START_FAILURE:
            raise ResourceExhausted(f"cannot try {directory}: {outcome.words}")
        if outcome.status not in (0, REFUSAL_STATUS):
            words = "".join(c if c.isprintable() else " " for c in outcome.words)[:_MAX_CHARACTERS]
            raise RefusedVersion(
                f"loading {directory} in a trial process ended with {_name(outcome.status)}: "
                f"{words}",
                Code.INTERNAL,
            )
        return outcome.status == 0

    def close(self, seconds: float = 0.0) -> None:
        """End the trial process and all of its trials.

        Args:
            seconds: Time to wait for its end.
        """
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close(seconds)

    def _outcome(self, directory: Path, options: LoadOptions, watch: LoadWatch) -> TrialOutcome:
        watch.check()
        with self._lock:
            process = self._process
            begun = None if process is None else process.begin(directory, options)
            if process is None or begun is None:
                try:
                    self._process = process = _Process(self._idle_seconds)
                except OSError as error:
                    raise ResourceExhausted(
                        f"cannot start a process to try {directory} in: {error}"
                    ) from None
                begun = process.begin(directory, options)
        if begun is None:
            raise ResourceExhausted(f"the process to try {directory} in has ended at once")
        number, outcome = begun
        with watch.interrupting(lambda: process.end(number)):
            return outcome.result()


class _Process:
    """The child process, and the thread that reads its answers.

    Args:
        idle_seconds: Time without a trial after which it ends.
    """

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._trials: dict[int, Future[TrialOutcome]] = {}
        self._count = 0
        self._is_open = True
        self._control, theirs = Pipe()
        environment = {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "-1",  # this process may hold all the memory of the devices
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        said, output = os.pipe()
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "gru_serving.engine.trial_process", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                cwd=_PACKAGES,
                env=environment,
                pass_fds=(theirs.fileno(),),
            )
        except OSError:
            os.close(said)
            self._control.close()
            raise
        finally:
            theirs.close()
            os.close(output)
        self._words = LastWords(said)
        self._thread = threading.Thread(target=self._read, name="trials", daemon=True)
        self._thread.start()

    def begin(
        self, directory: Path, options: LoadOptions
    ) -> tuple[int, Future[TrialOutcome]] | None:
        """Begin a trial.

        Returns its number and a queue for its outcome, or None if the process has ended.
        """
        with self._lock:
            if not self._is_open:
                return None
            self._count += 1
            number, outcome = self._count, Future[TrialOutcome]()
            self._trials[number] = outcome
            # If the child is dead, its last output is the outcome.
            with contextlib.suppress(OSError):
                self._control.send((number, (directory, options)))
        return number, outcome

    def end(self, number: int) -> None:
        """End a trial without waiting for its process."""
        with self._lock:
            outcome = self._trials.pop(number, None)
            with contextlib.suppress(OSError):
                self._control.send((number, None))
        if outcome is not None:
            outcome.set_result(TrialOutcome(number, REFUSAL_STATUS, "it was ended"))

    def close(self, seconds: float) -> None:
        """End the process and all of its trials; wait at most this many seconds."""
        with self._lock, contextlib.suppress(OSError):
            self._control.send(None)
        self._thread.join(seconds)

    def _read(self) -> None:
        """Deliver the outcomes until the child ends or has been idle."""
        words = threading.Thread(target=self._listen, name="trial", daemon=True)
        words.start()
        with contextlib.suppress(EOFError, OSError):
            while True:
                if self._control.poll(self._idle_seconds):
                    outcome = TrialOutcome(*self._control.recv())
                    with self._lock:
                        waiting = self._trials.pop(outcome.number, None)
                    if waiting is not None:
                        waiting.set_result(outcome)
                elif self._is_idle():
                    break
        with self._lock:
            self._is_open = False
            left, self._trials = self._trials, {}
            self._control.close()
        status = self._child.wait()
        words.join(5)  # a grandchild may keep the pipe open
        for number, waiting in left.items():
            waiting.set_result(TrialOutcome(number, status or 1, self._words.text()))

    def _is_idle(self) -> bool:
        with self._lock:
            self._is_open = bool(self._trials)
            return not self._is_open

    def _listen(self) -> None:
        while self._words.is_open:
            self._words.read()


class TriedVersions:
    """The versions that passed their trial, remembered over restarts in a folder.

    A version is identified by the bytes of all its files, the options of its load, and the packages
    that load it. The folder has a limited size, and is used only if nobody else can write to it.

    Args:
        folder: The folder; made when the first version is remembered.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_useless = False

    def key(self, directory: Path, options: LoadOptions, check: Callable[[], None]) -> str | None:
        """Return the name of a version in the folder; None if a file cannot be read.

        Args:
            directory: Directory of the version.
            options: Options of the load.
            check: Function that is called again and again meanwhile; may raise to end it.
        """
        told = hashlib.sha256()
        # None of these changes what is loaded.
        how = replace(
            options,
            batching=None,
            per_model_batching=False,
            seconds=0.0,
            signers=(),
            trial="never",
        )
        for part in (platform.python_version(), platform.machine(), repr(how), *_versions()):
            told.update(f"{part}\0".encode())
        try:
            for file in sorted(files_of(directory)):
                digest = digest_of(file, check=check)
                told.update(f"{file.relative_to(directory)}\0{digest.sha256}\0".encode())
        except OSError:
            return None
        return told.hexdigest()

    def __contains__(self, key: str) -> bool:
        path = self._folder / key
        try:
            if not self._is_private():
                return False
            os.utime(path)
        except OSError:
            return False
        return True

    def add(self, key: str) -> None:
        """Remember a version, and forget those that were not loaded for the longest time."""
        if self._is_useless:
            return
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            if not self._is_private():
                raise PermissionError(0, "others may write to it")
            (self._folder / key).touch(0o600)
            known = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime)
            for path in known[:-_MOST_REMEMBERED]:
                path.unlink(missing_ok=True)
        except OSError as error:
            self._is_useless = True
            log.info(
                "Versions are tried again at the next start: cannot remember them in %s: %s",
                self._folder, error.strerror,
            )  # fmt: skip

    def _is_private(self) -> bool:
        status = self._folder.stat()
        return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def default_folder() -> Path:
    """Return the folder of `TriedVersions` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~", ".cache").expanduser()
    return Path(cache, "keras-gru", "tried-versions")


def _versions() -> list[str]:
    found = []
    for package in _RUNTIMES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return found


def _name(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"
