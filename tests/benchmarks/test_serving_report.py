"""The figures of the serving benchmark, from results with known ratios."""

import pytest

from benchmarks.serving.load_generator import _percentile
from benchmarks.serving.report import goals, save_plot


def load(clients, rows, *rates, p50=1000.0):
    rounds = [{"rate": rate, "p50": p50, "p99": 2 * p50} for rate in rates]
    return {"clients": clients, "rows": rows, "rounds": rounds}


RESULTS = {
    "versions": {},
    "left_out": {},
    "start_seconds": {"import and load": [3.0, 3.5, 9.0], "server, auto": [4.0, 6.0, 5.0]},
    "resident_mb": {"server, auto": [100.0, 150.0, 110.0]},
    "loads": {
        "bare session, threads": [load(1, 1, 700, p50=1200.0), load(4, 32, 500)],
        "this server, gRPC, default flags": [load(1, 1, 500, p50=1650.0), load(4, 32, 400)],
        "this server, gRPC, batching": [load(32, 1, 100, 3000, 3500)],
        "this server, REST, batching": [load(32, 1, 2000)],
        "empty server, grpc-aio": [load(32, 1, 4000)],
        "bare onnx session, threads": [load(1, 1, 3000, p50=300.0)],
        "this server, REST, TensorFlow, batching": [load(32, 1, 1000)],
        "MLServer": [load(32, 1, 500)],
        "BentoML": [load(32, 1, 800)],
    },
}


def test_goals_are_ratios_of_medians():
    lines = list(goals(RESULTS))
    assert "1 client: gRPC adds 450 us to the bare session (goal: 500)" in lines
    assert any("empty grpc-python server (asyncio): 0.75" in line for line in lines)
    assert any("4 clients, 32 rows: gRPC / bare session: 0.80" in line for line in lines)
    assert any("BentoML, the fastest framework: 2.50" in line for line in lines)
    assert not any("FastAPI" in line for line in lines)  # not measured
    assert any("one row, p50 against the bare session: 0.25 (goal: 0.3)" in line for line in lines)
    assert any("REST: 2.00 times the rate with TensorFlow (goal: 1.3)" in line for line in lines)
    assert lines[-1].startswith("server, auto: first answer 5.00 s after the process starts")
    assert lines[-1].endswith("110 MB resident")


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    save_plot(RESULTS, tmp_path / "serving.png")
    assert (tmp_path / "serving.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("line", "microseconds"),
    [("     50%  712.00us", 712), ("     50%    1.50ms", 1500), ("     50%    2.00s ", 2e6)],
)
def test_latencies_of_wrk(line, microseconds):
    assert _percentile(line, "50%") == microseconds
