"""Waiting for something that another thread or process does."""

import time


def wait_until(done, seconds=60, seen=lambda: "it took too long"):
    """Polls until `done()` is true; fails with what `seen()` returns after this many seconds."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, seen()
        time.sleep(0.01)
