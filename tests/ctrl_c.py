"""A Python process that obeys Ctrl-C even if the tests run in the background, which ignores it."""

import sys

_START = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
WITH_CTRL_C = (sys.executable, "-c", _START)
