"""The gates of a promotion: golden answers, speed and shadow traffic before, the log after it."""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gru_serving.client import Client, Target
from gru_serving.config.model_config_edit import RolloutError
from gru_serving.drift.outcomes import Known
from gru_serving.drift.prediction_logs import log_files, read_log
from gru_serving.drift.watch import Report, Watch
from gru_serving.engine.golden import Engine, Request, VerificationError, read_golden
from gru_serving.engine.golden import replay as replay_golden
from gru_serving.errors import NotFound, ServingError
from gru_serving.release.rollout import Rollout
from gru_serving.release.rollout_history import Move
from gru_serving.release.verify import client_engine

_RUNS, _FIRST = 30, 3
_POLL_SECONDS = 2.0


class GateError(RolloutError):
    """A version did not pass a gate."""


@dataclass(frozen=True)
class VersionGates:
    """Sends the golden requests of both versions to the server.

    Attributes:
        golden: Whether the new version must answer as at export.
        most_latency: Greatest ratio of the version's median latency to the old version's; None for
            any.
    """

    golden: bool = False
    most_latency: float | None = None

    def check(self, rollout: Rollout, moves: Sequence[Move]) -> None:
        """Ask the versions to which labels move.

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
    """Measure the median seconds of each engine for one request, without the first few."""
    seconds: list[list[float]] = [[] for _ in engines]
    for _ in range(_RUNS + _FIRST):
        for ask, times in zip(engines, seconds, strict=True):
            began = time.perf_counter()
            ask(request)
            times.append(time.perf_counter() - began)
    return [statistics.median(times[_FIRST:]) for times in seconds]


@dataclass(frozen=True)
class ShadowGate:
    """Judges a version by the requests that it was asked as a shadow.

    Attributes:
        read_page: Function that reads the server's page of metrics.
        least: Number of compared requests without which nothing can be said.
        most_disagreed: Greatest share of compared requests with another answer.
        most_failed: Greatest share of requests that the shadow did not answer.
        most_latency: Greatest ratio of the median time of a run to that of the version before; None
            for any.
    """

    read_page: Callable[[], str]
    least: int = 1000
    most_disagreed: float = 0.01
    most_failed: float = 0.001
    most_latency: float | None = None

    def check(self, rollout: Rollout, moves: Sequence[Move]) -> None:
        """Judge the versions to which labels move.

        Raises:
            GateError: A version does not pass, or too few of its answers were compared.
            ServingError: The page cannot be read.
        """
        for move in moves:
            if move.after is not None:
                self._judge(rollout, move)

    def _judge(self, rollout: Rollout, move: Move) -> None:
        # In the extras of servers; those of clients do without.
        from prometheus_client.parser import text_string_to_metric_families

        if move.before is None:
            raise GateError(
                f"shadow: the label {move.label} points to no version whose answers those of "
                f"version {move.after} were compared with; leave out --gate shadow the first time"
            )
        counts: dict[str, float] = {}
        buckets: dict[str, list[tuple[float, float]]] = {"live": [], "shadow": []}
        pair = {
            "model_name": rollout.model,
            "version": str(move.before),
            "shadow_version": str(move.after),
        }
        for family in text_string_to_metric_families(self.read_page()):
            for sample in family.samples:
                labels = sample.labels
                if not pair.items() <= labels.items():
                    continue
                if "outcome" in labels:
                    counts[labels["outcome"]] = sample.value
                elif "answering" in labels and "le" in labels:
                    buckets[labels["answering"]].append((float(labels["le"]), sample.value))
        compared = counts.get("agreed", 0) + counts.get("disagreed", 0)
        disagreed, failed = counts.get("disagreed", 0), counts.get("failed", 0)
        said = (
            f"shadow: version {move.after} was compared with version {move.before} in "
            f"{compared:,.0f} requests, disagreed in {disagreed:,.0f} and failed in {failed:,.0f}"
        )
        if failed > self.most_failed * (compared + failed):
            raise GateError(
                f"{said}; expected at most {self.most_failed:.2%} to fail. The server's log says "
                "why they do"
            )
        if compared < self.least:
            shed, absent = counts.get("shed", 0), counts.get("absent", 0)
            raise GateError(
                f"{said} ({shed:,.0f} were shed, and {absent:,.0f} came while it was not loaded); "
                f"expected at least {self.least:,} compared. Put "
                f"shadow {{ version: {move.after} share: 1 }} into the model's part of "
                f"{rollout.path}, reload it, and promote when version {move.before} has answered "
                "that many"
            )
        if disagreed > self.most_disagreed * compared:
            raise GateError(
                f"{said}; expected at most {self.most_disagreed:.2%} to disagree. gru-serve diff "
                "shows where the two versions differ; a tolerance in the shadow's configuration "
                "allows for small differences of numbers"
            )
        live, shadow = (_median(buckets[side]) / 1e3 for side in ("live", "shadow"))
        said += f"; a run took {shadow:.3f} ms in the median, and {live:.3f} ms of version "
        said += f"{move.before}"
        if self.most_latency is not None and shadow > self.most_latency * live:
            raise GateError(f"{said}; expected at most {self.most_latency:g} times as long")
        rollout.say(said)


def _median(buckets: Sequence[tuple[float, float]]) -> float:
    """Estimate the median of a histogram, as Prometheus' `histogram_quantile` does.

    Args:
        buckets: Upper bound and cumulative count of each bucket, with that of infinity.
    """
    before, below = 0.0, 0.0
    half = max((count for _, count in buckets), default=0.0) / 2
    for bound, count in sorted(buckets):
        if count >= half and count > below:
            share = (half - below) / (count - below)
            return before + share * (bound - before) if bound < float("inf") else before
        before, below = bound, count
    return before


@dataclass(frozen=True)
class LiveGates:
    """Watches the prediction log for some time.

    Attributes:
        logs: Directory of the server's prediction log.
        seconds: Time to watch, in seconds.
        least_rows: Number of logged rows without which nothing can be said.
        drift: Whether a quantity may not shift that did not with the version before.
        least_accuracy: Share of right answers among texts whose outcome is known; None for any.
        outcomes: Labels of texts.
    """

    logs: Path
    seconds: float = 300.0
    least_rows: int = 200
    drift: bool = True
    least_accuracy: float | None = None
    outcomes: Known = field(default_factory=dict)

    def known(self, rollout: Rollout, label: str) -> frozenset[str]:
        """Name the quantities that have already shifted under the version of a label.

        Raises:
            RolloutError: The version is not on this disk.
            ServingError: The log cannot be read.
        """
        version = rollout.labels().get(label)
        if version is None:
            return frozenset()
        try:
            return _names_shifted(self._report(rollout, version))
        except NotFound:  # it has no reference
            return frozenset()

    def watch(self, rollout: Rollout, move: Move, known: frozenset[str]) -> None:
        """Watch until the time is over, or until enough rows show a fault.

        Args:
            rollout: Rollout that has moved the label.
            move: Change of the label.
            known: Result of `known` before the label moved, as reading a long log takes its time.

        Raises:
            GateError: The version does not pass, or too few requests were logged to tell.
            ServingError: The log cannot be read.
        """
        assert move.after is not None
        began, deadline = time.time(), time.monotonic() + self.seconds
        rollout.say(f"watching version {move.after} for {self.seconds:g} s")
        while True:
            time.sleep(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
            over = time.monotonic() >= deadline
            report = self._report(rollout, move.after, began)
            if report.rows >= self.least_rows:
                self._judge(report, known, over)
            elif over:
                raise GateError(
                    f"version {move.after} answered {report.rows} logged rows in {self.seconds:g} "
                    f"s; expected at least {self.least_rows}. Watch for longer, or log more of the "
                    "requests (--prediction_log_sampling_rate)"
                )
            if over:
                rollout.say(f"live: version {move.after} passed with {report.rows:,} rows")
                return

    def _report(self, rollout: Rollout, version: int, since: float = 0) -> Report:
        """Report on the files that were written to since a time, in seconds since 1970."""
        watch = Watch(rollout.directory(version), self.outcomes, model=rollout.model)
        with suppress(NotFound):  # nothing is logged so far
            for file in log_files(self.logs):
                if file.stat().st_mtime >= since:
                    watch.add(read_log(file))
        return watch.report()

    def _judge(self, report: Report, before: frozenset[str], over: bool) -> None:
        new = _names_shifted(report) - before
        if self.drift and new:
            said = "; ".join(
                f"{one.name} was {one.before} and is {one.now}"
                for one in report.findings
                if one.name in new
            )
            raise GateError(f"drift: {said}")
        if self.least_accuracy is None:
            return
        found = report.accuracy
        if found is None:
            if over:
                raise GateError("outcomes: no text that was asked is among them")
        elif found.high < self.least_accuracy or (over and found.share < self.least_accuracy):
            raise GateError(
                f"outcomes: {found.right} of {found.rows} answers were right, {found.share:.1%}; "
                f"expected {self.least_accuracy:.1%}"
            )


def _names_shifted(report: Report) -> frozenset[str]:
    return frozenset(one.name for one in report.findings if one.verdict == "shifted")
