"""Interleaved rounds, and the share of the processor that other processes used meanwhile."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.layer.worker import Key, Worker

# Share of one core that other processes may use in a round that counts.
MOST_FOREIGN = 0.1
# The system counts processor time in hundredths of a second: a round must last many of them.
_SHORTEST_ROUND = 0.5
_MOST_PASSES = 5
# Threads of the previous framework may still be spinning.
_PAUSE = 0.03
_STAT = Path("/proc/stat")


@dataclass
class Rounds:
    """The results of the rounds of one contest."""

    seconds: dict[Key, list[float]] = field(default_factory=dict)
    """Per contender the times of the rounds that count."""

    thrown_away: int = 0
    """Rounds in which others used more than `MOST_FOREIGN` of a core."""

    disturbed: int = 0
    """Such rounds that count all the same, because not enough others could be had."""


def measure(
    runners: dict[Key, Worker],
    rounds: int,
    pids: Sequence[int],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Rounds:
    """Time all contenders in turn, in reverse order in every second round.

    A round that others disturbed is done again, up to as many times as rounds were asked for;
    after that the least disturbed ones count too.

    Args:
        runners: per contender the worker that has it.
        rounds: how many are to count.
        pids: this process and all workers, which are not others.
        progress: is told how many rounds count so far, and how many were thrown away.
    """
    started = time.perf_counter()
    _one_pass(runners, list(runners))
    wall = time.perf_counter() - started
    passes = max(1, min(_MOST_PASSES, math.ceil(_SHORTEST_ROUND / wall)))
    clean: list[dict[Key, list[float]]] = []
    noisy: list[tuple[float, dict[Key, list[float]]]] = []
    worth_waiting = True
    while len(clean) < rounds and len(clean) + len(noisy) < 2 * rounds:
        order = list(runners)
        if len(clean) % 2:
            order.reverse()
        watch = Watch(pids)
        times: dict[Key, list[float]] = {key: [] for key in runners}
        for _ in range(passes):
            for key, seconds in _one_pass(runners, order).items():
                times[key].append(seconds)
        foreign = watch.foreign()
        if foreign <= MOST_FOREIGN:
            clean.append(times)
        else:
            noisy.append((foreign, times))
            worth_waiting = worth_waiting and _wait_for_quiet(pids)
        progress(len(clean), len(noisy))
    noisy.sort(key=lambda round_: round_[0])
    missing = rounds - len(clean)
    kept = clean + [times for _, times in noisy[:missing]]
    return Rounds(
        {key: [t for times in kept for t in times[key]] for key in runners},
        thrown_away=len(noisy) - missing,
        disturbed=missing,
    )


def _one_pass(runners: dict[Key, Worker], order: list[Key]) -> dict[Key, float]:
    found, last = {}, None
    for key in order:
        if last not in (None, runners[key]):
            time.sleep(_PAUSE)
        last = runners[key]
        found[key] = last.ask("seconds", key)
    return found


class Watch:
    """The processor time that other processes use from now on."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._started = time.perf_counter()
        self._before = self._others()

    def _others(self) -> float:
        return _busy() - sum(_own(pid) for pid in self._pids)

    def foreign(self) -> float:
        """Return the time of other processes as a share of one core; 0 if it is not reported."""
        wall = time.perf_counter() - self._started
        return max(0.0, self._others() - self._before) / wall


def counts_foreign_time() -> bool:
    """Whether the system reports how much of the processor others use."""
    return _STAT.exists()


def _wait_for_quiet(pids: Sequence[int], longest: float = 10.0) -> bool:
    give_up = time.perf_counter() + longest
    while time.perf_counter() < give_up:
        watch = Watch(pids)
        time.sleep(0.5)
        if watch.foreign() <= MOST_FOREIGN / 2:
            return True
    return False


def _busy() -> float:
    """Seconds that all cores together were busy or taken by the host (proc(5))."""
    if not _STAT.exists():
        return 0.0
    ticks = [int(v) for v in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    idle, waiting = 3, 4
    return (sum(ticks) - ticks[idle] - ticks[waiting]) / _ticks_per_second()


def _own(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields: list[Any] = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    user, system = 11, 12  # counted from the field after the command's name
    return (int(fields[user]) + int(fields[system])) / _ticks_per_second()


def _ticks_per_second() -> float:
    return float(os.sysconf("SC_CLK_TCK"))
