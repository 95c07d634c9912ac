"""A page of metrics, as Prometheus reads it."""

import pytest

from gru_serving.telemetry.metrics import page


def parsed(text):
    """{metric: {label values: value}}, read by Prometheus' own parser."""
    parser = pytest.importorskip("prometheus_client.parser")
    found = {}
    for family in parser.text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            # The parser gives counters the suffix of newer formats.
            found.setdefault(sample.name.removesuffix("_total"), {})[
                tuple(sample.labels.values())
            ] = sample.value
    return found


def rendered(metrics):
    """The page of these metrics."""
    return page(metrics.lines())
