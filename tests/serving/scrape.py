"""A page of metrics, as Prometheus reads it."""

import httpx
import pytest

from gru_serving.telemetry.metrics import DEFAULT_PATH, page


def parsed(text):
    """{metric: {label values: value}}, read by Prometheus' own parser."""
    parser = pytest.importorskip("prometheus_client.parser")
    found = {}
    text = text if isinstance(text, str) else text.decode()
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            # The parser gives counters the suffix of newer formats.
            found.setdefault(sample.name.removesuffix("_total"), {})[
                tuple(sample.labels.values())
            ] = sample.value
    return found


def page_of(server):
    """The page of a running server, as text."""
    return httpx.get(server.rest + DEFAULT_PATH, trust_env=False, verify=False).text


def metrics_of(server):
    """The page of a running server, parsed."""
    return parsed(page_of(server))


def rendered(metrics):
    """The page of these metrics."""
    return page(metrics.lines())
