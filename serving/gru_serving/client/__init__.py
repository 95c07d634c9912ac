"""Clients over REST and gRPC: `connect("http://localhost:8501")`, `connect_async(...)`."""

from __future__ import annotations

from typing import Any

from gru_serving.missing_extra import naming_extra

with naming_extra("gru_serving.client"):
    from gru_serving.client.async_interface import AsyncClient
    from gru_serving.client.interface import Client
    from gru_serving.client.metadata import Metadata, VersionState
    from gru_serving.client.options import ClientOptions
    from gru_serving.client.server_url import grpc_address, is_rest
    from gru_serving.client.target import Target

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
    """A client for a server.

    Args:
        url: `http://host:port` or `https://host:port` for REST; `grpc://host:port`,
            `grpcs://host:port` (TLS), `unix:/path` or plain `host:port` for gRPC.
        **options: Of `ClientOptions`: timeout, retries, max_batch_size, ca_file, cert_file,
            key_file, token, max_answer_bytes, balance, max_under_way.

    Raises:
        ModuleNotFoundError: A package of the transport is not installed.
        ValueError: The URL is of another kind, or an option cannot work.
    """
    settings = ClientOptions(**options)
    with naming_extra("gru_serving.client"):
        if is_rest(url):
            from gru_serving.client.rest.client import RestClient

            return RestClient(url, settings)
        from gru_serving.client.grpc.client import GrpcClient

        return GrpcClient(*grpc_address(url), settings)


def connect_async(url: str, **options: Any) -> AsyncClient:
    """A client for a server; arguments as of `connect`."""
    settings = ClientOptions(**options)
    with naming_extra("gru_serving.client"):
        if is_rest(url):
            from gru_serving.client.rest.client import AsyncRestClient

            return AsyncRestClient(url, settings)
        from gru_serving.client.grpc.client import AsyncGrpcClient

        return AsyncGrpcClient(*grpc_address(url), settings)
