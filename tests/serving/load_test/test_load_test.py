"""The load generator against servers whose behaviour is known."""

import dataclasses
import subprocess
import sys
import time

import numpy as np
import pytest

from gru_serving.load_test.load import LoadResult, run_load
from gru_serving.load_test.plan import LoadPlan
from gru_serving.load_test.report import plot, show, summarize
from tests.serving.conftest import REPOSITORY
from tests.serving.strange_servers import web
from tests.waiting import wait_until

REQUEST = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


def measure(url, **options):
    plan = LoadPlan(url, [REQUEST], warmup=0.0, timeout=5.0, **options)
    return summarize(plan, run_load(plan))


def test_a_slow_server_is_charged_for_what_had_to_wait():
    # One connection, 50 ms per answer: 20 requests a second can be served, 40 are due.
    with web(200, b"{}", "application/json", 0.05) as (_, url):
        figures = measure(url, concurrency=1, rate=40.0, arrivals="constant", seconds=1.5)
    assert figures["ok"] == figures["requests"] == 60
    # A busy machine only makes answers later, so how fast they come is not checked.
    assert figures["service"]["p50"] >= 45
    assert figures["latency"]["max"] > 1000
    assert figures["latency"]["p50"] > 2 * figures["service"]["p50"]
    assert 0 < figures["throughput"] <= 21


def test_closed_loop_keeps_so_many_under_way():
    with web(200, b"{}", "application/json", 0.05) as (site, url):
        figures = measure(url, concurrency=4, processes=2, seconds=1.0)
        assert len(site.seen) == figures["ok"]
    assert 0 < figures["throughput"] <= 4 / 0.05
    assert figures["latency"] == figures["service"]
    assert figures["latency"]["p50"] >= 45


def test_throughput_counts_what_was_due_before_and_answered_within():
    # Each client gets an answer once a second; requests sent at 0.5 s and before count as well.
    with web(200, b"{}", "application/json", 1.0) as (_, url):
        plan = LoadPlan(url, [REQUEST], concurrency=8, warmup=1.5, seconds=3.0)
        figures = summarize(plan, run_load(plan))
    assert figures["ok"] == 3 * 8
    assert figures["throughput"] == pytest.approx(8)
    # One connection, 50 ms per answer, 200 a second due: the answers are to requests of the warmup.
    with web(200, b"{}", "application/json", 0.05) as (site, url):
        plan = LoadPlan(
            url,
            [REQUEST],
            concurrency=1,
            rate=200.0,
            arrivals="constant",
            warmup=1.0,
            seconds=1.0,
            timeout=0.5,
        )
        figures = summarize(plan, run_load(plan))
        assert 0 < figures["throughput"] <= len(site.seen) / 2 + 2
    # If the machine stalls, the oldest time out, and a few of the measured second get their turn.
    assert figures["ok"] <= 4


def test_load_ends_with_the_process_that_was_told_to_make_it():
    program = (
        "import sys\n"
        "from gru_serving.load_test.load import run_load\n"
        "from gru_serving.load_test.plan import LoadPlan\n"
        "if __name__ == '__main__':\n"
        f"    run_load(LoadPlan(sys.argv[1], [{REQUEST!r}], processes=2, seconds=60.0))\n"
    )
    with web(200, b"{}", "application/json", 0.01) as (site, url):
        process = subprocess.Popen([sys.executable, "-c", program, url], cwd=REPOSITORY)
        try:
            wait_until(lambda: len(site.seen) > 10, 60, lambda: "no load")
        finally:
            process.kill()
            process.wait()

        def nothing_comes():
            before = len(site.seen)
            time.sleep(1)
            return len(site.seen) == before

        wait_until(nothing_comes, 30, lambda: "the load goes on")


@pytest.mark.parametrize("status", [503, 400])
def test_errors_are_counted_by_code_and_not_timed(status, tmp_path):
    with web(status, b'{"error": "no"}', "application/json") as (_, url):
        figures = measure(url, concurrency=2, seconds=0.3)
    assert figures["ok"] == 0
    assert figures["latency"] is None
    assert figures["errors"] == {f"HTTP {status}": figures["requests"]}
    assert f"errors: HTTP {status} " in show(figures)


def test_a_server_that_is_gone_is_an_error_not_a_crash():
    with web(200, b"{}", "application/json") as (_, url):
        pass
    figures = measure(url, concurrency=1, rate=20.0, seconds=0.5)
    assert figures["errors"] == {"connection lost": figures["requests"]}


def test_figures_of_known_times(tmp_path):
    due = np.arange(100.0) / 100
    codes = np.array(["OK"] * 98 + ["HTTP 503"] * 2, object)
    sent, done = due + 0.010, due + 0.010 + np.arange(100.0) / 1000
    plan = LoadPlan("http://x", [b"x"], rate=100.0, seconds=1.0, warmup=0.0)
    result = LoadResult(due, sent, done, codes, 77, 0.95)
    figures = summarize(plan, result)
    assert figures["latency"]["p50"] == pytest.approx(10 + 48.5)
    assert figures["service"]["max"] == pytest.approx(97)
    assert figures["errors"] == {"HTTP 503": 2}
    assert figures["throughput"] == 77
    assert figures["generator_was_the_limit"]
    assert "use more --processes" in show(figures)
    plot(plan, result, tmp_path / "load.svg")
    assert (tmp_path / "load.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": 0.0}, "rate: expected a positive number"),
        ({"seconds": float("nan")}, "seconds: expected a positive number"),
        ({"warmup": -1.0}, "warmup: expected at least 0"),
        ({"processes": 9}, "processes: expected 1 up to the concurrency"),
        ({"arrivals": "bursts"}, "arrivals: expected poisson or constant"),
        ({"requests": []}, "requests: expected at least one"),
    ],
)
def test_plans_that_cannot_work(change, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(LoadPlan("http://x", [b"x"]), **change)
