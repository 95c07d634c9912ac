"""Callers, and batching sessions whose batches are known."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.session import BatchingSession
from tests.serving.engine.batching.gate import Gate


@pytest.fixture
def callers():
    with ThreadPoolExecutor(64) as threads:
        yield threads


@pytest.fixture
def make(callers):
    """A batching session over a gate: make(threads=1, **options) -> (session, gate)."""
    made = []

    def build(threads=1, metrics=None, **options):
        gate = Gate()
        scheduler = BatchScheduler(PoolOptions(threads, "test"))
        made.append((scheduler, gate))
        return BatchingSession(gate, scheduler, BatchingOptions(**options), metrics), gate

    yield build
    for scheduler, gate in made:
        gate.open.set()
        scheduler.close()
        assert not [t for t in scheduler._threads if t.is_alive()]
