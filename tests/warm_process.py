"""Python programs in forks of a process that has imported TensorFlow.

The import takes most of the time of a start, and a fork shares it. Each program still runs in a
process of its own, with its own sockets, signals and exit status. Tests of the start itself, and of
what a program imports, use `subprocess`.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PRELOADED = ["tensorflow", "gru_serving.commands.serve", "gru_serving.engine.version_loader"]
"""None of these imports Keras, which a server runs without."""
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
"""Read when TensorFlow is imported; the same for all programs."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class WarmProcess:
    """`python -m MODULE ARGUMENT ...`, with what tests use of `subprocess.Popen`.

    Args:
        module: To run.
        arguments: On its command line.
        stdout: An open file, to which is appended, or `subprocess.DEVNULL`.
        stderr: The same; it may be the same file.

    Attributes:
        pid: Of the process.
    """

    def __init__(self, module, *arguments, stdout, stderr):
        with _environment(), _discarded_stderr():
            forkserver.ensure_running()
        paths = [
            os.devnull if file == subprocess.DEVNULL else file.name for file in (stdout, stderr)
        ]
        environment = {**os.environ, **ENVIRONMENT}
        self._process = _context.Process(
            target=_run, args=(module, [str(each) for each in arguments], *paths, environment)
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        """The exit status; negative for a signal, None while the process runs."""
        return self._process.exitcode

    def poll(self):
        """The exit status, if there is one."""
        return self._process.exitcode

    def wait(self, timeout=None):
        """Wait for the end; returns the exit status.

        Raises:
            subprocess.TimeoutExpired: The process still runs.
        """
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a warm process", timeout)
        return self.returncode

    def send_signal(self, number):
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(module, arguments, stdout, stderr, environment):
    os.chdir(REPOSITORY)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # In a job in the background Ctrl-C would be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Appending, so that both may be the same file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for descriptor, path in ((1, stdout), (2, stderr)):
        file = os.open(path, flags, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    sys.argv = ["", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


@contextmanager
def _environment():
    """For the process that is forked, which imports TensorFlow."""
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _discarded_stderr():
    """What TensorFlow writes as it is imported must not look like output of the test that runs."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
