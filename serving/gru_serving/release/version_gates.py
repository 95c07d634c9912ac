"""The gates before a label moves to a loaded version: its golden answers, and its speed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from gru_serving.client import Client, Target
from gru_serving.config.model_config_edit import RolloutError
from gru_serving.engine.golden import Engine, Request, VerificationError, read_golden
from gru_serving.engine.golden import replay as replay_golden
from gru_serving.errors import ServingError
from gru_serving.release.golden import client_engine
from gru_serving.release.rollout import Rollout
from gru_serving.release.rollout_history import Move

_RUNS, _FIRST = 30, 3


class GateError(RolloutError):
    """A version did not pass a gate."""


@dataclass(frozen=True)
class VersionGates:
    """Asks the server both versions' golden requests.

    Attributes:
        golden: Whether the new version must answer as at export.
        most_latency: Greatest ratio of the version's median latency to the old version's; None for
            any.
    """

    golden: bool = False
    most_latency: float | None = None

    def check(self, rollout: Rollout, moves: Sequence[Move]) -> None:
        """Ask the versions that labels move to.

        Raises:
            GateError: A version does not pass a gate.
        """
        for move in moves:
            if move.after is None or rollout.server is None:
                continue
            requests = _golden(rollout, move.after)
            new = client_engine(rollout.server, Target(rollout.model, move.after))
            if self.golden:
                _replay(requests, new, move.after)
                rollout.say(
                    f"golden: version {move.after} gives all {len(requests)} answers of its export"
                )
            if self.most_latency is not None and move.before is not None:
                self._compare(rollout, rollout.server, requests, move)

    def _compare(
        self, rollout: Rollout, server: Client, requests: Sequence[Request], move: Move
    ) -> None:
        assert self.most_latency is not None
        assert move.before is not None
        engines = [client_engine(server, Target(rollout.model, version))
                   for version in (move.before, move.after)]  # fmt: skip
        try:
            old, new = _medians(engines, requests[0])
        except ServingError as error:
            raise GateError(f"latency: version {move.before} or {move.after}: {error}") from error
        said = (
            f"latency: a request takes {new * 1e3:.2f} ms with version {move.after} and "
            f"{old * 1e3:.2f} ms with version {move.before}"
        )
        if new > self.most_latency * old:
            raise GateError(f"{said}; expected at most {self.most_latency:g} times as long")
        rollout.say(said)


def _golden(rollout: Rollout, version: int) -> list[Request]:
    try:
        return read_golden(rollout.directory(version))
    except VerificationError as error:
        raise GateError(f"version {version} has nothing to be checked with: {error}") from error


def _replay(requests: Sequence[Request], ask: Engine, version: int) -> None:
    try:
        replay_golden(requests, ask)
    except (VerificationError, ServingError) as error:
        raise GateError(f"golden: version {version}: {error}") from error


def _medians(engines: Sequence[Engine], request: Request) -> list[float]:
    """Seconds of each engine for one request, asked in turn, without the first few."""
    seconds: list[list[float]] = [[] for _ in engines]
    for _ in range(_RUNS + _FIRST):
        for ask, times in zip(engines, seconds, strict=True):
            began = time.perf_counter()
            ask(request)
            times.append(time.perf_counter() - began)
    return [statistics.median(times[_FIRST:]) for times in seconds]
