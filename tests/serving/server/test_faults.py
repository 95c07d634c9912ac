"""Faults injected into a running server: disks, clients and clocks that misbehave."""

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf

from serving.client import connect
from serving.errors import DeadlineExceeded
from tests.ports import free_ports
from tests.serving import hostile
from tests.serving.conftest import answers, running, start, wait_until
from tests.serving.load import THIRD, X, load
from tests.serving.saved_models import publish

QUICK_LOADS = ("--max_num_load_retries=0", "--load_retry_interval_micros=-1")


def ended(client, version, model="m"):
    return any(one.version == version and one.state == "END" for one in client.status(model))


def serves(client, version, model="m"):
    states = {one.version: one.state for one in client.status(model)}
    return states.get(version) == "AVAILABLE"


def empty(directory, good):
    directory.mkdir()


def only_graph(directory, good):
    directory.mkdir()
    shutil.copy(good / "saved_model.pb", directory)


def only_variables(directory, good):
    directory.mkdir()
    shutil.copytree(good / "variables", directory / "variables")


def cut_graph(directory, good):
    shutil.copytree(good, directory)
    graph = directory / "saved_model.pb"
    os.truncate(graph, graph.stat().st_size // 2)


def empty_graph(directory, good):
    shutil.copytree(good, directory)
    os.truncate(directory / "saved_model.pb", 0)


def noise(directory, good):
    shutil.copytree(good, directory)
    (directory / "saved_model.pb").write_bytes(np.random.default_rng(0).bytes(5000))


def cut_variables(directory, good):
    shutil.copytree(good, directory)
    (data,) = (directory / "variables").glob("variables.data*")
    os.truncate(data, data.stat().st_size // 2)


def cut_index(directory, good):
    shutil.copytree(good, directory)
    index = directory / "variables" / "variables.index"
    os.truncate(index, index.stat().st_size // 2)


def a_file(directory, good):
    directory.write_text("no directory")


def a_loop(directory, good):
    directory.symlink_to(directory.name)


def a_dangling_link(directory, good):
    directory.symlink_to("nowhere")


def broken_warmup(directory, good):
    shutil.copytree(good, directory)
    (directory / "assets.extra").mkdir()
    (directory / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"no TFRecord" * 9)


BROKEN = (
    empty, only_graph, only_variables, cut_graph, empty_graph, noise, cut_variables, cut_index,
    a_file, a_loop, a_dangling_link, broken_warmup,
)  # fmt: skip


@pytest.mark.slow
def test_broken_versions(models, tmp_path):
    """Each ends with an error that says why; the good version goes on serving all the time."""
    base, good = tmp_path / "m", models / "affine" / "1"
    publish(models, base, 1)
    flags = (f"--model_base_path={base}", "--model_name=m", *QUICK_LOADS)
    with (
        running(tmp_path / "log", *flags) as server,
        load(server, "m") as seen,
        connect(server.rest) as client,
    ):
        for version, break_it in enumerate(BROKEN, 2):
            break_it(base / str(version), good)
        # Of the `latest` versions only the highest is wanted: they are tried from the top down.
        for version in range(len(BROKEN) + 1, 1, -1):
            wait_until(lambda version=version: ended(client, version), server)
            (found,) = client.status("m", version=version)
            assert found.error_code != "OK", BROKEN[version - 2].__name__
            assert found.error_message, BROKEN[version - 2].__name__
            _remove(base / str(version))
            assert serves(client, 1)
        base.rename(tmp_path / "away")
        wait_until(lambda: "Could not find base path" in server.log.read_text(), server)
        assert serves(client, 1)
        (tmp_path / "away").rename(base)
        publish(models, base, 99, source=3)
        wait_until(lambda: serves(client, 99), server)
    seen.check(least=10)


def _remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path)


@pytest.mark.slow
def test_version_copied_in_place_is_served_once_it_is_whole(models, tmp_path):
    """Not as recommended, but as many do: the copy takes longer than the first attempts to load."""
    base, good = tmp_path / "m", models / "affine" / "3"
    publish(models, base, 1)
    flags = (
        f"--model_base_path={base}", "--model_name=m", "--max_num_load_retries=100",
        "--load_retry_interval_micros=200000",
    )  # fmt: skip
    with (
        running(tmp_path / "log", *flags) as server,
        load(server, "m") as seen,
        connect(server.rest) as client,
    ):
        only_graph(base / "2", good)
        wait_until(lambda: "try 2 of 101" in server.log.read_text(), server)
        shutil.copytree(good, base / "2", dirs_exist_ok=True)
        wait_until(lambda: serves(client, 2), server)
        assert client.predict(X, "m")["y"][0, 0] == THIRD
    seen.check(least=10)


@pytest.mark.slow
def test_unreadable_directories(models, tmp_path, no_superpowers):
    """First a version disappears, then the whole base path: the good version goes on serving."""
    base = tmp_path / "m"
    publish(models, base, 1)
    flags = (f"--model_base_path={base}", "--model_name=m", *QUICK_LOADS)
    with (
        running(tmp_path / "log", *flags, prefix=no_superpowers) as server,
        load(server, "m") as seen,
        connect(server.rest) as client,
    ):
        try:
            shutil.copytree(models / "affine" / "3", tmp_path / "aside")
            (tmp_path / "aside").chmod(0)
            (tmp_path / "aside").rename(base / "2")
            wait_until(lambda: ended(client, 2), server)
            base.chmod(0)
            wait_until(lambda: "Permission denied" in server.log.read_text(), server)
            assert serves(client, 1)
        finally:
            base.chmod(0o755)
            (base / "2").chmod(0o755)
        publish(models, base, 3, source=3)
        wait_until(lambda: serves(client, 3), server)
    seen.check(least=10)


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if not mounted or mounted.returncode != 0:
        pytest.skip("may not mount a tmpfs")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_full_disk(models, tmp_path, tiny_disk):
    """Unwritable logs affect no request, are reported as lost, and continue afterwards."""
    base = tmp_path / "m"
    publish(models, base, 1)
    access, predictions = tiny_disk / "access.log", tiny_disk / "predictions"
    flags = (
        f"--model_base_path={base}", "--model_name=m", f"--access_log={access}",
        f"--prediction_log_directory={predictions}", "--prediction_log_sampling_rate=1",
    )  # fmt: skip

    def predictions_again():
        with contextlib.suppress(FileNotFoundError):  # a file that cannot be written is removed
            return any(path.stat().st_size for path in predictions.iterdir())

    with running(tmp_path / "log", *flags) as server, load(server, "m", threads=2) as seen:
        ballast = tiny_disk / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
        wait_until(lambda: "entries lost so far" in server.log.read_text(), server)
        wait_until(lambda: "No space left on device" in server.log.read_text(), server)
        before, size = seen.counted, access.stat().st_size
        wait_until(lambda: seen.counted > before + 20, server)
        ballast.unlink()
        wait_until(lambda: access.stat().st_size > size + 1000, server)
        wait_until(predictions_again, server)
    seen.check(least=20)
    entries = [json.loads(line) for line in access.read_text().splitlines()]
    assert entries[-1]["status"] == "OK"
    files = [str(path) for path in predictions.iterdir()]
    assert sum(1 for _ in tf.data.TFRecordDataset(files)) > 0


@pytest.fixture(scope="module")
def shifted_clock(tmp_path_factory):
    """Environment of a process whose wall clock can be changed, and the file that changes it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    directory = tmp_path_factory.mktemp("clock")
    library, offset = directory / "clock.so", directory / "offset"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(offset)}, offset


@pytest.mark.slow
def test_clock_that_jumps(models, tmp_path, shifted_clock):
    """The wall clock jumps a day ahead and back: deadlines, polls and the stop are unaffected."""
    environment, offset = shifted_clock
    base = tmp_path / "m"
    publish(models, base, 1)
    flags = (f"--model_base_path={base}", "--model_name=m")
    with (
        running(tmp_path / "log", *flags, environment=environment) as server,
        connect(server.grpc) as client,
    ):
        with load(server, "m") as seen:
            for version, seconds in enumerate((86_400, -86_400, 0), 2):
                offset.write_text(str(seconds))
                publish(models, base, version)
                wait_until(lambda version=version: serves(client, version), server, seconds=60)
            started = time.monotonic()
            with pytest.raises(DeadlineExceeded):
                client.predict(np.int64(10**12), "m", signature="spin", timeout=0.5)
            assert time.monotonic() - started < 60
        offset.write_text("86400")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(90) == 0
        stamps = {line.split()[0] for line in server.log.read_text().splitlines() if ":" in line}
    seen.check(least=10)
    days = {stamp for stamp in stamps if stamp.startswith("20")}
    assert len(days) == 3, "the clock did not jump"


def connection(server):
    return socket.create_connection(("127.0.0.1", server.rest_port), 20)


def reset(one):
    """Close with RST instead of FIN."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


PREDICT = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
SPIN = b'{"signature_name": "spin", "inputs": %d}'


@pytest.mark.slow
def test_clients_that_misbehave(models, tmp_path, figures):
    """Slow, silent, cut and reset connections, and abandoned calls: the others are served."""
    base = tmp_path / "m"
    publish(models, base, 1)
    count = hostile.inputs(50, 400)
    flags = (f"--model_base_path={base}", "--model_name=m", "--rest_api_timeout_in_ms=2000")
    with running(tmp_path / "log", *flags) as server:
        with connect(server.rest) as client:
            steps = _steps_of(client, 0.3)
        body = SPIN % steps
        whole = PREDICT % len(body) + body
        silent = [connection(server) for _ in range(count)]
        slow = [connection(server) for _ in range(count)]
        with load(server, "m") as seen:
            for i in range(count):
                slow[i].sendall(whole[:1])
                cut = connection(server)
                cut.sendall(whole[: 1 + i % (len(whole) - 1)])
                (reset if i % 2 else socket.socket.close)(cut)
            for i in range(12):
                gone = connection(server)
                gone.sendall(whole)
                time.sleep(0.02)
                (reset if i % 2 else socket.socket.close)(gone)
            for at in range(1, 20):
                for one in slow:
                    one.sendall(whole[at : at + 1])
            with grpc.insecure_channel(server.grpc) as channel:
                call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
                pending = [call.future(spin(steps), timeout=60) for _ in range(6)]
                time.sleep(0.2)
                for one in pending:
                    one.cancel()
            time.sleep(3)
        figures(f"{4 * count + 12} connections misused, {seen.counted} requests beside them")
        seen.check(least=10)
        # The slow ones were not forgotten: when they finish at last, they are answered.
        slow[0].sendall(whole[20:])
        assert slow[0].recv(100).startswith(b"HTTP/1.1 ")
        for one in silent + slow:
            one.close()
        wait_until(lambda: descriptors(server) < 100)
        assert "Traceback" not in server.log.read_text()


def spin(steps):
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.model_spec.signature_name = "spin"
    request.inputs["steps"].dtype = 9
    request.inputs["steps"].int64_val.append(steps)
    return request.SerializeToString()


def descriptors(server):
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


@pytest.mark.slow
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
            steps = _steps_of(client, 0.5)
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

    A proxy sends what was cancelled to another replica, and passes UNAVAILABLE on.
    """
    from serving.protos.get_model_status_pb2 import GetModelStatusRequest

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
    if proxied:
        assert stopping == 0
    else:
        # Without the gate, 11 to 14 of the 16 are hit; if the machine stalls, one may still be.
        assert codes.count(grpc.StatusCode.CANCELLED) < 6
        assert stopping > 8


def _steps_of(client, seconds):
    """The number of steps with which a spin takes about that long."""
    steps = 10_000
    while True:
        started = time.monotonic()
        client.predict(np.int64(steps), "m", signature="spin")
        took = time.monotonic() - started
        if took > 0.05:
            return int(steps * seconds / took)
        steps *= 3


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
