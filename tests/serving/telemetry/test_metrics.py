"""Prometheus text: by hand, by Prometheus' own parser, and from the running server."""

import asyncio
import pickle
import re
import time

import httpx
import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.engine.predictor import CountedSession
from gru_serving.engine.runtime import open_graph_session
from gru_serving.errors import ServingError
from gru_serving.server.rest.app import metrics_page
from gru_serving.telemetry.metrics import (
    DEFAULT_PATH,
    Counter,
    Histogram,
    Metrics,
    ProcessFigures,
    VersionMetrics,
)
from gru_serving.telemetry.request_record import RequestRecord
from tests.serving.messages import BOTH, HALF, multi_inference, refused, regression
from tests.serving.saved_models import publish
from tests.serving.scrape import metrics_of, parsed, rendered
from tests.serving.servers import REPOSITORY, flags_for, running, wait_until


def test_counter():
    counter = Counter(":a:b", ("m", "s"))
    counter.add("x", "OK")
    counter.add("x", "OK", by=2)
    counter.add('q"\\\n', "NOT_FOUND")
    assert list(counter.lines()) == [
        ':a:b{m="q\\"\\\\\\n",s="NOT_FOUND"} 1',
        ':a:b{m="x",s="OK"} 3',
    ]


def test_no_labels():
    counter = Counter("n", ())
    counter.add()
    assert list(counter.lines()) == ["n{} 1"]


def test_buckets_are_open_above():
    histogram = Histogram("h", ("m",), (1, 2, 4))
    for value in (0.5, 1, 2, 2, 100):
        histogram.observe(value, "x")
    assert list(histogram.lines()) == [
        'h_bucket{m="x",le="1"} 1',
        'h_bucket{m="x",le="2"} 2',
        'h_bucket{m="x",le="4"} 4',
        'h_bucket{m="x",le="+Inf"} 5',
        'h_sum{m="x"} 105.5',
        'h_count{m="x"} 5',
    ]


def test_sum_of_own_latencies_grows_by_every_request():
    """Even after weeks: with six digits, the requests of a minute would not show."""
    parser = pytest.importorskip("prometheus_client.parser")
    metrics = Metrics()
    count = VersionMetrics(metrics)
    record = RequestRecord("REST", "POST", model="m", version=1, seconds=1e6)
    sums = []
    for seconds in (1e6, 0.0005):
        record.seconds = seconds
        count(record)
        (sum_,) = [
            sample.value
            for family in parser.text_string_to_metric_families(rendered(metrics).decode())
            for sample in family.samples
            if sample.name == "gru_serve:request_latency_sum"
        ]
        sums.append(sum_)
    assert sums[1] - sums[0] == pytest.approx(500, rel=1e-3)


@pytest.mark.parametrize(
    ("metric", "first", "second", "count", "last"),
    [
        ("request_latency", "10", "18", 33, 10 * 1.8**32),
        ("runtime_latency", "10", "18", 33, 10 * 1.8**32),
        ("model_warmup_latency", "10", "18", 33, 10 * 1.8**32),
        ("queuing_latency", "100", "120", 52, 100 * 1.2**51),
        ("padding_size", "1", "2", 14, 2**13),
        ("input_batch_size", "1", "2", 14, 2**13),
        ("processed_batch_size", "1", "2", 14, 2**13),
        ("request_example_counts", "1", "2", 15, 2**14),
    ],
)
def test_bounds_of_histograms(metric, first, second, count, last):
    histogram = getattr(Metrics(), metric)
    labels = ["x"] * len(histogram.labels)
    histogram.observe(0.5, *labels)
    buckets = [line for line in histogram.lines() if "_bucket" in line]
    assert len(buckets) == count + 1
    assert f'le="{first}"}} 1' in buckets[0]
    assert f'le="{second}"}} 1' in buckets[1]
    assert float(buckets[-2].partition('le="')[2].partition('"')[0]) == pytest.approx(last, 1e-5)
    assert 'le="+Inf"' in buckets[-1]


