"""The gateway in front of replicas that misbehave: what it retries, and what it never retries."""

import socket
import ssl
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import grpc
import httpx
import pytest

from gru_serving.client import connect
from gru_serving.errors import Code, ServingError
from tests.waiting import wait_until

from .images import PREFIX, REPOSITORY
from .steady_load import MODEL

pytestmark = pytest.mark.docker

NETWORK = f"{PREFIX}_attempts"
REPLICAS = ("serving-1", "serving-2")
SCRIPT = REPOSITORY / "tests" / "docker" / "false_replica.py"
LONGER_THAN_A_REPLICA_IS_LEFT_OUT = 3.5  # two seconds, counted in whole seconds


class Gateway:
    """The image alone, in front of two false replicas."""

    def __init__(self, docker, deployment, port):
        self._docker = docker
        self._url = f"localhost:{port}"
        self._certificate = deployment.certificate
        self._key = deployment.key()

    def rest(self, method="POST"):
        with httpx.Client(
            headers={"authorization": f"Bearer {self._key}"},
            verify=ssl.create_default_context(cafile=self._certificate),
            trust_env=False,
        ) as client:
            return client.request(method, f"https://{self._url}/v1/models/{MODEL}").status_code

    def grpc(self):
        url = f"grpcs://{self._url}"
        with (
            connect(url, ca_file=self._certificate, token=self._key, retries=0) as client,
            pytest.raises(ServingError) as caught,
        ):
            client.predict(["x"], MODEL)
        return caught.value

    def grpc_answers(self, calls):
        """How many calls of one connection ended with each status."""
        credentials = grpc.ssl_channel_credentials(Path(self._certificate).read_bytes())
        metadata = (("authorization", f"Bearer {self._key}"),)
        ended = Counter()
        with grpc.secure_channel(self._url, credentials) as channel:
            call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
            for _ in range(calls):
                try:
                    call(b"asked", metadata=metadata, timeout=20)
                except grpc.RpcError as error:
                    ended[error.code().name, error.details()] += 1
                else:
                    ended["OK"] += 1
        return ended

    def seen(self):
        """How many requests each replica received, by name and port."""
        return Counter(
            (name, line.split()[0])
            for name in REPLICAS
            if self._docker("ps", "--quiet", f"--filter=name={PREFIX}-{name}")
            for line in self._docker("logs", f"{PREFIX}-{name}").splitlines()
            if line[:1].isdigit()  # not what the engine's gate logs
        )


def listens(address):
    """Whether a false replica has opened both ports; its imports take a while."""
    try:
        for port in (8500, 8501):
            socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def gateway(docker, images, deployment, *modes):
    """Run a gateway until the block ends; "none" is a replica that does not exist."""
    containers = []
    docker("network", "create", "--subnet=10.213.88.0/24", NETWORK)
    try:
        for number, mode in enumerate(modes, 1):
            name = f"{PREFIX}-serving-{number}"
            arguments = ["/false_replica.py", mode, "8500", "8501"]
            if mode == "none":
                continue
            containers.append(name)
            docker(
                *("run", "--detach", f"--name={name}", f"--network={NETWORK}"),
                *(f"--ip=10.213.88.1{number}", "--no-healthcheck", "--entrypoint=python3"),
                *(f"--volume={SCRIPT}:/false_replica.py:ro", images["engine"], *arguments),
            )
        for number, mode in enumerate(modes, 1):
            if mode != "none":
                wait_until(partial(listens, f"10.213.88.1{number}"))
        containers.append(f"{PREFIX}-alone")
        secrets = ("tls_certificate", "tls_key", "api_keys")
        docker(
            *("run", "--detach", f"--name={PREFIX}-alone", f"--network={NETWORK}"),
            *(f"--add-host=serving-{n}:10.213.88.1{n}" for n in (1, 2)),
            *(f"--volume={deployment.secrets / one}:/run/secrets/{one}:ro" for one in secrets),
            *("--read-only", "--tmpfs=/tmp", "--publish=127.0.0.1::8443", images["gateway"]),
        )
        state = ("inspect", "--format={{.State.Health.Status}}", f"{PREFIX}-alone")
        deadline = time.monotonic() + 60
        while docker(*state).strip() != "healthy":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        port = docker("port", f"{PREFIX}-alone", "8443/tcp").strip().rpartition(":")[2]
        yield Gateway(docker, deployment, port)
    finally:
        for name in containers:
            docker("rm", "--force", "--volumes", name)
        docker("network", "rm", NETWORK)


def test_a_request_that_breaks_its_replica_is_not_sent_again(docker, images, deployment):
    """One request brings down at most one replica, whatever its transport or method."""
    with gateway(docker, images, deployment, "break", "break") as alone:
        total = 0
        for method in ("POST", "GET"):
            assert alone.rest(method) == 502
            total += 1
            assert sum(alone.seen().values()) == total
            time.sleep(LONGER_THAN_A_REPLICA_IS_LEFT_OUT)
        error = alone.grpc()
        assert error.code is Code.UNAVAILABLE
        assert "may have been begun" in error.message
        assert sum(alone.seen().values()) == total + 1


def test_what_no_replica_was_sent_goes_to_the_other(docker, images, deployment):
    with gateway(docker, images, deployment, "none", "answer") as alone:
        for _ in range(3):
            assert [alone.rest(method) for method in ("POST", "GET")] == [200, 200]
            time.sleep(LONGER_THAN_A_REPLICA_IS_LEFT_OUT)
        assert alone.seen() == {("serving-2", "8501"): 6}


def test_a_call_that_no_replica_was_sent_goes_to_the_other(docker, images, deployment):
    """The false replica cannot answer gRPC; what counts is that it was asked each time."""
    with gateway(docker, images, deployment, "none", "break") as alone:
        for asked in (1, 2, 3):
            assert "may have been begun" in alone.grpc().message
            assert alone.seen() == {("serving-2", "8500"): asked}
            time.sleep(LONGER_THAN_A_REPLICA_IS_LEFT_OUT)


def test_what_a_stopping_replica_refuses_goes_to_the_other(docker, images, deployment):
    with gateway(docker, images, deployment, "stop", "answer") as alone:
        for _ in range(3):
            assert [alone.rest(method) for method in ("POST", "GET")] == [200, 200]
            time.sleep(LONGER_THAN_A_REPLICA_IS_LEFT_OUT)
        seen = alone.seen()
        assert seen["serving-2", "8501"] == 6
        assert seen["serving-1", "8501"] >= 1


def test_a_call_that_a_stopping_replica_refuses_goes_to_the_other(docker, images, deployment):
    with gateway(docker, images, deployment, "stop", "answer") as alone:
        for _ in range(3):
            assert alone.grpc_answers(10) == {"OK": 10}
            time.sleep(LONGER_THAN_A_REPLICA_IS_LEFT_OUT)
        seen = alone.seen()
        assert seen["serving-2", "8500"] == 30
        assert 1 <= seen["serving-1", "8500"] <= 3


def test_a_call_that_both_replicas_refuse(docker, images, deployment):
    with gateway(docker, images, deployment, "stop", "stop") as alone:
        assert alone.grpc_answers(1) == {("UNAVAILABLE", "no replica answered"): 1}
        assert alone.seen() == {("serving-1", "8500"): 1, ("serving-2", "8500"): 1}


def test_no_replica(docker, images, deployment):
    with gateway(docker, images, deployment, "none", "none") as alone:
        assert [alone.rest(method) for method in ("POST", "GET")] == [503, 503]
        error = alone.grpc()
        assert (error.code, "no replica answered" in error.message) == (Code.UNAVAILABLE, True)
