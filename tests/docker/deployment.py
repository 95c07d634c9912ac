"""Start the compose file of docker/, send requests to it, and stop it."""

import json
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from gru_serving.client import connect
from tests.ports import free_ports

from .images import PREFIX, REPOSITORY

COMPOSE_FILE = REPOSITORY / "docker" / "compose.yaml"
SERVICES = ("serving-1", "serving-2", "gateway", "prometheus")
START_SECONDS = 300


@dataclass
class Deployment:
    """What runs, and how to reach it.

    Attributes:
        docker: The engine's client.
        environment: Of Compose.
        models: Folder of the served models.
        secrets: Folder with certificate and keys.
        gateway: host:port.
        prometheus: URL.
    """

    docker: object
    environment: dict
    models: Path
    secrets: Path
    gateway: str
    prometheus: str

    def compose(self, *arguments):
        return self.docker.compose(
            *(f"--project-name={PREFIX}", f"--file={COMPOSE_FILE}", *arguments),
            environment=self.environment,
        )

    def container(self, service):
        return self.compose("ps", "--quiet", service).strip()

    def health(self, service):
        state = json.loads(
            self.docker("inspect", "--format={{json .State}}", self.container(service))
        )
        return state["Health"]["Status"] if state["Running"] else state["Status"]

    def wait_healthy(self, *services):
        deadline = time.monotonic() + START_SECONDS
        while any(self.health(service) != "healthy" for service in services):
            assert time.monotonic() < deadline, self.compose("logs", "--no-color")
            time.sleep(0.3)

    def key(self, name="client"):
        return (self.secrets / f"{name}.key").read_text().strip()

    @property
    def certificate(self):
        return str(self.secrets / "tls_certificate")

    def client(self, scheme, key="client", **options):
        token = self.key(key) if key else None
        return connect(
            f"{scheme}://{self.gateway}", ca_file=self.certificate, token=token, **options
        )

    def query(self, expression):
        """Prometheus' answer to an expression."""
        answer = httpx.get(
            f"{self.prometheus}/api/v1/query", params={"query": expression}, trust_env=False
        ).json()
        assert answer["status"] == "success", answer
        return answer["data"]["result"]


@contextmanager
def deployed(docker, models, build, figures):
    """All services except Grafana, healthy, until the block ends."""
    gateway, prometheus = free_ports(2)
    secrets = build / "secrets"
    shutil.rmtree(secrets, ignore_errors=True)
    subprocess.run([REPOSITORY / "docker" / "secrets.sh", secrets], check=True)
    environment = {
        "IMAGES": PREFIX,
        "MODELS": str(models / "served"),
        "SECRETS": str(secrets),
        "GATEWAY_PORT": str(gateway),
        "PROMETHEUS_PORT": str(prometheus),
    }
    deployment = Deployment(
        docker,
        environment,
        models / "served",
        secrets,
        f"localhost:{gateway}",
        f"http://localhost:{prometheus}",
    )
    take_down(deployment)
    begun = time.monotonic()
    try:
        deployment.compose("up", "--detach", "--no-build", *SERVICES)
        deployment.wait_healthy(*SERVICES)
        figures(f"compose: everything healthy {time.monotonic() - begun:.0f} s after `up`")
        yield deployment
    finally:
        (build / "compose.log").write_text(deployment.compose("logs", "--no-color"))
        take_down(deployment)
    for kind in (("ps", "--all"), ("network", "ls"), ("volume", "ls")):
        mark = f"--filter=label=com.docker.compose.project={PREFIX}"
        assert docker(*kind, "--quiet", mark) == "", f"left behind: {kind}"


def take_down(deployment):
    deployment.compose("down", "--volumes", "--remove-orphans", "--timeout=30")
