"""A session that can be held up, so that tests know which requests share a batch."""

import threading

import numpy as np

from gru_serving.errors import (
    InvalidArgument,
)

PATIENT = 30_000_000  # microseconds: no batch runs before it is full


class Gate:
    """A session that doubles its input, records the batches, and can be held up."""

    signatures = None

    def __init__(self):
        self.batches = []
        self.timeouts = []
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.closed = False

    def tensor(self, name):
        return name

    def run(self, feeds, fetches, timeout_ms=0):
        assert not self.closed
        x = feeds["x"]
        self.batches.append(x)
        self.timeouts.append(timeout_ms)
        self.entered.release()
        self.open.wait(20)
        if x.dtype.kind == "i" and (x < 0).any():
            raise InvalidArgument(f"negative: {x.min()}")
        answers = {"y": 2 * x, "scalar": np.float32(1), "short": x[:-1], **feeds}
        return [answers[name] for name in fetches]

    def close(self):
        self.closed = True


def ask(callers, session, x, fetches=("y",), timeout_ms=0):
    return callers.submit(session.run, {"x": np.asarray(x)}, list(fetches), timeout_ms)


def ask_with_lengths(callers, session, x):
    x = np.asarray(x)
    lengths = np.full(len(x), x.shape[1])
    return callers.submit(session.run, {"x": x, "length": lengths}, ["y"])


def enqueued(session):
    return sum(queue.rows for queue in session._queues.values())


def hold(callers, session, gate):
    """Occupy the only batch thread; whatever comes next has to wait."""
    gate.open.clear()
    first = ask(callers, session, [[0]])
    assert gate.entered.acquire(timeout=60)
    return first
