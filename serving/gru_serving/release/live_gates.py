"""The gates after a label has moved to a version: its live requests and answers."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gru_serving.drift.outcomes import Accuracy, Known
from gru_serving.drift.prediction_logs import log_files, read_log
from gru_serving.drift.watch import Report, Watch
from gru_serving.errors import NotFound
from gru_serving.release.rollout import Rollout
from gru_serving.release.rollout_history import Move
from gru_serving.release.version_gates import GateError

_POLL_SECONDS = 2.0


@dataclass(frozen=True)
class LiveGates:
    """Watches the prediction log for a while.

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
        """Name what has shifted already under the version of a label, so is not a new one's fault.

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
        """Wait until the time is over; ends as soon as enough rows show a fault.

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
            raise GateError(f"outcomes: {_said(found)}; expected {self.least_accuracy:.1%}")


def _names_shifted(report: Report) -> frozenset[str]:
    return frozenset(one.name for one in report.findings if one.verdict == "shifted")


def _said(found: Accuracy) -> str:
    return f"{found.right} of {found.rows} answers were right, {found.share:.1%}"
