"""How clients handle slow, broken and odd answers, forks, and their environment."""

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from gru_serving.client import Target, connect, connect_async
from gru_serving.client.rest.client import RestWire
from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.errors import Code, ServingError, Unavailable, Unknown
from tests.ports import free_ports
from tests.serving.client.both_clients import both
from tests.serving.servers import REPOSITORY
from tests.serving.strange_servers import bare, web

STATUS = json.dumps(
    {
        "model_version_status": [
            {
                "version": "1",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(STATUS)


def test_an_answer_cut_short_is_asked_for_again():
    """Like a server that is killed: a FIN, where a reset had already been recognised."""
    seen = []

    def cut(connection):
        seen.append(connection)
        connection.sendall(HEAD + STATUS[: len(STATUS) if len(seen) % 3 == 0 else 5])

    with bare(cut) as url:
        for ask in both(url, retries=2):
            assert [state.version for state in ask()] == [1]
        for ask in both(url, retries=0):
            with pytest.raises(Unavailable, match="closed the connection"):
                ask()


@pytest.mark.parametrize(
    "results", [1, "12", None, [1], [None], [[1, 2]], [[["a", "b"]]], [[["a", None]]], {"a": 1}]
)
def test_results_of_another_form(results):
    body = json.dumps({"results": results}).encode()
    with web(200, body, "application/json") as (_, url), connect(url) as client:
        with pytest.raises(Unknown, match="no results in"):
            client.classify([{"x": 1}], "m")
        if results != [1]:
            with pytest.raises(Unknown, match="no results in"):
                client.regress([{"x": 1}], "m")


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({"y": ["a"], "z": [1]}, "output 'y': JSON Value: \"a\""),
        ({"y": [1, [2]], "z": [1]}, "output 'y': Encountered list"),
        ({"y": [None], "z": [1]}, "output 'y': JSON Value: null"),
        ({"y": [1]}, "no output 'z' in the answer"),
    ],
)
def test_outputs_of_another_form_are_not_the_callers_fault(outputs, said):
    one = TensorInfo("t:0", 1, (-1,))
    signature = Signature({"x": one}, {"y": one, "z": one})
    _, read = RestWire("http://x").predict(
        Target("m"), "", signature, {"x": np.float32([1])}, ["z"]
    )
    with pytest.raises(Unknown) as caught:
        read(json.dumps({"outputs": outputs}).encode())
    assert said in caught.value.message


FORK = """
import os, sys
from gru_serving.client import connect

url, children = sys.argv[1], 3
client = connect(url)

def ask(number):
    x = [[float(number), 0.0, 0.0]]
    return client.predict({"x": x, "b": [[0.0]]}, "affine", label="stable")["y"][0, 0] == number

assert ask(1)
pids = []
for child in range(children):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if all(ask(1000 * child + i) for i in range(100)) else 1)
    pids.append(pid)
good = all(ask(-i) for i in range(100))
ends = [os.waitpid(pid, 0)[1] for pid in pids]
client.close()
sys.exit(f"parent {good}, children {ends}" if any(ends) or not good else 0)
"""


def alone(program, url, seconds):
    """A program in its own process, once it has ended."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, url],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def test_a_fork_has_connections_of_its_own(url):
    """On shared connections a process would read what another asked for, and never know."""
    done = alone(FORK, url, 120)
    assert (done.returncode, done.stderr) == (0, "")


def test_parent_and_child_do_not_read_each_others_answers():
    """The connection is idle when the process forks; then both processes ask at once."""
    program = """
import os, sys
from gru_serving.client import connect

client = connect(sys.argv[1], retries=0)
client.status("m")
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, b"%d" % client.status("m")[0].version)
    os._exit(0)
print(client.status("m")[0].version, os.read(read, 9).decode())
"""
    connections = []

    def number(connection):
        connections.append(connection)
        mine = len(connections)
        while True:
            body = STATUS.replace(b'"1"', b'"%d"' % mine)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            if not connection.recv(65536):
                return

    with bare(number) as url:
        done = alone(program, url, 60)
    assert done.stdout.split() == ["1", "2"], done.stderr


def test_closed_during_calls_of_several_threads_that_are_the_first():
    def silent(connection):
        asked.release()
        connection.recv(1)  # until the client leaves

    asked, others = threading.Semaphore(0), set(threading.enumerate())
    with bare(silent) as url, ThreadPoolExecutor(8) as pool:
        client = connect(url, retries=0)
        calls = [pool.submit(client.status, "m") for _ in range(8)]
        for _ in calls:
            assert asked.acquire(timeout=30)
        loops = [each.name for each in threading.enumerate() if each not in others]
        assert loops.count("rest") == 1
        client.close()
        for call in calls:
            with pytest.raises(ServingError, match="was closed during the call") as caught:
                call.result(30)
            assert caught.value.code is Code.CANCELLED
        with pytest.raises(RuntimeError, match="the client has been closed"):
            client.status("m")


def test_proxies_of_the_environment_are_for_neither_transport(url, monkeypatch):
    (nobody,) = free_ports(1)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{nobody}")
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(httpx.ConnectError):
        httpx.get("http://example.invalid")  # the settings are in force
    with connect(url, retries=0) as client:
        assert client.status("text")


def test_an_asynchronous_client_made_outside_of_a_loop(url):
    client = connect_async(url)

    async def ask():
        async with client:
            return await client.status("text")

    assert asyncio.run(ask())[0].state == "AVAILABLE"


def test_no_limit_of_time(url):
    with connect(url, timeout=float("inf")) as client:
        assert client.status("text", timeout=1e20)
        assert client.predict(["good"], "text")["label"].tolist() == [b"positive"]
