"""A server of several processes: one set of versions, one page of metrics, one life."""

import json
import os
import signal
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import grpc
import numpy as np
import pytest
from google.protobuf import text_format

from gru_serving.client import connect
from gru_serving.errors import ServingError
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from keras_gru.convert.onnx_graph import OnnxGraph
from tests.serving.scrape import metrics_of
from tests.serving.servers import metrics_flag, running, start, wait_until

CONNECTIONS = 20
"""With two workers, all of these are with one of them once in half a million times."""
CONFIG = """
model_config_list {{
  config {{
    name: "m" base_path: "{base}" model_platform: "tensorflow"
    model_version_policy {{ {policy} }}
    {labels}
  }}
}}
"""


def publish(base, number):
    """Put a version in place that answers its number, for any input."""
    graph = OnnxGraph()
    x = graph.input("x", "float32", (None, 1))
    nothing = graph.add("Mul", x, np.float32([0]))
    graph.output("y", graph.add("Add", nothing, np.float32([number])), "float32", (None, 1))
    aside = base.parent / f"aside-{base.name}-{number}"
    aside.mkdir(parents=True)
    graph.write(aside / "model.onnx", "number")
    base.mkdir(exist_ok=True)
    aside.rename(base / str(number))


def config(base, policy="latest {}", **labels):
    pairs = "".join(
        f'version_labels {{ key: "{label}" value: {number} }} ' for label, number in labels.items()
    )
    return CONFIG.format(base=base, policy=policy, labels=pairs)


