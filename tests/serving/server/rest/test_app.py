"""What this server adds to the REST API of TF Serving, whose own rules are the kit's cases."""

import asyncio
import gzip
import json
import tracemalloc

import httpx
import pytest

from gru_serving.engine.worker_threads import WorkerThreads
from gru_serving.inference.service import Inference
from gru_serving.repository.repository import Repository
from gru_serving.server.rest.app import Api
from tests.serving.collector import collector_off
from tests.serving.raw_http import raw

PREDICT = "/v1/models/text:predict"


def test_no_cors_headers_unless_asked_for(server):
    assert "access-control-allow-origin" not in raw(server, "GET", "/v1/models/text")[2]


def test_nothing_follows_a_gzip_body(server):
    """The kit has a second member; padding is no better."""
    body = gzip.compress(b'{"instances": ["good"]}')
    for sent, status in ((body, 200), (body + bytes(8), 400)):
        got, answer, _ = raw(server, "POST", PREDICT, sent, {"Content-Encoding": "gzip"})
        assert got == status
    assert json.loads(answer) == {"error": "JSON Parse error: The document is empty"}


def test_health(server):
    with httpx.Client(base_url=server.rest, trust_env=False, timeout=20) as http_client:
        assert http_client.get("/healthz").json() == {"status": "ok"}
        assert http_client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize("verb", ["predict", "classify"])
@pytest.mark.parametrize(
    "body", [b'{"instances": [1]}', b"{", b"[" * 600], ids=["model", "json", "depth"]
)
def test_refused_requests_are_not_kept(verb, body):
    """Not even until the garbage collector runs: they may have many megabytes."""
    size = 4 << 20
    packed = gzip.compress(body + b" " * (size - len(body)))
    path = f"/v1/models/nobody:{verb}".encode()
    scope = {"type": "http", "method": "POST", "raw_path": path, "query_string": b""}
    scope["headers"] = [(b"content-encoding", b"gzip")]
    statuses = []

    async def receive():
        return {"type": "http.request", "body": packed}

    async def send(message):
        statuses.extend([message["status"]] if "status" in message else [])

    async def kept():
        with WorkerThreads(1, "test") as threads:
            api = Api(Inference(Repository([]), threads))
            await api(scope, receive, send)
            tracemalloc.start()
            for _ in range(6):
                await api(scope, receive, send)
            used, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        return used

    with collector_off():
        assert asyncio.run(kept()) < 3 * size
    assert set(statuses) <= {400, 404}
    assert len(statuses) == 7
