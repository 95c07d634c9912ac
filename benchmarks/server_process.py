"""A server of one version in a process of its own."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gru_serving.client import Client, connect
from gru_serving.errors import ServingError
from tests.ports import free_ports

NAME = "model"
PATIENCE = 120.0  # seconds


class RunningServer(NamedTuple):
    """A server of the model `NAME`.

    Attributes:
        base: Folder of its versions.
        url: URL of the server's gRPC port.
        log: File with the server's output.
    """

    base: Path
    url: str
    log: Path


@contextlib.contextmanager
def running_server(
    base: Path, version: Path, warmup: bool, runtime: str = "auto"
) -> Iterator[RunningServer]:
    """Serve a copy of a version as version 1; the block begins when it is available.

    Args:
        base: Folder to create for the model's versions.
        version: Folder of an exported version.
        warmup: Whether the server runs its warmup requests.
        runtime: Value of the server's flag `--runtime`.
    """
    publish(version, base, 1)
    (port,) = free_ports(1)
    command = [
        *(sys.executable, "-m", "gru_serving", "serve", f"--port={port}", f"--model_name={NAME}"),
        *(f"--model_base_path={base}", "--file_system_poll_wait_seconds=1"),
        *(f"--enable_model_warmup={str(warmup).lower()}", f"--runtime={runtime}"),
    ]
    server = RunningServer(base, f"grpc://127.0.0.1:{port}", base.parent / f"{base.name}.log")
    with server.log.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        await_version(server.url, 1)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def publish(version: Path, base: Path, number: int) -> None:
    """Put a copy of a version into a folder of versions, as a whole."""
    aside = base / f"aside-{number}"
    shutil.copytree(version, aside)
    aside.rename(base / str(number))


def await_version(url: str, number: int, model: str = NAME) -> None:
    """Wait until a version is available."""
    deadline = time.monotonic() + PATIENCE
    with connect(url, retries=0) as client:
        while not _serves(client, number, model):
            if time.monotonic() > deadline:
                raise TimeoutError(f"version {number} was not served within {PATIENCE:.0f} s")
            time.sleep(0.05)


def _serves(client: Client, number: int, model: str) -> bool:
    with contextlib.suppress(ServingError):
        return any(
            one.version == number and one.state == "AVAILABLE" for one in client.status(model)
        )
    return False
