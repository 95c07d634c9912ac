"""Clients that ask without pause while something happens to the server."""

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gru_serving.client import connect

X = {"x": np.float32([[1, 0, 0]]), "b": np.float32([[0]])}
# The answers of versions 1 and 3 of the affine test model to X.
FIRST, THIRD = 1.0, 10.0


@dataclass
class Load:
    """What the clients saw.

    Attributes:
        answers: Values, by model.
        failures: (seconds since the start, model, error).
    """

    answers: dict = field(default_factory=dict)
    failures: list = field(default_factory=list)
    counted: int = 0

    def check(self, least=1):
        """Check that no request failed, and that each answer is one of the versions'."""
        assert self.failures == []
        assert self.counted >= least
        for model, values in self.answers.items():
            assert values <= {FIRST, THIRD}, (model, values)


@contextmanager
def load(server, *names, threads=1):
    """This many clients per transport and model until the block ends."""
    seen, stop, lock = Load(), threading.Event(), threading.Lock()
    begun = time.monotonic()

    def ask(url, model):
        with connect(url, timeout=30, retries=0) as client:
            while not stop.is_set():
                try:
                    value = float(client.predict(X, model)["y"][0, 0])
                except Exception as error:
                    with lock:
                        seen.failures.append((time.monotonic() - begun, model, repr(error)))
                    time.sleep(0.05)
                else:
                    with lock:
                        seen.counted += 1
                        seen.answers.setdefault(model, set()).add(value)
                time.sleep(0.002)

    running = [
        threading.Thread(target=ask, args=(url, name))
        for url in (server.rest, server.grpc)
        for name in names
        for _ in range(threads)
    ]
    for thread in running:
        thread.start()
    try:
        yield seen
    finally:
        stop.set()
        for thread in running:
            thread.join()


def resident(server):
    """Resident memory of the server, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024