def test_names_and_labels_of_the_contract():
    prefix = ":tensorflow:serving:"
    batching = f"{prefix}batching_session:"
    expected = {
        f"{prefix}request_count": ("counter", ("model_name", "status")),
        f"{prefix}request_latency": ("histogram", ("model_name", "API", "entrypoint")),
        f"{prefix}runtime_latency": ("histogram", ("model_name", "API", "runtime")),
        f"{prefix}request_example_counts": ("histogram", ("model",)),
        f"{prefix}request_example_count_total": ("counter", ("model",)),
        f"{prefix}request_log_count": ("counter", ("model_name", "status")),
        f"{prefix}model_warmup_latency": ("histogram", ("model_path", "status")),
        f"{prefix}model_warmup_records_read": ("counter", ("model_path", "status")),
        f"{prefix}mlmd_map": ("gauge", ("model_name", "version")),
        f"{batching}queuing_latency": ("histogram", ("thread_pool_name",)),
        f"{batching}wrapped_run_count": ("counter", ()),
        f"{batching}padding_size": ("histogram", ("execution_batch_size",)),
        f"{batching}input_batch_size": ("histogram", ()),
        f"{batching}processed_batch_size": ("histogram", ()),
        ":tensorflow:cc:saved_model:load_attempt_count": ("counter", ("model_path", "status")),
        ":tensorflow:cc:saved_model:load_latency": ("counter", ("model_path",)),
        ":tensorflow:core:direct_session_runs": ("counter", ()),
        ":tensorflow:core:graph_runs": ("counter", ()),
        ":tensorflow:core:graph_run_time_usecs": ("counter", ()),
    }
    found = {one.name: (one.kind, one.labels) for one in Metrics().families()}
    assert {name: found.get(name) for name in expected} == expected


def test_metrics_of_several_processes_are_those_of_one():
    """Each request counts once, on the page as in sums, whichever process had it."""
    one, parts = Metrics(), [Metrics(), Metrics(), Metrics()]
    records = [VersionMetrics(metrics) for metrics in (one, *parts)]
    for metrics in (one, *parts):
        metrics.process = None  # its figures change from one look to the next
    for i in range(30):
        record = RequestRecord("REST", "r")
        record.model, record.version, record.status = (
            f"m{i % 2}",
            i % 4,
            ("OK", "NOT_FOUND")[i % 5 > 3],
        )
        record.seconds = 2.0 ** (i - 20)
        for metrics, note in ((one, records[0]), (parts[i % 3], records[1 + i % 3])):
            note(record)
            metrics.queuing_latency.observe(1.5**i, "pool")
            metrics.load_attempt_count.add(f"/m/{i % 3}", "success")
    for metrics in (one, *parts):
        metrics.model_runtime.set(1, "m", "1", "onnx")
    for metrics in (one, parts[0]):
        metrics.forget(model_path="/m/0")
    whole = Metrics()
    for metrics in parts:
        whole.absorb(pickle.loads(pickle.dumps(metrics.families())))
    assert rendered(whole) == rendered(one)
    assert whole.total("/tensorflow/cc/saved_model/load_attempt_count") == 30
    assert parts[2].total("/tensorflow/cc/saved_model/load_attempt_count") == 10


def test_figures_of_several_processes():
    """Memory and processor time add up; of descriptors those of the process with the most count."""
    families = ProcessFigures().families()
    whole = Metrics()
    for _ in range(2):
        whole.absorb(families)
    once = {one.name: next(one.lines()) for one in families}
    twice = {one.name: next(one.lines()) for one in whole.families() if one.name in once}
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"):
        assert float(twice[name].split()[1]) == 2 * float(once[name].split()[1]) > 0
    for name in ("process_open_fds", "process_max_fds", "process_start_time_seconds"):
        assert twice[name] == once[name]


def test_total_by_the_name_of_either_world():
    metrics = Metrics()
    metrics.request_count.add("m", "OK", by=2)
    metrics.request_count.add("n", "NOT_FOUND")
    assert metrics.total("/tensorflow/serving/request_count") == 3
    assert metrics.total(":tensorflow:serving:request_count") == 3
    assert metrics.total("/tensorflow/serving/nix") == 0
    assert metrics.total("/tensorflow/serving/request_latency") == 0


def test_sums_have_six_digits():
    histogram = Histogram("h", (), (1,))
    histogram.observe(1234567.0)
    assert list(histogram.lines())[-2] == "h_sum{} 1.23457e+06"


def test_times_are_microseconds(models, monkeypatch):
    metrics = Metrics()
    metrics.request("m", "Predict", "GRPC", "OK", time.perf_counter() - 1000)
    affine = open_graph_session(models / "affine" / "1")
    monkeypatch.setattr(affine, "run", lambda *_: time.sleep(0.05))
    CountedSession(affine, metrics).run({}, [])
    affine.close()
    counted = parsed(rendered(metrics))
    (latency,) = counted[":tensorflow:serving:request_latency_sum"].values()
    assert latency == pytest.approx(1e9, rel=0.1)
    assert 50_000 <= counted[":tensorflow:core:graph_run_time_usecs"][()] < 10_000_000


