"""Another version is asked what clients ask: compared and counted, and never noticed by them."""

import json
import shutil
import threading
from contextlib import contextmanager

import grpc
import httpx
import numpy as np
import pytest
from google.protobuf import text_format

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.errors import InvalidArgument
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from gru_serving.telemetry.metrics import DEFAULT_PATH
from keras_gru.convert.onnx_graph import OnnxGraph
from tests.serving.messages import BOTH, multi_inference
from tests.serving.scrape import parsed
from tests.serving.servers import running, wait_until

AS_BEFORE, OTHER, FAILING, SLIGHTLY_OTHER = 2, 3, 4, 5
COUNT = "gru_serve:shadow_count"
CONFIG = """
model_config_list {{ config {{
  name: "m" base_path: "{base}" model_platform: "tensorflow"
  model_version_policy {{ {policy} }}
  version_labels {{ key: "stable" value: 1 }}
  {shadow}
}} }}
"""


def publish(base, number, answer, rows=None, asked="x"):
    """Put a version in place that gives the same answer to any input."""
    graph = OnnxGraph()
    x = graph.input(asked, "float32", (rows, 1))
    nothing = graph.add("Mul", x, np.float32([0]))
    graph.output("y", graph.add("Add", nothing, np.float32([answer])), "float32", (rows, 1))
    (base / str(number)).mkdir(parents=True)
    graph.write(base / str(number) / "model.onnx", "number")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("shadow") / "m"
    for number, answer in ((1, 1.0), (AS_BEFORE, 1.0), (OTHER, 9.0), (SLIGHTLY_OTHER, 1.001)):
        publish(base, number, answer)
    publish(base, FAILING, 1.0, asked="z")
    return base


def config(base, shadow="", policy="all {}"):
    return CONFIG.format(
        base=base, shadow=f"shadow {{ {shadow} }}" if shadow else "", policy=policy
    )


@contextmanager
def serving(place, text, *flags):
    file, monitoring = place / "models.config", place / "monitoring.config"
    file.write_text(text)
    monitoring.write_text("prometheus_config { enable: true }")
    more = ("--allow_version_labels_for_unavailable_models", *flags)
    log = place / "log"
    with running(
        log, f"--model_config_file={file}", f"--monitoring_config_file={monitoring}", *more
    ) as server:
        yield server


@pytest.fixture(scope="module")
def server(base, tmp_path_factory):
    place = tmp_path_factory.mktemp("server")
    with serving(place, config(base), f"--access_log={place / 'access'}") as server:
        yield server


def reload(server, text):
    with connect(server.grpc) as client:
        client.reload(text_format.Parse(text, ModelServerConfig()))


def page(server):
    return parsed(httpx.get(server.rest + DEFAULT_PATH, trust_env=False, verify=False).content)


def outcomes(server, shadow, live=1):
    """Requests by outcome."""
    return {
        labels[3]: int(count)
        for labels, count in page(server).get(COUNT, {}).items()
        if labels[:3] == ("m", str(live), str(shadow))
    }


def await_outcomes(server, shadow, expected, live=1):
    wait_until(lambda: outcomes(server, shadow, live) == expected, server, 30)


def ask(url, times=5, **target):
    """What a client gets from version 1."""
    with connect(url) as client:
        return {
            client.predict(np.float32([[0]]), "m", **{"version": 1, **target})["y"].item()
            for _ in range(times)
        }


