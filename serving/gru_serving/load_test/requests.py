"""Requests of a load test, encoded once as the bytes that go over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from gru_serving.client import Target, connect
from gru_serving.client.options import ClientOptions
from gru_serving.client.server_url import is_rest
from gru_serving.codecs.coerce import coerce
from gru_serving.errors import InvalidArgument


def encode_requests(
    url: str,
    batches: Sequence[Any],
    target: Target,
    signature: str = "",
    options: ClientOptions | None = None,
) -> list[bytes]:
    """Predict requests as the bytes that go over the wire.

    Args:
        url: As of `connect`.
        batches: Inputs as of `Client.predict`, one per request.
        target: Which model.
        signature: Empty for `serving_default`.
        options: How to connect, to learn the signature.
    """
    settings = options or ClientOptions()
    with connect(url, **vars(settings)) as client:
        known = client.metadata(target.model, version=target.version, label=target.label)
    found = known.find(signature)
    encoded = []
    for batch in batches:
        arrays = coerce(batch, found)
        if is_rest(url):
            from gru_serving.client.rest.client import RestWire

            rest, _ = RestWire(url).predict(target, signature, found, arrays, [])
            encoded.append(_http_request(url, rest.path, rest.body or b"", settings.token))
        else:
            from gru_serving.client.grpc.client import GrpcWire

            message, _ = GrpcWire().predict(target, signature, found, arrays, [])
            encoded.append(message.request.SerializeToString())
    return encoded


def _http_request(url: str, path: str, body: bytes, token: str | None) -> bytes:
    parts = urlsplit(url)
    if not parts.hostname:
        raise InvalidArgument(f"url: expected http://host:port; got {url!r}")
    bearer = f"Authorization: Bearer {token}\r\n" if token is not None else ""
    head = (
        f"POST {parts.path.rstrip('/')}{path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/json\r\n{bearer}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body
