"""The simulation of many nodes against what queueing theory says of few."""

import numpy as np
import pytest

from benchmarks import ray_nodes
from benchmarks.ray_nodes import CLIENTS, WARM_UP, Measured, Simulation

SECONDS = 200


@pytest.fixture(autouse=True)
def longer(monkeypatch):
    monkeypatch.setattr(ray_nodes, "SECONDS", SECONDS)


def test_one_node_is_two_queues_in_a_row():
    """Jackson: each behaves as an M/M/1 queue, in which a request spends 1 / (capacity - rate)."""
    latencies = Simulation(1, Measured(2e-3, 3e-3, 0), run=1e-3, rate=100).run().latencies
    assert len(latencies) == pytest.approx(100 * (SECONDS - WARM_UP), rel=0.02)
    assert np.mean(latencies) == pytest.approx(1 / (500 - 100) + 1 / (250 - 100), rel=0.05)


def test_clients_that_wait():
    """Mean value analysis: n clients keep two equal queues busy for n / (n + 1) of the time."""
    latencies = Simulation(1, Measured(4e-3, 4e-3, 0), run=0, rate=0).run().latencies
    expected = 250 * CLIENTS / (CLIENTS + 1)
    assert len(latencies) / (SECONDS - WARM_UP) == pytest.approx(expected, rel=0.03)


def test_a_node_that_dies_costs_no_answer(monkeypatch):
    """Those that it had are answered by another."""
    asked = []
    monkeypatch.setattr(Simulation, "_arrive", noting(asked, Simulation._arrive))
    monkeypatch.setattr(ray_nodes, "WARM_UP", -1.0)
    broken = Simulation(5, Measured(2e-3, 4e-3, 0), run=0, rate=500, dies=True).run()
    assert len(broken.latencies) == len(asked) - 1  # the last one comes after the end
    assert broken.failed > 0


def noting(asked, method):
    def call(self):
        asked.append(self._now)
        method(self)

    return call
