"""Servers of tests: real processes on real sockets."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from gru_serving.client import connect
from tests import waiting
from tests.ports import free_ports
from tests.warm_process import WarmProcess

REPOSITORY = Path(__file__).resolve().parents[2]
curl_only = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
CONFIG = """
model_config_list {{
  config {{ name: "text" base_path: "{root}/text" model_platform: "tensorflow" }}
  config {{
    name: "affine" base_path: "{root}/affine" model_platform: "tensorflow"
    model_version_policy {{ all {{}} }}
    version_labels {{ key: "stable" value: 1 }}
    version_labels {{ key: "canary" value: 3 }}
  }},
  config {{ name: "echo" base_path: "{root}/echo" model_platform: "tensorflow" }}
  config {{ name: "half/plus:two" base_path: "{root}/half_plus_two"
            model_platform: "tensorflow" }}
}}
"""


# The test models have no digests, and a trial of each would take seconds at every start. With
# SERVING_RUNTIME=tensorflow all servers run exports by TensorFlow too.
RUNTIME = os.environ.get("SERVING_RUNTIME", "auto")
DEFAULTS = ("--trial_load=never", f"--runtime={RUNTIME}")


@dataclass
class Running:
    process: subprocess.Popen | WarmProcess
    port: int
    rest_port: int
    log: Path

    @property
    def rest(self):
        return f"http://localhost:{self.rest_port}"

    @property
    def grpc(self):
        return f"localhost:{self.port}"


def start(*flags, environment=None, prefix=(), cold=False, stdout=None, **popen):
    """A server: a `WarmProcess`, unless `cold` or something that it cannot have says otherwise."""
    writes_files = stdout == subprocess.DEVNULL or hasattr(stdout, "name")
    if writes_files and not (cold or environment or prefix):
        return WarmProcess("gru_serving", "serve", *DEFAULTS, *flags, stdout=stdout, **popen)
    more = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", **(environment or {})}
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "gru_serving", "serve", *DEFAULTS, *flags],
        cwd=REPOSITORY,
        env={**os.environ, **more},
        stdout=stdout,
        **popen,
    )


@contextmanager
def running(log, *flags, ready=True, environment=None, prefix=(), cold=False):
    """A server with these flags, on free ports, until the block ends.

    With `cold` it is started as a user starts it; by default it is a `WarmProcess`.
    """
    port, rest_port = free_ports(2)
    ports = (f"--port={port}", f"--rest_api_port={rest_port}")
    with log.open("wb") as out:
        process = start(
            *ports, *flags, environment=environment, prefix=prefix, cold=cold,
            stdout=out, stderr=out,
        )  # fmt: skip
    server = Running(process, port, rest_port, log)
    try:
        if ready:
            wait_until(lambda: answers(server), server)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(90)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def answered_and_imported(tmp_path, name, base_path, inputs):
    """The answer of a separate server, and everything that its process has imported by then."""
    log = tmp_path / "log"
    flags = (f"--model_name={name}", f"--model_base_path={base_path}")
    environment = {"PYTHONPROFILEIMPORTTIME": "1"}
    with (
        running(log, *flags, environment=environment) as server,
        connect(server.rest) as client,
    ):
        answer = client.predict(inputs, name)
    imported = {line.split("|")[-1].strip() for line in log.read_text().splitlines()}
    assert "tensorflow" in imported
    return answer, imported


def answers(server):
    """Whether it is ready; without the certificates, which take 20 ms of processor time to load."""
    try:
        url = f"{server.rest}/readyz"
        return httpx.get(url, trust_env=False, verify=False).status_code == 200
    except httpx.TransportError:
        return False


def wait_until(done, server=None, seconds=300):
    """As `waiting.wait_until`; gives up at once if the server has ended."""

    def done_or_ended():
        if server is not None and server.process.poll() is not None:
            raise AssertionError(f"the server ended: {server.log.read_text()}")
        return done()

    seen = server.log.read_text if server is not None else lambda: "too slow"
    waiting.wait_until(done_or_ended, seconds, seen)


def wait_until_busy(server):
    """Until the server has computed for a while, so that a requested run is under way."""
    before = cpu_seconds(server.process.pid)
    wait_until(lambda: cpu_seconds(server.process.pid) > before + 0.2, server)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def models_flag(directory, bases):
    """The flag of a configuration in `directory` of models, base paths by name."""
    config = directory / "models.config"
    entries = (
        f'config {{ name: "{name}" base_path: "{base}" model_platform: "tensorflow" }}\n'
        for name, base in bases.items()
    )
    config.write_text(f"model_config_list {{ {''.join(entries)} }}")
    return f"--model_config_file={config}"


def metrics_flag(directory):
    """The flag that turns the page of metrics on, by a file in `directory`."""
    monitoring = directory / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    return f"--monitoring_config_file={monitoring}"


def flags_for(models, directory):
    """Flags of a server of all test models; its files go to `directory`."""
    config = directory / "models.config"
    config.write_text(CONFIG.format(root=models))
    return (
        f"--model_config_file={config}",
        metrics_flag(directory),
        "--allow_version_labels_for_unavailable_models",
        "--rest_api_timeout_in_ms=3000",
    )
