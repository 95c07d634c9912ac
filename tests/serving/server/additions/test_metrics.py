"""Metrics beyond TF Serving's."""

import re
import time
from pathlib import Path

import numpy as np
import pytest

from tests.serving.messages import predict
from tests.serving.raw_http import HALF_URL
from tests.serving.server.additions.equipped import bearer
from tests.serving.servers import cpu_seconds


def test_metrics_with_version_and_signature(equipped, stub):
    parser = pytest.importorskip("prometheus_client.parser")

    def counts():
        with equipped.client() as client:
            page = client.get("/monitoring/prometheus/metrics").text
        return {
            (sample.name.removesuffix("_total"), *sorted(sample.labels.items())): sample.value
            for family in parser.text_string_to_metric_families(page)
            for sample in family.samples
        }

    def labels(entrypoint, **more):
        fixed = {"model_name": "half/plus:two", "version": "1", "signature": "serving_default"}
        return sorted({**fixed, "entrypoint": entrypoint, **more}.items())

    before = counts()
    stub.Predict(predict(x=np.float32([2])), timeout=20, metadata=bearer())
    with equipped.client() as client:
        client.post(f"{HALF_URL}:predict", json={"instances": [2.0]})
        client.post(f"{HALF_URL}:predict", json={"instances": ["text"]})
        wrong = {"instances": [2.0], "signature_name": "x" * 300}
        assert client.post(f"{HALF_URL}:predict", json=wrong).status_code == 400
    after = counts()
    bad = {"status": "INVALID_ARGUMENT"}
    for transport, more in (
        ("GRPC", {"status": "OK"}),
        ("REST", {"status": "OK"}),
        ("REST", bad),
        ("REST", {**bad, "signature": "(others)"}),
    ):
        key = ("gru_serve:request_count", *labels(transport, **more))
        assert after[key] - before.get(key, 0) == 1
    for transport in ("GRPC", "REST"):
        key = ("gru_serve:request_latency_count", *labels(transport))
        assert after[key] - before.get(key, 0) == 1
    # The request for the page is in progress itself.
    in_progress = {key[1]: value for key, value in after.items() if key[0].endswith("in_progress")}
    assert in_progress == {("entrypoint", "GRPC"): 0, ("entrypoint", "REST"): 1}
    status = Path(f"/proc/{equipped.server.process.pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024
    assert 0.5 < after[("process_resident_memory_bytes",)] / resident < 2
    cpu = cpu_seconds(equipped.server.process.pid)
    assert before[("process_cpu_seconds",)] <= after[("process_cpu_seconds",)] <= cpu + 0.1
    assert 10 < after[("process_open_fds",)] < after[("process_max_fds",)]
    assert abs(after[("process_start_time_seconds",)] - time.time()) < 1000
    logged = (":tensorflow:serving:request_log_count", ("model_name", "text"), ("status", "OK"))
    assert after.get(logged, 0) >= 0
