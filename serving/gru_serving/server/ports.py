"""Claiming the ports of a server."""

from __future__ import annotations

import errno
import socket

from gru_serving.errors import Unavailable


def bind(host: str, port: int, flag: str) -> socket.socket:
    """A bound TCP socket, not yet listening, beside which nobody else can bind the port.

    Raises:
        Unavailable: The port is taken; names the flag that chooses another.
    """
    try:
        return _bound(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise port_error(host, port, flag, error) from None
    try:
        # Connections of an earlier server may be all that is left there.
        return _bound(host, port, beside_old_connections=True)
    except OSError as error:
        raise port_error(host, port, flag, error) from None


def _bound(host: str, port: int, beside_old_connections: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off, which costs 40 ms per answer, only where TCP is explicit.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if beside_old_connections:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def port_error(host: str, port: int, flag: str, error: OSError) -> Unavailable:
    """The error for a port that cannot be had, with the way out."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return Unavailable(
            f"--bind_address={host} is no address of this machine: {error.strerror or error}. "
            "0.0.0.0 listens on all of them, 127.0.0.1 on loopback."
        )
    return Unavailable(
        f"cannot listen on {host_port(host, port)}: {error.strerror or error}. "
        f"Choose another port with --{flag}, or stop the program that uses this one."
    )


def host_port(host: str, port: int) -> str:
    """The two joined, IPv6 addresses in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
