"""The process in which versions are tried: it imports TensorFlow once and forks for each version.

Its command line names the descriptor of the connection to its parent. When the connection closes,
the process ends with its trials. Its priority is low, since the server beside it answers requests.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gru_serving.errors import ServingError

if TYPE_CHECKING:
    from gru_serving.engine.load_options import LoadOptions

REFUSAL_STATUS = 3
"""Exit status if the version was refused with an error."""
START_FAILURE = 4
"""Status of a trial for which the system gave no process."""

NICENESS = 10
"""Difference between the priority of trials and the server's."""

# macOS's own libraries do not survive a fork.
_START_METHOD = "spawn" if sys.platform == "darwin" else "fork"
_PIECE = 1 << 16
_LINE = 4096
# Last messages of absl and glibc; a stack trace follows them.
_LAST_WORDS = re.compile(
    rb"^F\d{4} |Check failed|^Fatal |^terminate called|^malloc|^free\(\)|Error: "
)


class TrialOutcome(NamedTuple):
    """The end of a trial.

    Attributes:
        number: Number of the trial.
        status: Exit status of its process, negative for a signal.
        words: The line of its output that explains its end.
    """

    number: int
    status: int
    words: str


class LastWords:
    """Reads the output of a process and keeps the lines that explain its end.

    Args:
        descriptor: End of a pipe, to be closed here.

    Attributes:
        is_open: Whether there may be more to read.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_open = True
        self._part = self._fatal = self._last = b""

    def read(self) -> None:
        """Read the available output; the descriptor is closed at its end."""
        piece = os.read(self.descriptor, _PIECE)
        *lines, self._part = (self._part + piece).split(b"\n")
        for line in lines if piece else [self._part]:
            self._keep(line.strip())
        self._part = self._part[:_LINE]
        if not piece:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        self.is_open = False
        os.close(self.descriptor)

    def _keep(self, line: bytes) -> None:
        self._last = line or self._last
        if not self._fatal and _LAST_WORDS.search(line):
            self._fatal = line

    def text(self) -> str:
        """Return the last lines of the process's output."""
        return (self._fatal or self._last or b"it said nothing").decode("utf-8", "replace")


class _Trial(NamedTuple):
    """A trial in progress."""

    process: multiprocessing.process.BaseProcess
    words: LastWords


def serve(control: Connection) -> None:
    """Try versions until the other end of the connection is closed.

    Args:
        control: Brings `(number, version)`, where the version is `(directory, options)`, or None to
            end the trial of that number; brings None to end all. Takes the fields of
            `TrialOutcome`s.
    """
    trials: dict[int, _Trial] = {}
    try:
        while True:
            ready = wait([control, *(one for trial in trials.values() for one in _signs(trial))])
            if control in ready:
                order = control.recv()
                if order is None:
                    return
                number, version = order
                if version is None:
                    if number in trials:
                        trials[number].process.kill()
                elif (trial := _start(control, *version)) is not None:
                    trials[number] = trial
                else:
                    control.send((number, START_FAILURE, "no process could be started"))
            for number, trial in list(trials.items()):
                if trial.words.is_open and trial.words.descriptor in ready:
                    trial.words.read()
                if trial.process.sentinel in ready:
                    control.send(tuple(_outcome(number, trials.pop(number))))
    except (EOFError, OSError):  # the server is gone
        return
    finally:
        for trial in trials.values():
            trial.process.kill()


def _signs(trial: _Trial) -> list[int]:
    """List the descriptors that show output or the end of a trial."""
    words = [trial.words.descriptor] if trial.words.is_open else []
    return [trial.process.sentinel, *words]


def _outcome(number: int, trial: _Trial) -> TrialOutcome:
    trial.process.join()
    if trial.words.is_open:
        os.set_blocking(trial.words.descriptor, False)  # a grandchild may keep the pipe open
        with contextlib.suppress(BlockingIOError):
            while trial.words.is_open:
                trial.words.read()
    if trial.words.is_open:
        trial.words.close()
    return TrialOutcome(number, trial.process.exitcode or 0, trial.words.text())


def _start(control: Connection, directory: Path, options: LoadOptions) -> _Trial | None:
    """Begin a trial; None if the system gives no process for it."""
    from gru_serving.engine import version_loader  # noqa: F401 (for this trial and later ones)
    from gru_serving.engine.runtime import import_runtime

    import_runtime(directory, options)
    context: Any = multiprocessing.get_context(_START_METHOD)
    inherited = control if _START_METHOD == "fork" else None
    try:
        ours, theirs = context.Pipe(duplex=False)
    except OSError:
        return None
    with ours, theirs:
        process = context.Process(target=_try, args=(inherited, theirs, directory, options))
        try:
            process.start()
        except OSError:
            return None
        return _Trial(process, LastWords(os.dup(ours.fileno())))


def _try(
    inherited: Connection | None, output: Connection, directory: Path, options: LoadOptions
) -> None:
    """Load a version in this process, which ends with the status."""
    if inherited is not None:
        inherited.close()
    os.dup2(output.fileno(), 2)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_after, args=(parent.join,), daemon=True).start()
    from gru_serving.engine.version_loader import VersionLoader

    status = 0
    try:
        VersionLoader(options)(directory)
    except ServingError as error:
        sys.stderr.write(f"Error: {error.status}\n")
        status = REFUSAL_STATUS
    except BaseException as error:
        sys.stderr.write(f"Error: {error!r}\n")
        status = 1
    sys.stderr.flush()
    os._exit(status)  # what comes after the load is no part of the trial


def _end_after(wait_for_parent: Callable[[], None]) -> None:
    wait_for_parent()
    os._exit(REFUSAL_STATUS)


if __name__ == "__main__":
    os.nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which ends this process
    serve(Connection(int(sys.argv[1])))
    os._exit(0)
