"""Requests refused before they reach a model: counted by reason, and logged."""

import logging
import threading
import time
from enum import Enum

from gru_serving.telemetry.metrics import Counter

log = logging.getLogger(__name__)

_QUIET_SECONDS = 10.0


class Reason(Enum):
    """Reason for refusing a request; the values are those of the metric's label."""

    BUSY = "busy"
    QUEUE_FULL = "queue_full"
    TOO_LARGE = "too_large"
    NO_TOKEN = "no_token"
    FOREIGN_HOST = "foreign_host"
    FOREIGN_PAGE = "foreign_page"
    STOPPING = "stopping"


class Refusals:
    """Counts refused requests, and logs them with at most one line per reason in ten seconds.

    Args:
        counter: Counter with the label `reason`.
    """

    def __init__(self, counter: Counter | None = None) -> None:
        self._counter = counter or Counter("refusals", ("reason",))
        self._lock = threading.Lock()
        self._logged = dict.fromkeys(Reason, float("-inf"))
        self._unlogged = dict.fromkeys(Reason, 0)
        for reason in Reason:  # so that the first refusal is an increase
            self._counter.add(reason.value, by=0)

    def note(self, reason: Reason, detail: str) -> None:
        """Count one refused request.

        Args:
            reason: Reason of the refusal.
            detail: Explanation that the client gets, for the log.
        """
        self._counter.add(reason.value)
        now = time.monotonic()
        with self._lock:
            self._unlogged[reason] += 1
            if now < self._logged[reason] + _QUIET_SECONDS:
                return
            self._logged[reason], count = now, self._unlogged[reason]
            self._unlogged[reason] = 0
        log.warning("Refused %d request(s), %s: %s", count, reason.value, detail)
