"""The processes that train one model together: which one this is, and a launcher for one machine.

The environment variable TF_CONFIG of TensorFlow names the processes, here called workers. Clusters
set it, among them Ray Train; `launch` sets it for processes of this machine. Nothing here loads
TensorFlow.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from gru_training.errors import ConfigError, LostWorkerError
from gru_training.loop.checkpoint import checkpoint_path, cut_short, run_of

VARIABLE = "TF_CONFIG"
_SECONDS_TO_END = 3.0
"""Time that the other workers have to end by themselves after one has failed."""


class Place(NamedTuple):
    """The place of this process among the workers."""

    number: int
    """Number of this worker, from 0; the first one writes the run."""
    addresses: tuple[str, ...]
    """Address (host:port) of each worker."""

    @property
    def number_on_host(self) -> int:
        """Number of earlier workers on the same host."""
        hosts = [address.rpartition(":")[0] for address in self.addresses]
        return hosts[: self.number].count(hosts[self.number])


ALONE = Place(0, ("",))


def find_place() -> Place:
    """Read the place of this process from TF_CONFIG; without it, the process is alone.

    Raises:
        ConfigError: TF_CONFIG names no cluster of workers with this process in it.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return ALONE
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        jobs = {job: list(map(str, cluster.get(job, ()))) for job in ("chief", "worker")}
        index = int(task["index"]) + (0 if task["type"] == "chief" else len(jobs["chief"]))
        if set(cluster) - set(jobs) or not 0 <= int(task["index"]) < len(jobs[task["type"]]):
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(
            f"the environment variable {VARIABLE}: expected a cluster of workers and the place of "
            'this process in it, as {"cluster": {"worker": ["host:port", ...]}, "task": {"type": '
            f'"worker", "index": 0}}}}, got {text!r}; unset it to train in one process'
        ) from None
    return Place(index, (*jobs["chief"], *jobs["worker"]))


def launch(command: Sequence[str], count: int, runs: Path, run: Path | None = None) -> int:
    """Run a command of `gru-train` as several workers on this machine, and end them together.

    The first worker has this process's output. That of the others is shown if one of them fails
    first.

    Args:
        command: Words after `gru-train`.
        count: Number of workers.
        runs: Folder in which the run is written.
        run: Directory of the run where the command names it.

    Returns:
        Exit status of the first worker.

    Raises:
        LostWorkerError: Another worker failed, or one was killed.
        ConfigError: TF_CONFIG names workers already.
    """
    if os.environ.get(VARIABLE):
        raise ConfigError(
            f"--workers starts processes of this machine, but the environment variable {VARIABLE} "
            "names others; leave out one of the two"
        )
    started = time.time()
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(count)]
    threads = str(max(1, (os.cpu_count() or 1) // count))
    with contextlib.ExitStack() as stack:
        outputs: list[IO[bytes] | None] = [None]
        outputs += [stack.enter_context(TemporaryFile()) for _ in range(1, count)]
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "gru_training", *command],
                env={
                    "TF_NUM_INTRAOP_THREADS": threads,  # together they use every processor once
                    **os.environ,
                    VARIABLE: _config(addresses, index),
                },
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
            )
            for index, output in enumerate(outputs)
        ]
        failed = _wait(processes)
        if failed is None:
            return 0
        status, output = processes[failed].returncode, outputs[failed]
        if output is None and status > 0:  # it has said why
            return status
        if output is not None:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
    left = (run,) if run is not None else cut_short(runs)
    paths = [path for path in map(checkpoint_path, left) if path.exists()]
    paths = [path for path in paths if run or path.stat().st_mtime >= started]
    why = f"ended with status {status}" if status > 0 else f"was killed by {_signal(-status)}"
    raise LostWorkerError(
        f"worker {failed + 1} of {count} {why}; "
        + (
            f"continue with `gru-train resume {quote(str(run_of(paths[0])))}`"
            if paths
            else "start again: there is no checkpoint yet"
        )
    )


def _wait(processes: Sequence["subprocess.Popen[bytes]"]) -> int | None:
    """Wait for the workers; returns the number of the first that failed, after ending the others.

    A Ctrl-C in the terminal reaches the workers too, and is theirs to answer.
    """

    def stop(*_: object) -> None:
        for process in processes:
            process.terminate()

    before = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    before[signal.SIGTERM] = signal.signal(signal.SIGTERM, stop)
    try:
        while True:
            ended = [process.poll() for process in processes]
            failed = next((number for number, status in enumerate(ended) if status), None)
            if failed is not None or None not in ended:
                break
            time.sleep(0.05)
        if failed is None:
            return None
        deadline = time.monotonic() + _SECONDS_TO_END
        while time.monotonic() < deadline and None in [process.poll() for process in processes]:
            time.sleep(0.05)
        # A fault of data or settings is the same in all, and is shown once.
        return 0 if processes[0].poll() and processes[failed].returncode > 0 else failed
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


def _config(addresses: Sequence[str], index: int) -> str:
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": {"worker": list(addresses)}, "task": task})


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in made]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
