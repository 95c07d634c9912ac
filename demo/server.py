"""The server that the demo asks."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo.processes import child
from demo.terminal import console

_START_TIMEOUT = 60.0  # seconds


@contextlib.contextmanager
def running_server(folder: Path, *base_paths: Path) -> Iterator[tuple[str, str]]:
    """The embedded server on two free ports; gives its REST and gRPC addresses.

    Args:
        folder: Gets the server's configuration and log.
        base_paths: Of the models.
    """
    rest_port, grpc_port = _free_ports(2)
    config = folder / "models.config"
    models = [
        f'config {{ name: "{path.name}" base_path: "{path.resolve()}" '
        'model_platform: "tensorflow" }'
        for path in base_paths
    ]
    config.write_text("model_config_list {\n  " + "\n  ".join(models) + "\n}\n", "utf-8")
    flags = (
        f"--port={grpc_port}",
        f"--rest_api_port={rest_port}",
        f"--model_config_file={config}",
    )
    terminal = console()
    terminal.print(f"[dim]gru-serve serve {' '.join(flags)}[/dim]")
    command = ("-m", "gru_serving", "serve", *flags)
    with (
        (folder / "server.log").open("wb") as log,
        child(*command, stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        deadline = time.monotonic() + _START_TIMEOUT
        while not _listens(rest_port) or not _listens(grpc_port):
            if process.poll() is not None or time.monotonic() > deadline:
                terminal.print((folder / "server.log").read_text("utf-8", errors="replace"))
                raise subprocess.CalledProcessError(process.returncode or 1, "serve")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{rest_port}", f"grpc://127.0.0.1:{grpc_port}"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def ask(rest: str, grpc: str, model: str, inputs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The answers of a model by transport."""
    from gru_serving.client import connect

    answers = {}
    for transport, url in (("REST", rest), ("gRPC", grpc)):
        with connect(url) as client:
            answers[transport] = client.predict(inputs, model=model)
    return answers