def children(pid):
    """Processes whose parent this is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@contextmanager
def fresh(tmp_path, *flags, ready=True):
    base = tmp_path / "m"
    if not base.exists():
        publish(base, 1)
    file = tmp_path / "models.config"
    if not file.exists():
        file.write_text(config(base))
    with running(
        tmp_path / "log",
        "--workers=2",
        f"--model_config_file={file}",
        metrics_flag(tmp_path),
        *flags,
        ready=ready,
        cold=True,  # it needs no TensorFlow
    ) as server:
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def server(place):
    with fresh(place) as server:
        yield server


def ask_each(server, path="", status=False):
    """What workers answer on connections of their own, and how often."""
    answers = Counter()
    url = f"/v1/models/m{path}"
    for _ in range(CONNECTIONS):
        with closing(HTTPConnection("localhost", server.rest_port, timeout=30)) as connection:
            if status:
                connection.request("GET", url)
            else:
                connection.request("POST", f"{url}:predict", b'{"instances": [[0]]}')
            answer = connection.getresponse()
            answers[answer.status, answer.read().decode()] += 1
    return answers


def reload(server, text, *metrics):
    """Have the server take another configuration, by whichever worker has the connection."""
    request = ReloadConfigRequest(metric_names=metrics)
    text_format.Merge(text, request.config)
    with grpc.insecure_channel(server.grpc) as channel:
        raw = channel.unary_unary("/tensorflow.serving.ModelService/HandleReloadConfigRequest")(
            request.SerializeToString(), timeout=60
        )
    return ReloadConfigResponse.FromString(raw)


def answered(server):
    """How many requests had a good answer, by the page of metrics."""
    return metrics_of(server)[":tensorflow:serving:request_count"].get(("m", "OK"), 0)


@contextmanager
def load(server, retries, threads=1):
    """Clients on both transports; yields (begin, end, answer) of their requests, and failures."""
    seen, failures, stop = [], [], threading.Event()

    def ask(url):
        while not stop.is_set():
            with connect(url, timeout=20, retries=retries) as client:
                for _ in range(20):
                    begun = time.monotonic()
                    try:
                        value = client.predict(np.float32([[0]]), "m")["y"].item()
                    except ServingError as error:
                        failures.append(error.status)
                        time.sleep(0.05)
                    else:
                        seen.append((begun, time.monotonic(), value))
                    time.sleep(0.004)

    asking = [
        threading.Thread(target=ask, args=(url,))
        for url in (server.rest, server.grpc)
        for _ in range(threads)
    ]
    for one in asking:
        one.start()
    try:
        yield seen, failures
    finally:
        stop.set()
        for one in asking:
            one.join()


def require_one_order(seen):
    """Check that no request that began after an answer of a version got one of an older one."""
    for newer in {value for *_, value in seen}:
        first = min(end for _, end, value in seen if value == newer)
        late = [value for begun, _, value in seen if begun > first and value < newer]
        assert late == [], (newer, late)


def test_a_version_replaces_another_for_all_workers_at_one_time(server, place):
    with load(server, retries=0) as (seen, failures):
        for number in (2, 3, 4):
            publish(place / "m", number)
            wait_until(lambda n=number: any(value == n for *_, value in seen), server, 60)
            with connect(server.rest) as client:
                wait_until(
                    lambda n=number: (
                        {one.version: one.state for one in client.status("m")}[n - 1] == "END"
                    ),
                    server,
                    60,
                )
            states = ask_each(server, status=True)
            assert len(states) == 1
            assert set(ask_each(server, f"/versions/{number}")) == set(ask_each(server))
            gone = ask_each(server, f"/versions/{number - 1}")
            assert {status for status, _ in gone} == {404}
    assert failures == []
    assert {value for *_, value in seen} == {1, 2, 3, 4}
    require_one_order(seen)


def test_a_reload_through_any_worker_is_one_for_all(server, place):
    publish(place / "m", 8)
    publish(place / "m", 9)
    both = "specific { versions: 8 versions: 9 }"
    with load(server, retries=0) as (_, failures):
        reload(server, config(place / "m", both))
        for stable, canary in ((8, 9), (9, 8)):
            reload(server, config(place / "m", both, stable=stable, canary=canary))
            for label, number in (("stable", stable), ("canary", canary)):
                ((status, text),) = ask_each(server, f"/labels/{label}")
                assert (status, json.loads(text)) == (200, {"predictions": [[number]]})
        with pytest.raises(grpc.RpcError, match="label to version 77 of model m, which is not"):
            reload(server, config(place / "m", both, stable=77))
    assert failures == []


def test_the_page_of_metrics_adds_up_all_workers(server):
    before = answered(server)
    ask_each(server)
    with connect(server.grpc) as client:
        for _ in range(10):
            client.predict(np.float32([[0]]), "m")
    assert answered(server) - before == CONNECTIONS + 10
    assert set(metrics_of(server)["gru_serve:model_runtime"].values()) == {1}


def test_a_reload_reports_the_increase_of_a_metric_of_all_workers(server, place):
    publish(place / "n", 1)
    models = config(place / "m", "specific { versions: 9 }")
    name = "/tensorflow/cc/saved_model/load_attempt_count"
    answer = reload(server, models + config(place / "n").replace('"m"', '"n"'), name)
    assert [(one.name, one.int64_value_increase) for one in answer.metric] == [(name, 1)]


def test_a_killed_worker_costs_its_own_requests_only_and_is_replaced(server, figures):
    before = answered(server)
    workers = children(server.process.pid)
    assert len(workers) == 2
    with load(server, retries=0) as (_, lost), load(server, retries=5) as (seen, failures):
        wait_until(lambda: len(seen) > 50, server, 30)
        assert answered(server) > before
        os.kill(workers[0], signal.SIGKILL)
        wait_until(lambda: "was replaced" in server.log.read_text(), server, 60)
        count = len(seen)
        wait_until(lambda: len(seen) > count + 50, server, 30)
    assert failures == []
    assert len(lost) < 60
    assert {status.split(":")[0] for status in lost} <= {"UNAVAILABLE"}
    figures(f"without retries {len(lost)} requests failed, with retries none of {len(seen)}")
    assert workers[0] not in children(server.process.pid)
    assert len(children(server.process.pid)) == 2
    assert len(ask_each(server)) == len(ask_each(server, status=True)) == 1
    assert answered(server) > before


def test_a_worker_that_is_told_to_end_hands_over_and_is_replaced(server):
    before = answered(server)
    ask_each(server)
    (one, _) = children(server.process.pid)
    os.kill(one, signal.SIGTERM)
    wait_until(lambda: one not in children(server.process.pid), server, 60)
    wait_until(lambda: len(children(server.process.pid)) == 2, server, 60)
    wait_until(lambda: server.log.read_text().count("was replaced") == 2, server, 60)
    assert answered(server) - before == CONNECTIONS


@pytest.mark.long
def test_a_stuck_worker_is_ended_and_holds_up_a_new_version_no_longer(tmp_path):
    with fresh(tmp_path) as server:
        (one, _) = children(server.process.pid)
        os.kill(one, signal.SIGSTOP)
        publish(tmp_path / "m", 2)
        wait_until(lambda: "has not answered for a minute" in server.log.read_text(), server, 120)
        wait_until(lambda: "version: 2} in " in server.log.read_text(), server, 60)
        wait_until(lambda: len(children(server.process.pid)) == 2, server, 60)
        ((status, text),) = ask_each(server)
        assert (status, json.loads(text)) == (200, {"predictions": [[2]]})


def test_no_other_server_gets_the_ports(server, tmp_path):
    for workers in (1, 2):
        for flag in ("port", "rest_api_port"):
            port = {"port": server.port, "rest_api_port": server.rest_port}[flag]
            taken = {"port": 0, "grpc_socket_path": tmp_path / "s"} if flag != "port" else {}
            flags = {"model_base_path": "/m", "workers": workers, **taken, flag: port}
            if workers > 1 and flag != "port":
                continue  # it has a socket, which such a server may not
            out = tmp_path / f"out-{workers}-{flag}"
            with out.open("wb") as file:
                process = start(
                    *(f"--{key}={value}" for key, value in flags.items()),
                    stdout=file,
                    stderr=file,
                    cold=True,
                )
                assert process.wait(60) == 255
            assert f"Choose another port with --{flag}" in out.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_lets_requests_finish_in_all_workers(tmp_path, number):
    with fresh(tmp_path) as server:
        workers = children(server.process.pid)
        with load(server, retries=0) as (seen, failures):
            wait_until(lambda: len(seen) > 50, server, 30)
            # Ctrl-C and a terminal's end reach all of its processes.
            for pid in (*(workers if number != signal.SIGTERM else ()), server.process.pid):
                os.kill(pid, number)
            wait_until(lambda: failures)
        assert server.process.wait(60) == 0
        assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []
    assert {status.split(":")[0] for status in failures} == {"UNAVAILABLE"}
    text = server.log.read_text()
    assert text.count("Stopped.") == 3
    assert "Traceback" not in text
    assert "replaced" not in text


@pytest.mark.slow
def test_workers_end_with_their_owner(tmp_path):
    with fresh(tmp_path) as server:
        workers = children(server.process.pid)
        assert len(workers) == 2
        server.process.kill()
        server.process.wait(30)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), None, 60)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--auth_token_file=/nowhere"], "/nowhere"),
        (["--max_num_load_retries=0"], "servable(s) did not become available: {{{name: m versi"),
    ],
)
def test_a_start_that_fails_in_a_worker_ends_the_server(tmp_path, flags, said):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.onnx").write_bytes(b"no graph")
    with fresh(tmp_path, *flags, ready=False) as server:
        assert server.process.wait(90) == 255
    text = server.log.read_text()
    assert "Failed to start server. Error: " in text
    assert said in text
    assert "Traceback" not in text
