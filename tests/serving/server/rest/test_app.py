"""What this server adds to the REST API of TF Serving, whose own rules are the kit's cases."""

import gzip
import json

import httpx

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
