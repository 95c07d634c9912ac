"""Metrics that TF Serving lacks: per version and signature. Under a prefix of our own."""

from __future__ import annotations

import time

from gru_serving.telemetry.metrics import (
    MICROSECONDS,
    ClientNames,
    Counter,
    Gauge,
    Histogram,
    Metrics,
)
from gru_serving.telemetry.request_record import RequestRecord

PREFIX = "gru_serve:"
_LABELS = ("model_name", "version", "signature", "entrypoint")


class VersionMetrics:
    """Counts the requests that reached a version.

    Args:
        metrics: The page on which these appear too.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._signatures = ClientNames()
        self._count = Counter(f"{PREFIX}request_count", (*_LABELS, "status"))
        self._latency = Histogram(f"{PREFIX}request_latency", _LABELS, MICROSECONDS, digits=17)
        started = Gauge(f"{PREFIX}process_start_time_seconds", ())
        started.set(int(time.time()))
        metrics.include(self._count, self._latency, started)

    def __call__(self, record: RequestRecord) -> None:
        """Count one request."""
        if record.version is None:
            return
        good = record.status == "OK"
        signature = self._signatures.label(record.signature, good)
        labels = (record.model, str(record.version), signature, record.transport)
        self._count.add(*labels, record.status)
        if good:
            self._latency.observe(record.seconds * 1e6, *labels)
