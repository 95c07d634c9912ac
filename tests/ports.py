"""Ports for servers under test."""

import socket


def free_ports(count):
    """Numbers of this many TCP ports on which nothing listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
