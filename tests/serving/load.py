"""Clients that ask without pause while something happens to the server."""

import asyncio
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gru_serving.client import connect, connect_async

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
def load(server, *names, threads=1, burst=0):
    """This many clients per transport and model until the block ends.

    With `burst`, two more, one per transport, send this many requests at once, again and again.
    """
    seen, stop, lock = Load(), threading.Event(), threading.Lock()
    begun = time.monotonic()

    def note(model, answer):
        with lock:
            if isinstance(answer, Exception):
                seen.failures.append((time.monotonic() - begun, model, repr(answer)))
            else:
                seen.counted += 1
                seen.answers.setdefault(model, set()).add(float(answer["y"][0, 0]))

    def ask(url, model):
        with connect(url, timeout=30, retries=0) as client:
            while not stop.is_set():
                try:
                    note(model, client.predict(X, model))
                except Exception as error:
                    note(model, error)
                    time.sleep(0.05)
                time.sleep(0.002)

    async def ask_at_once(url):
        async with connect_async(url, timeout=60, retries=0) as client:
            while not stop.is_set():
                models = [names[number % len(names)] for number in range(burst)]
                calls = (client.predict(X, model) for model in models)
                for pair in zip(
                    models, await asyncio.gather(*calls, return_exceptions=True), strict=True
                ):
                    note(*pair)
                await asyncio.sleep(0.5)

    running = [
        threading.Thread(target=ask, args=(url, name))
        for url in (server.rest, server.grpc)
        for name in names
        for _ in range(threads)
    ]
    running += [
        threading.Thread(target=lambda url=url: asyncio.run(ask_at_once(url)))
        for url in (server.rest, f"grpc://{server.grpc}")
        if burst
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
