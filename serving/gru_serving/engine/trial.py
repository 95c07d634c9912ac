"""A trial load of a version in a separate process, so that a crash does not take the server down.

TensorFlow does not check everything in a graph: some faults crash the process. The child loads the
version, runs its warmup requests and ends. A crash is reported; an error that it survives is left
to the server's own load, which has the text for it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gru_serving.engine.trial_process import REFUSED
from gru_serving.errors import Code, RefusedVersion, ResourceExhausted

if TYPE_CHECKING:
    from gru_serving.engine.load_options import LoadOptions
    from gru_serving.engine.load_watch import LoadWatch

_PACKAGES = Path(__file__).resolve().parents[2]
_SHOWN = 500
# Last messages of absl and glibc; a stack trace follows them.
_LAST_WORDS = re.compile(
    rb"^F\d{4} |Check failed|^Fatal |^terminate called|^malloc|^free\(\)|Error: "
)


def try_version(directory: Path, options: LoadOptions, watch: LoadWatch) -> None:
    """Load a version and run its warmup requests in a child process.

    Args:
        directory: Of the version.
        options: As for the load in this process.
        watch: Ends it.

    Raises:
        RefusedVersion: The child died.
        ResourceExhausted: It could not be started.
        ServingError: The time is over, or the server stops.
    """
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",  # this process may hold all the memory of the devices
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "gru_serving.engine.trial_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=_PACKAGES,
            env=environment,
        )
    except OSError as error:
        raise ResourceExhausted(f"cannot start a process to try {directory} in: {error}") from None
    assert child.stdin is not None
    assert child.stderr is not None
    said = _LastWords(child.stderr)
    try:
        with watch.interrupting(child.kill):
            with contextlib.suppress(BrokenPipeError):  # it died already
                pickle.dump((directory, options), child.stdin)
                child.stdin.flush()  # not closed: the child ends when this end disappears
            status = child.wait()
    finally:
        child.kill()
        child.wait()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        words = said.join()
    if status not in (0, REFUSED):
        raise RefusedVersion(
            f"loading {directory} in a trial process ended with {_name(status)}: {words}",
            Code.INTERNAL,
        )


class _LastWords:
    """Reads a child's output, however much, and keeps the lines that explain its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._fatal = self._last = b""
        self._thread = threading.Thread(target=self._read, name="trial", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while line := self._stream.readline(4096):
                line = line.strip()
                self._last = line or self._last
                if not self._fatal and _LAST_WORDS.search(line):
                    self._fatal = line

    def join(self) -> str:
        """Those words, once the child has ended."""
        self._thread.join(5)  # a grandchild may keep the pipe open
        text = (self._fatal or self._last or b"it said nothing").decode("utf-8", "replace")
        return "".join(c if c.isprintable() else " " for c in text)[:_SHOWN]


def _name(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"
