"""Clients over REST and gRPC: `connect("http://localhost:8501")`, `connect_async(...)`."""

from typing import Any

from gru_serving.missing_extra import naming_extra

with naming_extra("gru_serving.client"):
    from gru_serving.client.interface import AsyncClient, Client
    from gru_serving.client.metadata import Metadata, Target, VersionState
    from gru_serving.client.options import ClientOptions

__all__ = [
    "AsyncClient",
    "Client",
    "ClientOptions",
    "Metadata",
    "Target",
    "VersionState",
    "connect",
    "connect_async",
]


def connect(url: str, **options: Any) -> Client:
    """Make a client for a server.

    Args:
        url: `http://host:port` or `https://host:port` for REST; `grpc://host:port`,
            `grpcs://host:port` (TLS), `unix:/path` or plain `host:port` for gRPC.
        **options: Fields of `ClientOptions`: timeout, retries, max_batch_size, ca_file, cert_file,
            key_file, token, max_answer_bytes, balance, max_under_way.

    Raises:
        ModuleNotFoundError: A package of the transport is not installed.
        ValueError: The URL is of another kind, or an option cannot work.
    """
    settings = ClientOptions(**options)
    with naming_extra("gru_serving.client"):
        if _is_rest(url):
            # aiohttp is slow to import.
            from gru_serving.client.rest.client import RestWire
            from gru_serving.client.rest.connection import RestConnection

            url = url.rstrip("/")
            return Client(RestWire(url), RestConnection(url, settings), url, settings)
        from gru_serving.client.grpc.client import GrpcConnection, GrpcWire, grpc_url

        address, tls = _grpc_address(url)
        connection = GrpcConnection(address, tls, settings)
        return Client(GrpcWire(), connection, grpc_url(address, tls), settings)


def connect_async(url: str, **options: Any) -> AsyncClient:
    """Make a client for an event loop; the arguments are those of `connect`."""
    settings = ClientOptions(**options)
    with naming_extra("gru_serving.client"):
        if _is_rest(url):
            from gru_serving.client.rest.client import RestWire
            from gru_serving.client.rest.connection import AsyncRestConnection

            url = url.rstrip("/")
            return AsyncClient(RestWire(url), AsyncRestConnection(url, settings), url, settings)
        from gru_serving.client.grpc.client import AsyncGrpcConnection, GrpcWire, grpc_url

        address, tls = _grpc_address(url)
        connection = AsyncGrpcConnection(address, tls, settings)
        return AsyncClient(GrpcWire(), connection, grpc_url(address, tls), settings)


def _is_rest(url: str) -> bool:
    """Tell whether a URL is for REST.

    Raises:
        ValueError: The URL is that of a request, not of a server, or no text.
    """
    if not isinstance(url, str):
        raise ValueError(f"url: expected text such as 'http://localhost:8501'; got {url!r}")
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest:
        return False
    server, api, _ = url.partition("/v1/models")
    if api:
        raise ValueError(f"url: expected the server's, such as {server}; got {url!r}")
    return True


def _grpc_address(url: str) -> tuple[str, bool]:
    """Return the address of a gRPC URL, and whether it asks for TLS.

    Raises:
        ValueError: The URL is of no kind known.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("grpc", "grpcs") and rest:
        return rest, scheme == "grpcs"
    if scheme == "unix" and rest.startswith("/"):
        return f"unix:{rest}", False
    host, colon, port = url.rpartition(":")
    if not separator and colon and (host == "unix" or port.isdecimal()):
        return url, False
    raise ValueError(
        "url: expected http://host:port or https://host:port (REST), grpc://host:port, host:port "
        f"or unix:/path (gRPC); got {url!r}"
    )
