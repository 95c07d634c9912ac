"""`gru-serve serve`: a server that can replace `tensorflow_model_server`."""

import contextlib
import logging
import os
import sys
from collections.abc import Sequence

from gru_serving.config.flags import Flags, HelpRequested, check, notes, parse_flags, usage
from gru_serving.errors import (
    InvalidArgument,
    ServingError,
    Unimplemented,
    refused_by_system,
)
from gru_serving.missing_extra import require_extra
from gru_serving.server.process import Server, run_server
from gru_serving.server.rest.guards import is_loopback
from gru_serving.telemetry.server_log import start_log

log = logging.getLogger(__name__)

FAILURE_STATUS = 255


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP.

    Args:
        argv: Flags of TF Serving (`gru_serving.config.flags`).

    Returns:
        0 after a stop by signal; 255, as TF Serving, when the server could not start.
    """
    try:
        flags = parse_flags(argv)
    except HelpRequested:
        print(usage())
        return FAILURE_STATUS
    except InvalidArgument as error:
        print(f"{error}\n{usage()}")
        return FAILURE_STATUS
    if flags.version:
        print(_versions())
        return 0
    start_log()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    _prefer_classic_polling()
    try:
        if sys.platform == "win32":
            raise Unimplemented(
                "the server needs Linux or macOS; on Windows, run it in WSL or in a container"
            )
        check(flags)
        require_extra("serve-light")
        for note in notes(flags):
            log.warning(note)
        if warning := exposure(flags):
            log.warning(warning)
        server = Server(flags)
        if flags.workers > 1:
            from gru_serving.server.workers.owner import Owner

            server = Owner(flags)
        run_server(server, flags)
    except ServingError as error:
        print(f"Failed to start server. Error: {error.status}", flush=True)
        return FAILURE_STATUS
    except (MemoryError, RuntimeError) as error:
        refusal = refused_by_system(error)
        if refusal is None:
            raise
        print(f"Failed to start server. Error: {refusal.status}", flush=True)
        return FAILURE_STATUS
    return 0


def exposure(flags: Flags) -> str:
    """Describe in one line what is open beyond this machine and how to close it.

    Empty if nothing is.
    """
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


def _prefer_classic_polling() -> None:
    """Make gRPC poll sockets in the thread that waits for events; call before grpc is imported.

    Its newer EventEngine polls in threads of its own, which costs a thread switch per event: a
    quarter more processor time and latency per request. A setting by the user takes precedence.
    """
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener,-event_engine_client")


def _versions() -> str:
    own, tensorflow = _installed("keras-gru"), _installed("tensorflow", "tensorflow-cpu")
    return f"TensorFlow ModelServer: keras-gru {own}\nTensorFlow Library: {tensorflow}"


def _installed(*packages: str) -> str:
    """Return the version of the first of these packages that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            return version(package)
    return "(not installed)"