def test_only_good_requests_have_a_latency():
    metrics = Metrics()
    metrics.request("m", "Predict", "GRPC", "OK", time.perf_counter())
    for _ in range(2):
        metrics.request("m", "Predict", "GRPC", "NOT_FOUND", time.perf_counter())
    with pytest.raises(ServingError), metrics.runtime("m", "Predict"):
        raise ServingError("no")
    families = parsed(rendered(metrics))
    assert families[":tensorflow:serving:request_count"] == {
        ("m", "OK"): 1,
        ("m", "NOT_FOUND"): 2,
    }
    assert b'request_latency_count{model_name="m",API="Predict",entrypoint="GRPC"} 1\n' in (
        rendered(metrics)
    )
    assert b"runtime_latency{" not in rendered(metrics)
    assert b"runtime_latency_count" not in rendered(metrics)


def test_page_has_the_types_of_all_metrics_by_name():
    metrics = Metrics()
    metrics.include(Counter("a:metric", ()))
    lines = rendered(metrics).decode().splitlines()
    at = lines.index("# TYPE a:metric counter")
    assert lines[at + 1] == "# TYPE gru_serve:model_runtime gauge"
    assert "# TYPE :tensorflow:serving:mlmd_map gauge" in lines
    assert lines == sorted(lines, key=lambda line: line.split()[2])


def test_bytes_that_are_no_text_do_not_break_the_page():
    metrics = Metrics()
    metrics.request_count.add(b"\xff".decode("utf-8", "surrogateescape"), "OK")
    assert rb'model_name="\\udcff"' in rendered(metrics)


def test_names_of_clients_take_no_more_than_so_much_memory():
    metrics = Metrics()
    metrics.request("mine", "Predict", "GRPC", "OK", 0.0)
    for name in ("x" * 257, *map(str, range(1500))):
        metrics.request(name, "", "REST", "NOT_FOUND", 0.0)
    metrics.request("mine", "", "REST", "NOT_FOUND", 0.0)
    metrics.request("7", "", "REST", "INTERNAL", 0.0)
    late = {("late", status): 1.0 for status in ("OK", "UNAVAILABLE")}
    for name, status in late:
        metrics.request(name, "", "REST", status, 0.0)
    found = parsed(rendered(metrics))[":tensorflow:serving:request_count"]
    assert found == {
        **{(str(index), "NOT_FOUND"): 1.0 for index in range(1000)},
        ("(others)", "NOT_FOUND"): 501.0,
        ("mine", "OK"): 1.0,
        ("mine", "NOT_FOUND"): 1.0,
        ("7", "INTERNAL"): 1.0,
        **late,
    }


def test_running_server(server):
    path = "/monitoring/prometheus/metrics"
    page = f"{server.rest}{path}"
    one = {"x": np.ones((1, 3)), "b": np.zeros((1, 1))}
    names = {"rest": ("predict", "REST"), "grpc": ("Predict", "GRPC")}
    before = metrics_of(server)
    for transport in names:
        with connect(getattr(server, transport)) as client:
            for _ in range(3):
                client.predict(one, "affine")
            with pytest.raises(ServingError):
                client.predict({"x": np.ones((1, 4)), "b": np.zeros((1, 1))}, "affine")
    response = httpx.get(page, trust_env=False)
    assert response.headers["content-type"] == "text/plain"
    after = parsed(response.content)
    for method in ("POST", "HEAD", "DELETE"):
        assert httpx.request(method, page, trust_env=False).status_code == 200

    def growth(metric, *labels):
        return after[metric][labels] - before.get(metric, {}).get(labels, 0)

    prefix = ":tensorflow:serving:"
    # Over REST the client's metadata requests count too: before the first call, and when refused.
    assert growth(f"{prefix}request_count", "affine", "OK") == 3 + 3 + 2
    assert growth(f"{prefix}request_count", "affine", "INVALID_ARGUMENT") == 2
    for name, entrypoint in names.values():
        assert growth(f"{prefix}request_latency_count", "affine", name, entrypoint) == 3
    assert growth(f"{prefix}runtime_latency_count", "affine", "Predict", "TF1") == 3 + 3
    attempts = after[":tensorflow:cc:saved_model:load_attempt_count"]
    loads = {labels for labels, count in attempts.items() if count}
    assert {status for _, status in loads} == {"success"}
    assert len(loads) == 5
    with_query = httpx.get(f"{page}?x=1", trust_env=False)
    wanted = f"Unexpected path: {path}?x=1. Should be {path}"
    assert (with_query.status_code, with_query.text) == (400, wanted)
    assert "# TYPE :tensorflow:serving:request_count counter\n" in response.text
    assert "# HELP" not in response.text


