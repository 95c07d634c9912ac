"""The URLs by which clients name a server: REST or gRPC, with or without TLS."""

from __future__ import annotations


def is_rest(url: str) -> bool:
    """Whether a URL is for REST.

    Raises:
        ValueError: It is that of a request, not of a server.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest:
        return False
    server, api, _ = url.partition("/v1/models")
    if api:
        raise ValueError(f"url: expected the server's, such as {server}; got {url!r}")
    return True


def grpc_address(url: str) -> tuple[str, bool]:
    """The address of a gRPC URL, and whether it asks for TLS.

    Raises:
        ValueError: The URL is of no kind known.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("grpc", "grpcs") and rest:
        return rest, scheme == "grpcs"
    host, colon, port = url.rpartition(":")
    if not separator and colon and (host == "unix" or port.isdecimal()):
        return url, False
    raise ValueError(
        "url: expected http://host:port or https://host:port (REST), grpc://host:port or "
        f"host:port (gRPC); got {url!r}"
    )