@pytest.mark.parametrize(
    ("shadow", "more", "outcome"),
    [
        (AS_BEFORE, "", "agreed"),
        (OTHER, "", "disagreed"),
        (SLIGHTLY_OTHER, "", "disagreed"),
        (SLIGHTLY_OTHER, "tolerance: 0.01", "agreed"),
        (FAILING, "", "failed"),
        (17, "", "absent"),
    ],
)
def test_compared_over_both_transports_and_never_noticed(server, base, shadow, more, outcome):
    before = outcomes(server, shadow).get(outcome, 0)
    reload(server, config(base, f"version: {shadow} share: 1 {more}"))
    assert ask(server.rest) == ask(server.grpc) == {1.0}
    wait_until(lambda: outcomes(server, shadow).get(outcome) == before + 10, server, 30)
    reload(server, config(base))
    ask(server.rest)
    found = page(server)
    # A sample that came late would show in the counts by now.
    assert outcomes(server, shadow)[outcome] == before + 10
    assert {labels[1] for labels in found["gru_serve:request_count"]} == {"1"}
    if outcome in ("agreed", "disagreed"):
        pair = ("m", "1", str(shadow))
        asked = sum(outcomes(server, shadow).values())
        for side in ("live", "shadow"):
            assert found["gru_serve:shadow_latency_count"][*pair, side] == asked
            assert 0 < found["gru_serve:shadow_latency_sum"][*pair, side] < 30e6 * asked
        near = found["gru_serve:shadow_difference_bucket"]
        within = {AS_BEFORE: "1e-09", SLIGHTLY_OTHER: "0.01", OTHER: "10"}[shadow]
        below = {AS_BEFORE: None, SLIGHTLY_OTHER: "0.0001", OTHER: "1"}[shadow]
        assert near[*pair, within] == asked
        assert below is None or near[*pair, below] == 0
    lines = [json.loads(line) for line in (server.log.parent / "access").read_text().splitlines()]
    assert {line["version"] for line in lines if line.get("model") == "m"} == {1}
    if outcome == "failed":
        assert "version 4 of m, the shadow of version 1, failed" in server.log.read_text()


def test_what_the_shadow_answers_itself_is_not_compared(server, base):
    reload(server, config(base, f"version: {OTHER} share: 1"))
    before = outcomes(server, OTHER)
    assert ask(server.rest, version=OTHER) == {9.0}
    reload(server, config(base))
    assert outcomes(server, OTHER) == before
    assert outcomes(server, OTHER, live=OTHER) == {}


def test_a_share_by_label(server, base):
    text = config(base, 'label: "stable" share: 0.25')
    reload(server, text)
    with connect(server.rest) as client:
        for _ in range(400):
            client.predict(np.float32([[0]]), "m", version=AS_BEFORE)
    reload(server, config(base))
    # 400 draws of 0.25 lie between 40 and 160 but for once in a million million times.
    wait_until(lambda: 40 < sum(outcomes(server, 1, live=AS_BEFORE).values()) < 160, server, 30)


def test_a_shadow_that_is_refused_changes_nothing(server, base):
    reload(server, config(base, f"version: {AS_BEFORE} share: 1"))
    with pytest.raises(InvalidArgument, match="shadow of model m: expected a share"):
        reload(server, config(base, "version: 3 share: 2"))
    before = outcomes(server, AS_BEFORE).get("agreed", 0)
    ask(server.grpc)
    wait_until(lambda: outcomes(server, AS_BEFORE)["agreed"] == before + 5, server, 30)
    reload(server, config(base))


def test_the_file_is_polled_and_the_version_goes(base, tmp_path):
    """The shadow goes in the middle of requests: it is unloaded, and what it counted is dropped."""
    flags = ("--model_config_file_poll_wait_seconds=1", "--file_system_poll_wait_seconds=1")
    with serving(tmp_path, config(base), *flags) as server:
        ask(server.rest)
        assert outcomes(server, OTHER) == {}
        shadow = f"version: {OTHER} share: 1"
        (tmp_path / "models.config").write_text(config(base, shadow))

        def compared():
            ask(server.rest, times=1)
            return outcomes(server, OTHER).get("disagreed", 0) > 3

        wait_until(compared, server, 30)
        one = "specific { versions: 1 }"
        (tmp_path / "models.config").write_text(config(base, shadow, one))

        def gone():
            ask(server.rest, times=1)
            with connect(server.rest) as client:
                states = {one.version: one.state for one in client.status("m")}
            return states[OTHER] == "END"

        wait_until(gone, server, 30)
        ask(server.rest)
        wait_until(lambda: outcomes(server, OTHER).get("absent", 0) >= 5, server, 30)


def test_shed_under_load(base, tmp_path):
    """With many clients most requests are not compared; all have their answers."""
    text = config(base, f"version: {AS_BEFORE} share: 1")
    with serving(tmp_path, text) as server:
        answers, ended = [], threading.Event()

        def load():
            with connect(server.grpc) as client:
                while not ended.is_set():
                    answers.append(client.predict(np.float32([[0]]), "m", version=1)["y"].item())

        threads = [threading.Thread(target=load) for _ in range(32)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: outcomes(server, AS_BEFORE).get("shed", 0) > 0, server, 60)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert set(answers) == {1.0}
        wait_until(lambda: sum(outcomes(server, AS_BEFORE).values()) == len(answers), server, 30)
        assert set(outcomes(server, AS_BEFORE)) <= {"agreed", "shed"}


