"""Common parts of both listeners of a server: claiming a port, TLS, and the drain."""

import asyncio
import errno
import socket
import ssl
import tempfile
import time
from pathlib import Path

from gru_serving.config.files import read_text_proto
from gru_serving.errors import InvalidArgument, ServingError, Unavailable
from gru_serving.protos.ssl_config_pb2 import SSLConfig

STOPPING = "the server is stopping"

_QUIET_SECONDS, _MOST_SECONDS = 0.2, 2.0


def bind(host: str, port: int, flag: str, shared: bool = False) -> socket.socket:
    """Return a bound TCP socket, not yet listening.

    Args:
        host: Address to listen on.
        port: Port to listen on.
        flag: Flag that chooses another port, for messages.
        shared: Whether sockets that are made so as well may bind the port beside it; else nobody.

    Raises:
        Unavailable: The port is taken; names the flag that chooses another.
    """
    try:
        return _bound(host, port, shared)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise port_error(host, port, flag, error) from None
    try:
        # Only connections of an earlier server may remain there.
        return _bound(host, port, shared, beside_old_connections=True)
    except OSError as error:
        raise port_error(host, port, flag, error) from None


def claim(host: str, port: int, flag: str) -> socket.socket:
    """Return a socket that keeps a port for the workers of this server, without listening itself.

    Raises:
        Unavailable: The port is taken, if only by another server with workers.
    """
    bind(host, port, flag).close()
    return bind(host, port, flag, shared=True)


def _bound(
    host: str, port: int, shared: bool, beside_old_connections: bool = False
) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm, which costs 40 ms per answer, only if TCP is named
    # explicitly.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if beside_old_connections:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def port_error(host: str, port: int, flag: str, error: OSError) -> Unavailable:
    """Make the error for a port that cannot be bound, with the way out."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return Unavailable(
            f"--bind_address={host} is no address of this machine: {error.strerror or error}. "
            "0.0.0.0 listens on all of them, 127.0.0.1 on loopback."
        )
    return Unavailable(
        f"cannot listen on {host_port(host, port)}: {error.strerror or error}. "
        f"Choose another port with --{flag}, or stop the program that uses this one."
    )


def refuse_taken_socket(path: str) -> None:
    """Check that no server listens on a UNIX socket: gRPC would take its place, and remove it.

    Raises:
        Unavailable: Another server listens there.
    """
    try:
        with socket.socket(socket.AF_UNIX) as other:
            other.setblocking(False)
            other.connect(path)
    except BlockingIOError:  # many clients wait there already
        pass
    except (OSError, AttributeError):  # Windows has none
        return
    raise Unavailable(
        f"cannot listen on unix:{path}: another server does. Choose another path with "
        "--grpc_socket_path, or stop that server."
    )


def host_port(host: str, port: int) -> str:
    """Join host and port; IPv6 addresses are in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tls_context(path: str, flag: str) -> ssl.SSLContext:
    """Return the TLS settings of a listener.

    Args:
        path: File with an SSLConfig as text.
        flag: Flag that named the file, for messages.

    Raises:
        ServingError: The file is missing or no SSLConfig, or its key, certificate or CA is invalid.
    """
    config = read_text_proto(path, SSLConfig())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        _load_pair(context, config)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise _refused(
            path, flag, "server_key and server_cert are not a matching PEM pair", error
        ) from None
    if config.custom_ca:
        try:
            context.load_verify_locations(cadata=config.custom_ca)
        except (OSError, ValueError) as error:
            raise _refused(path, flag, "custom_ca contains no PEM certificate", error) from None
    if config.client_verify:
        if not config.custom_ca:
            raise _refused(path, flag, "client_verify needs a custom_ca")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load_pair(context: ssl.SSLContext, config: SSLConfig) -> None:
    # Python reads keys only from files; the directory is readable by this user alone.
    with tempfile.TemporaryDirectory(prefix="gru-serve-") as directory:
        key, certificate = Path(directory, "key"), Path(directory, "certificate")
        key.touch(mode=0o600)
        key.write_text(config.server_key)
        certificate.write_text(config.server_cert)
        context.load_cert_chain(certificate, key)


def _refused(path: str, flag: str, what: str, error: Exception | None = None) -> ServingError:
    reason = f" ({error})" if error is not None else ""
    return InvalidArgument(f"--{flag}: {path}: {what}{reason}")


class QuietPeriod:
    """The state of a listener that refuses requests, with the time of the last one.

    Attributes:
        begun: Whether it refuses.
    """

    def __init__(self) -> None:
        self.begun = False
        self._last = 0.0

    def note(self) -> None:
        """Record that a request was refused."""
        self._last = time.monotonic()

    async def pass_by(self) -> None:
        """Refuse new requests; returns when no more arrive, or after two seconds."""
        self.begun = True
        self._last = begun = time.monotonic()
        while time.monotonic() < min(self._last + _QUIET_SECONDS, begun + _MOST_SECONDS):
            await asyncio.sleep(_QUIET_SECONDS / 5)
