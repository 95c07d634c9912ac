"""Who can reach a server without a token, as its log says at the start."""

from __future__ import annotations

from serving.flags import Flags
from serving.host_guard import is_loopback


def exposure(flags: Flags) -> str:
    """One line on what is open beyond this machine and how to close it; empty if nothing is."""
    ports = [f"{port}" for port in (flags.port, flags.rest_api_port) if port]
    if flags.auth_token_file or not ports or is_loopback(flags.bind_address):
        return ""
    open_at = f"{flags.bind_address}:{' or :'.join(ports)}"
    reload = " and, over gRPC, change which models are served" if flags.port else ""
    profiler = " and have profiles written" if flags.port and flags.enable_profiler else ""
    return (
        f"Without --auth_token_file, whoever reaches {open_at} may ask{reload}{profiler}. "
        "Set --auth_token_file, or let nothing but a gateway reach it."
    )
