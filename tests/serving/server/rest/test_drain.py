"""SIGTERM under load: no REST request remains unread on a connection that closes."""

import http.client
import json
import signal
import threading
from contextlib import closing

import pytest

from tests.serving.saved_models import publish
from tests.serving.servers import running, wait_until

CLIENTS = 16


@pytest.fixture
def server(models, tmp_path):
    publish(models, tmp_path / "m", 1)
    flags = (f"--model_base_path={tmp_path / 'm'}", "--model_name=m")
    with running(tmp_path / "log", *flags) as server:
        yield server


def test_requests_on_kept_connections_at_a_stop(server):
    """Each is answered, or told that it was not begun; without that, most connections broke."""
    ends, answered = [], [0] * CLIENTS

    def ask_until_refused(number):
        with closing(http.client.HTTPConnection("127.0.0.1", server.rest_port)) as connection:
            connection.connect()
            connection.sock.settimeout(60)
            status = 200
            while status == 200:
                try:
                    connection.request("GET", "/v1/models/m")
                    answer = connection.getresponse()
                    status, body = answer.status, answer.read()
                    answered[number] += 1
                except (ConnectionError, http.client.HTTPException) as error:
                    ends.append(repr(error))
                    return
        ends.append((status, json.loads(body)["error"], answer.getheader("connection")))

    threads = [threading.Thread(target=ask_until_refused, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    wait_until(lambda: min(answered) > 20, server)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert server.process.wait(90) == 0
    assert ends == [(503, "the server is stopping", "close")] * CLIENTS


@pytest.mark.slow
def test_a_large_request_at_a_stop(server):
    """It is read to the end before it is refused: otherwise a reset may overtake the answer."""

    def ask_until_the_port_closes():
        while True:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", server.rest_port)) as one:
                    one.request("GET", "/v1/models/m")
                    one.getresponse().read()
            except OSError:
                return

    address = ("127.0.0.1", server.rest_port)
    with closing(http.client.HTTPConnection(*address, timeout=60)) as connection:
        connection.request("GET", "/v1/models/m")
        assert connection.getresponse().read()
        others = threading.Thread(
            target=ask_until_the_port_closes
        )  # the port stays open for that long
        others.start()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "Stopping: no new requests" in server.log.read_text(), server)
        connection.request("POST", "/v1/models/m:predict", b" " * 2_000_000)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())) == (
            503,
            {"error": "the server is stopping"},
        )
    others.join(60)
    assert server.process.wait(90) == 0
