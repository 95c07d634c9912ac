"""Clients that are slow, silent, cut off or gone."""

import socket
import struct
import time
from pathlib import Path

import grpc
import pytest

from gru_serving.client import connect
from tests.serving import hostile
from tests.serving.load import load
from tests.serving.saved_models import publish
from tests.serving.server.spin import spin, steps_of
from tests.serving.servers import running, wait_until


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
            steps = steps_of(client, 0.3)
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


def descriptors(server):
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
