"""The startup warning of a server that other machines can reach without a token."""

from __future__ import annotations

from gru_serving.config.flags import Flags
from gru_serving.server.host_guard import is_loopback


def exposure(flags: Flags) -> str:
    """One line on what is open beyond this machine and how to close it; empty if nothing is."""
    ports = [f"{port}" for port in (flags.port, flags.rest_api_port) if port]
    if flags.auth_token_file or not ports or is_loopback(flags.bind_address):
        return ""
    open_at = f"{flags.bind_address}:{' or :'.join(ports)}"
    reload = " and change over gRPC which models are served" if flags.port else ""
    profiler = " and make it write profiles" if flags.port and flags.enable_profiler else ""
    return (
        f"Without --auth_token_file, clients of {open_at} can send requests{reload}{profiler}. "
        "Set --auth_token_file, or make the server reachable only through a gateway."
    )
