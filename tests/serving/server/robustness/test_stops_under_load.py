"""SIGTERM and SIGKILL while clients ask."""

import functools
import signal
import threading
import time

import grpc
import numpy as np
import pytest

from gru_serving.client import connect
from tests.ports import free_ports
from tests.serving.load import X, load
from tests.serving.saved_models import publish
from tests.serving.server.spin import steps_of
from tests.serving.servers import answers, running, start, wait_until


def test_stop_under_load(models, tmp_path):
    """SIGTERM: what is under way is answered, what comes later is refused; the status is 0."""
    base = tmp_path / "m"
    publish(models, base, 1)
    results, lock = [], threading.Lock()

    def ask_slowly(url):
        with connect(url, retries=0, timeout=60) as client:
            client.metadata("m")
            begun.wait()
            try:
                client.predict(np.int64(steps), "m", signature="spin")
            except Exception as error:
                outcome = repr(error)
            else:
                outcome = "answered"
            with lock:
                results.append(outcome)

    with running(tmp_path / "log", f"--model_base_path={base}", "--model_name=m") as server:
        with connect(server.rest) as client:
            steps = steps_of(client, 0.5)
        begun = threading.Barrier(9)
        asking = [
            threading.Thread(target=ask_slowly, args=(url,))
            for url in (server.rest, server.grpc)
            for _ in range(4)
        ]
        for one in asking:
            one.start()
        with load(server, "m") as seen:
            begun.wait()
            time.sleep(
                1
            )  # until all have arrived: eight runs of half a second keep two cores busy for longer
            before = seen.counted
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(90) == 0
            for one in asking:
                one.join()
        assert results == ["answered"] * 8
        assert before > 0
        refused = [error for _, _, error in seen.failures]
        assert all("Unavailable" in error for error in refused), set(refused)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("proxied", [False, True])
def test_calls_that_wait_to_be_read_at_a_stop(models, tmp_path, proxied):
    """If left to gRPC, most of those under way end as CANCELLED; UNAVAILABLE is retried.

    nginx retries neither, but a call whose answer has more headers than it reads.
    """
    from gru_serving.protos.get_model_status_pb2 import GetModelStatusRequest

    base = tmp_path / "m"
    publish(models, base, 1)
    asked = GetModelStatusRequest()
    asked.model_spec.name = "m"
    asked, refusals, answered = asked.SerializeToString(), [], [0] * 16
    metadata = (("via", "2.0 test"),) if proxied else None

    def ask_until_refused(number, channel):
        call = channel.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
        try:
            while True:
                call(asked, timeout=60, metadata=metadata)
                answered[number] += 1
        except grpc.RpcError as error:
            refusals.append(error)

    with running(tmp_path / "log", f"--model_base_path={base}", "--model_name=m") as server:
        channels = [
            grpc.insecure_channel(server.grpc, [("grpc.use_local_subchannel_pool", 1)])
            for _ in answered
        ]
        threads = [
            threading.Thread(target=ask_until_refused, args=one) for one in enumerate(channels)
        ]
        for channel in channels:
            grpc.channel_ready_future(channel).result(60)
        for thread in threads:
            thread.start()
        wait_until(lambda: min(answered) > 20, server)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(90) == 0
        for thread in threads:
            thread.join(60)
        for channel in channels:
            channel.close()
    codes = [error.code() for error in refusals]
    assert len(codes) == 16
    assert set(codes) <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    stopping = sum("the server is stopping" in (error.details() or "") for error in refusals)
    # Without the gate, 11 to 14 of the 16 are hit; if the machine stalls, one may still be.
    assert codes.count(grpc.StatusCode.CANCELLED) < 6
    assert stopping > 8
    headers = [dict(error.initial_metadata() or ()) for error in refusals]
    said = sum(one.get("refused") == "unread" for one in headers)
    assert said == (stopping if proxied else 0)
    assert all(sum(map(len, one.values())) > 4096 for one in headers if "refused" in one)


@pytest.mark.slow
def test_kill_under_load_prevents_no_restart(models, tmp_path):
    """SIGKILL leaves a socket file and half-done work behind; the next start takes over both."""
    base, unix = tmp_path / "m", tmp_path / "grpc.sock"
    publish(models, base, 1)
    port, rest_port = free_ports(2)
    flags = (
        f"--port={port}", f"--rest_api_port={rest_port}", f"--grpc_socket_path={unix}",
        f"--model_base_path={base}", "--model_name=m",
    )  # fmt: skip
    for attempt in range(2):
        log = tmp_path / f"log{attempt}"
        with log.open("wb") as out:
            process = start(*flags, stdout=out, stderr=out)
        try:
            wait_until(functools.partial(_ready, rest_port, process, log), seconds=60)
            with connect(f"unix:{unix}") as client:
                assert client.predict(X, "m")["y"][0, 0] == 1
            with load(_At(port, rest_port), "m") as seen:
                time.sleep(0.5)
                process.kill()
                process.wait(60)
            assert seen.counted > 0
            assert unix.exists()
        finally:
            process.kill()
            process.wait(60)


def _ready(rest_port, process, log):
    assert process.poll() is None, log.read_text()
    return answers(_At(0, rest_port))


class _At:
    """Addresses of a server."""

    def __init__(self, port, rest_port):
        self.grpc = f"localhost:{port}"
        self.rest = f"http://localhost:{rest_port}"
