"""The child process of a trial: loads one version, and ends with its parent."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading

from gru_serving.errors import ServingError

REFUSED = 3
"""Exit status where the version was refused with an error."""


def main() -> int:
    """Take the version and the options from stdin, load, warm up.

    Returns:
        0 loaded; 3 refused with an error.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which ends this process
    directory, options = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from gru_serving.engine.version_loader import VersionLoader

    try:
        VersionLoader(options)(directory)
    except ServingError as error:
        sys.stderr.write(f"Error: {error.status}\n")
        return REFUSED
    return 0


def _end_with_parent() -> None:
    """Wait for the other end of stdin to go."""
    while sys.stdin.buffer.read(1):
        pass
    os._exit(REFUSED)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # what comes after the load is no part of the trial
