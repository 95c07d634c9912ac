"""A report in Prometheus' text form, for node_exporter's textfile collector and the like."""

from __future__ import annotations

from gru_serving.drift.watch import Report
from gru_serving.telemetry.metrics import Gauge

PREFIX = "gru_watch:"


def exposition(report: Report, model: str, version: str) -> str:
    """The report's numbers, as samples with the labels `model_name` and `version`."""
    labels = ("model_name", "version")
    index = Gauge(f"{PREFIX}stability_index", (*labels, "quantity"))
    noise = Gauge(f"{PREFIX}stability_index_noise", (*labels, "quantity"))
    outside = Gauge(f"{PREFIX}share_outside", (*labels, "quantity"))
    for finding in report.findings:
        outside.set(finding.outside, model, version, finding.name)
        index.set(finding.stability.value, model, version, finding.name)
        noise.set(finding.stability.noise, model, version, finding.name)
    rows = Gauge(f"{PREFIX}rows", labels)
    rows.set(report.rows, model, version)
    accuracy = Gauge(f"{PREFIX}accuracy", (*labels, "bound"))
    if report.accuracy is not None:
        for bound in ("low", "share", "high"):
            accuracy.set(getattr(report.accuracy, bound), model, version, bound)
    return "".join(
        "\n".join((f"# TYPE {gauge.name} gauge", *lines, ""))
        for gauge in (index, noise, outside, rows, accuracy)
        if (lines := list(gauge.lines()))
    )
