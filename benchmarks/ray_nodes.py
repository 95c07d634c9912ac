"""Ray Serve on 1 to 100 nodes: a simulation of a model, not a measurement.

python -m benchmarks.ray_nodes [milliseconds of the model's run]

Assumptions, which docs/how_to/many_machines.md explains: a node has one proxy and one replica, each
with a core of its own; a balancer spreads requests evenly over the proxies; a proxy takes the
shorter queue of two replicas drawn from all; requests arrive independently of each other; service
times are exponential, and their means are processor times that `benchmarks.ray_serve` measured.
When a node dies, what was in it fails and its clients ask again.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np

NODES = 1, 2, 5, 10, 20, 50, 100
LOAD = 0.5
"""Requests that arrive, as a share of what the proxies can answer."""
SECONDS, WARM_UP = 20.0, 2.0
DEATH, NOTICED, RETRY, HOP = 10.0, 5.0, 0.1, 0.0003
"""Seconds until a node dies, the balancer notices, a client asks again; and between two nodes."""
CLIENTS = 8
"""Clients of the measurement, of whom each waits for its answer."""
CONTROLLER = 0.025, 2e-5
"""Share of a core of the controller: measured, with one replica and with two; and for each pair of
nodes, as every proxy reports on every replica: a guess.
"""


class Measured(NamedTuple):
    """What `benchmarks.ray_serve` printed for one node and `CLIENTS` clients."""

    proxy: float
    """Seconds of processor time of a request in the proxy."""
    replica: float
    """Seconds in the replica, of which the model's run is a small part."""
    rate: float
    """Requests per second."""


MEASURED = {"gRPC": Measured(2.72e-3, 2.28e-3, 278), "REST": Measured(4.06e-3, 3.75e-3, 150)}


class Station:
    """A process that serves one request after the other."""

    def __init__(self, mean: float):
        self.mean, self.free, self.waiting = mean, 0.0, 0

    def finish(self, now: float, rng: random.Random) -> float:
        """Enqueue a request, and return when it is served."""
        self.free = max(self.free, now) + rng.expovariate(1 / self.mean)
        return self.free


class Simulation:
    """Requests to some nodes, of which one may die.

    With a rate of 0, `CLIENTS` clients ask one after the other; else requests arrive by themselves.
    """

    def __init__(self, nodes: int, costs: Measured, run: float, rate: float, dies: bool = False):
        self._rng, self._order = random.Random(0), count()
        self._events: list[tuple[float, int, Callable[..., None], tuple[float, ...]]] = []
        self._proxies = [Station(costs.proxy) for _ in range(nodes)]
        self._replicas = [Station(costs.replica + run) for _ in range(nodes)]
        self._dead: int | None = None
        self._closed = not rate
        self._dies, self._rate, self._now, self._alive = dies, rate, 0.0, list(range(nodes))
        self.latencies: list[float] = []
        self.failed = 0

    def run(self) -> Simulation:
        """Simulate all requests that arrive within the time."""
        if self._closed:
            for _ in range(CLIENTS):
                self._ask(0.0)
        else:
            self._at(self._rng.expovariate(self._rate), self._arrive)
        if self._dies:
            self._at(DEATH, self._die)
        while self._events:
            self._now, _, event, arguments = heapq.heappop(self._events)
            event(*arguments)
        return self

    def _at(self, when: float, event: Callable[..., None], *arguments: float) -> None:
        heapq.heappush(self._events, (when, next(self._order), event, arguments))

    def _arrive(self) -> None:
        if self._now < SECONDS:
            self._at(self._now + self._rng.expovariate(self._rate), self._arrive)
            self._ask(self._now)

    def _ask(self, began: float) -> None:
        noticed = self._dead is None or self._now > DEATH + NOTICED
        node = self._rng.choice(self._alive if noticed else range(len(self._proxies)))
        if node == self._dead:
            self._fail(began)
        else:
            self._at(self._proxies[node].finish(self._now, self._rng), self._route, began, node)

    def _route(self, began: float, proxy: int) -> None:
        if proxy == self._dead:
            self._fail(began)
            return
        two = self._rng.sample(self._alive, min(2, len(self._alive)))
        node = min(two, key=lambda each: self._replicas[each].waiting)
        replica, way = self._replicas[node], HOP if node != proxy else 0.0
        replica.waiting += 1
        done = replica.finish(self._now + way, self._rng) + way
        self._at(done, self._answer, began, proxy, node)

    def _answer(self, began: float, proxy: int, node: int) -> None:
        self._replicas[node].waiting -= 1
        if self._dead in (proxy, node):
            self._fail(began)
        elif began > WARM_UP:
            self.latencies.append(self._now - began)
        if self._closed and self._now < SECONDS:
            self._ask(self._now)

    def _fail(self, began: float) -> None:
        self.failed += 1
        self._at(self._now + RETRY, self._ask, began)

    def _die(self) -> None:
        self._dead = self._alive.pop()


def main(run: float) -> None:
    """Print a table for each transport."""
    print(f"simulated, not measured: a model of {run * 1e3:g} ms, {LOAD:.0%} of the capacity")
    for name, costs in MEASURED.items():
        if not run:
            asked = Simulation(1, costs, run, rate=0).run().latencies
            rate = len(asked) / (SECONDS - WARM_UP)
            print(
                f"{name}, one node, {CLIENTS} clients: {rate:.0f} a second; measured {costs.rate}"
            )
        print(
            "nodes  capacity/s  answered/s  p50 ms  p99 ms | one dies: p99 ms  failed | controller"
        )
        for nodes in NODES:
            capacity = nodes / max(costs.proxy, costs.replica + run)
            whole = Simulation(nodes, costs, run, LOAD * capacity).run().latencies
            p50, p99 = np.percentile(whole, [50, 99]) * 1e3
            lost = "nothing is left".rjust(24)
            if nodes > 1:
                broken = Simulation(nodes, costs, run, LOAD * capacity, dies=True).run()
                lost = f"{np.percentile(broken.latencies, 99) * 1e3:16.0f} {broken.failed:7d}"
            print(
                f"{nodes:5d} {capacity:11.0f} {len(whole) / (SECONDS - WARM_UP):11.0f} {p50:7.1f} "
                f"{p99:7.1f} | {lost} | {CONTROLLER[0] + CONTROLLER[1] * nodes**2:10.0%}"
            )


if __name__ == "__main__":
    main(float(sys.argv[1]) / 1e3 if len(sys.argv) > 1 else 0.0)
