"""Clients that send requests through the gateway without pause and check the answers."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

TEXTS = ["Starts badly but ends well.", "Starts well but ends badly."]
MODEL = "sentiment"


@dataclass
class Load:
    """What the clients saw.

    Attributes:
        seconds: That each answered request took.
        answers: The distinct answers.
        failures: (seconds since the start, transport, error).
    """

    seconds: list = field(default_factory=list)
    answers: set = field(default_factory=set)
    failures: list = field(default_factory=list)

    def figures(self):
        return (
            f"{len(self.seconds) + len(self.failures)} requests, {len(self.failures)} failed, "
            f"the slowest answer took {max(self.seconds):.2f} s"
        )


def answer(client, **target):
    """The scores of TEXTS, rounded to the digits that must agree on all replicas."""
    scores = client.predict(TEXTS, MODEL, **target)["scores"]
    return tuple(round(float(score), 5) for score in scores.flat)


@contextmanager
def steady_load(deployment, threads=2, retries=0):
    """This many clients per transport until the block ends."""
    seen, stop = Load(), threading.Event()
    begun = time.monotonic()

    def ask(scheme):
        with deployment.client(scheme, "operator", timeout=30, retries=retries) as client:
            while not stop.is_set():
                sent = time.monotonic()
                try:
                    seen.answers.add(answer(client))
                except Exception as error:
                    seen.failures.append((sent - begun, scheme, repr(error)))
                    time.sleep(0.05)
                else:
                    seen.seconds.append(time.monotonic() - sent)
                time.sleep(0.02)  # leave the replicas some time to load versions

    clients = [
        threading.Thread(target=ask, args=(scheme,))
        for scheme in ("https", "grpcs")
        for _ in range(threads)
    ]
    for client in clients:
        client.start()
    try:
        yield seen
    finally:
        stop.set()
        for client in clients:
            client.join()