def test_two_workers_count_as_one(base, tmp_path):
    with serving(tmp_path, config(base), "--workers=2") as server:
        reload(server, config(base, f"version: {OTHER} share: 1"))
        for _ in range(20):  # each on a connection of its own
            ask(server.rest, times=2)
        await_outcomes(server, OTHER, {"disagreed": 40})


def promote(capsys, server, *more):
    file = server.log.parent / "models.config"
    status = main(
        [
            *("promote", "--config", str(file), "--model", "m", "--to", str(OTHER)),
            *("--gate", "shadow", "--url", server.grpc, *more),
        ]
    )
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_a_promotion_by_shadow_traffic(base, tmp_path, capsys):
    text = config(base, f"version: {OTHER} share: 1")
    with serving(tmp_path, text) as server:
        status, printed = promote(capsys, server)
        assert status == 2
        assert "expected --metrics, the URL of the server's page of metrics" in printed
        metrics = ("--metrics", server.rest + DEFAULT_PATH)
        status, printed = promote(capsys, server, *metrics)
        assert status == 1
        assert "compared with version 1 in 0 requests" in printed
        assert "expected at least 1,000 compared. Put shadow { version: 3 share: 1 }" in printed
        ask(server.grpc, times=20)
        await_outcomes(server, OTHER, {"disagreed": 20})
        few = (*metrics, "--least-compared", "20")
        status, printed = promote(capsys, server, *few)
        assert status == 1
        assert "in 20 requests, disagreed in 20 and failed in 0" in printed
        assert "expected at most 1.00% to disagree" in printed
        assert ask(server.grpc, version=None, label="stable") == {1.0}
        slow = (*few, "--most-disagreed", "1", "--most-shadow-latency", "0")
        status, printed = promote(capsys, server, *slow)
        assert status == 1
        assert "expected at most 0 times as long" in printed
        status, printed = promote(capsys, server, *few, "--most-disagreed", "1")
        assert status == 0, printed
        assert "m: stable 1 -> 3" in printed
        assert ask(server.grpc, version=None, label="stable") == {9.0}


def test_a_promotion_of_a_shadow_that_fails(base, tmp_path, capsys):
    text = config(base, f"version: {FAILING} share: 1")
    with serving(tmp_path, text) as server:
        ask(server.grpc, times=3)
        await_outcomes(server, FAILING, {"failed": 3})
        found = promote(
            capsys, server, "--to", str(FAILING), "--metrics", server.rest + DEFAULT_PATH
        )
        assert found[0] == 1
        assert "failed in 3; expected at most 0.10% to fail. The server's log says why" in found[1]


@pytest.fixture(scope="module")
def examples_server(models, tmp_path_factory):
    """A model for tf.Examples in TensorFlow, with batches: version 1, a copy, and another one."""
    from gru_serving.conformance.models import save_half_plus_two

    place = tmp_path_factory.mktemp("examples")
    (original,) = (models / "half_plus_two").iterdir()
    for number in (1, AS_BEFORE):
        shutil.copytree(original, place / "m" / str(number))
    save_half_plus_two(place / "m" / str(OTHER), factor=4.0)
    with serving(place, config(place / "m"), "--enable_batching") as server:
        yield server


@pytest.mark.parametrize(("shadow", "outcome"), [(AS_BEFORE, "agreed"), (OTHER, "disagreed")])
def test_examples_are_compared(examples_server, shadow, outcome):
    from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

    server = examples_server
    reload(server, config(server.log.parent / "m", f"version: {shadow} share: 1"))
    given = [{"x": 3.0}]
    for url in (server.rest, server.grpc):
        with connect(url) as client:
            asked = {"model": "m", "version": 1}
            assert client.classify(given, signature="classify_x_to_y", **asked) == [[("", 3.5)]]
            assert client.regress(given, signature="regress_x_to_y", **asked) == [3.5]
            assert client.predict({"x": [[3.0]]}, **asked)["y"] == 3.5
    message = multi_inference(*BOTH, model="m")
    for task in message.tasks:
        task.model_spec.version.value = 1
    with grpc.insecure_channel(server.grpc) as channel:
        both = PredictionServiceStub(channel).MultiInference(message, timeout=60)
    assert both.results[1].regression_result.regressions[0].value == 3.5
    await_outcomes(server, shadow, {outcome: 7})