def test_examples_of_multi_inference(server, stub):
    """Only those, and only if the run succeeds."""
    message = multi_inference(*BOTH, values=(1, 2, 3))
    failing = multi_inference(BOTH[0], ("nix", "regress"), values=(1, 2, 3))
    counts = ":tensorflow:serving:request_example_counts"
    total = ":tensorflow:serving:request_example_count"  # as the parser writes it
    before = metrics_of(server)
    assert len(stub.MultiInference(message, timeout=20).results) == 2
    regressed = stub.Regress(regression(HALF, "regress_x_to_y", 1, 2, 3), timeout=20)
    assert len(regressed.result.regressions) == 3
    refused(stub.MultiInference, failing)
    body = {"signature_name": "regress_x_to_y", "examples": [{"x": 1.0}]}
    url = f"{server.rest}/v1/models/half%2Fplus%3Atwo:regress"
    assert httpx.post(url, json=body, trust_env=False).status_code == 200
    after = metrics_of(server)
    for sample, growth in ((f"{counts}_count", 1), (f"{counts}_sum", 3), (total, 3)):
        assert after[sample][(HALF,)] - before.get(sample, {}).get((HALF,), 0) == growth
    # Three examples: below the bound 4, but not below 2.
    assert after[f"{counts}_bucket"][(HALF, "4")] > after[f"{counts}_bucket"].get((HALF, "2"), 0)


@pytest.mark.slow
def test_series_of_versions_begin_at_zero_and_go_with_them(models, tmp_path):
    """The tests of the alert on failed loads feed what this server exports."""
    yaml = pytest.importorskip("yaml")
    base = tmp_path / "base"
    publish(models, base, 1)
    flags = flags_for(models, tmp_path)[1:2]

    def series(server, name):
        return metrics_of(server).get(name, {})

    attempts = ":tensorflow:cc:saved_model:load_attempt_count"
    with (
        running(
            tmp_path / "log", "--model_name=m", f"--model_base_path={base}",
            "--max_num_load_retries=0", *flags,
        ) as server,
        connect(server.rest) as client,
    ):  # fmt: skip
        client.predict({"x": np.ones((1, 3)), "b": np.ones((1, 1))}, "m")
        assert series(server, attempts) == {(f"{base}/1", "fail"): 0, (f"{base}/1", "success"): 1}
        assert {key[:2] for key in series(server, "gru_serve:request_count")} == {("m", "1")}
        (tmp_path / "2").mkdir()
        (tmp_path / "2" / "saved_model.pb").write_bytes(b"\xff")
        (tmp_path / "2").rename(base / "2")
        wait_until(lambda: series(server, attempts).get((f"{base}/2", "fail")) == 1, server)
        assert series(server, attempts)[f"{base}/2", "success"] == 0
        assert series(server, attempts)[f"{base}/1", "fail"] == 0
        publish(models, base, 3, source=3)
        wait_until(lambda: (f"{base}/1", "success") not in series(server, attempts), server)
        assert series(server, attempts)[f"{base}/3", "success"] == 1
        assert series(server, "gru_serve:request_count") == {}
        labels = {name for name, _, version in series(server, "gru_serve:model_runtime")}
        assert labels == {"m"}
    rules = yaml.safe_load((REPOSITORY / "docker/prometheus/alerts_test.yml").read_text())
    fed = {
        (re.search('model_path="([^"]+)"', one["series"])[1], one["values"].split("x")[0])
        for test in rules["tests"]
        for one in test["input_series"]
        if one["series"].startswith(attempts) and 'status="fail"' in one["series"]
    }
    # One that loads, one whose failure no scrape comes before, and one that fails later.
    assert fed == {("/m/1", "0"), ("/m/2", "_"), ("/m/3", "0")}


def test_the_page_is_written_in_pieces():
    """Between which the event loop answers requests; the page is the same."""
    metrics = Metrics()
    for model in range(100):
        metrics.request(f"m{model}", "Predict", "REST", "OK", time.perf_counter())

    async def ask():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        others = asyncio.ensure_future(count())
        page = await metrics_page(metrics, {"query_string": b"", "path": DEFAULT_PATH})
        others.cancel()
        return page.body, turns

    body, turns = asyncio.run(ask())
    assert body == rendered(metrics)
    assert turns >= body.count(b"\n") / 500
