"""The deployment from outside: who gets in, who does not, and whether the answers are right."""

import asyncio
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gru_serving.client import Target, connect, connect_async
from gru_serving.engine.golden import read_golden, replay
from gru_serving.errors import Code, ServingError
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from gru_serving.release.verify import client_engine

from .images import PREFIX, REPOSITORY
from .steady_load import MODEL, TEXTS

pytestmark = pytest.mark.docker

ENGINE_ADDRESSES = ("10.213.87.11", "10.213.87.12")


@pytest.fixture
def rest(deployment):
    """HTTP to the gateway with a valid key."""
    context = ssl.create_default_context(cafile=deployment.certificate)
    headers = {"authorization": f"Bearer {deployment.key()}"}
    base = f"https://{deployment.gateway}"
    with httpx.Client(base_url=base, headers=headers, verify=context, trust_env=False) as client:
        yield client


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_answers_are_those_at_export(deployment, scheme, figures):
    golden = read_golden(deployment.models / MODEL / "1")
    with deployment.client(scheme) as client:
        verdict = replay(golden, client_engine(client, Target(MODEL, 1)))
    assert verdict.requests == len(golden)
    figures(
        f"verify over {scheme}: {verdict.requests} golden requests, largest difference "
        f"{verdict.largest_difference:.1e}"
    )


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_verify_command(deployment, scheme):
    command = [sys.executable, "-m", "gru_serving", "verify", str(deployment.models / MODEL / "1")]
    options = [f"--url={scheme}://{deployment.gateway}", f"--ca_file={deployment.certificate}"]
    key = f"--token_file={deployment.secrets / 'client.key'}"
    done = subprocess.run(
        [*command, *options, key], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "answered as at export" in done.stdout) == (0, True), done.stderr


def test_smoke_client(deployment):
    said = deployment.compose("run", "--rm", "--no-deps", "smoke")
    assert said.count("golden requests of version 1 answered as at export") == 2
    assert said.count(TEXTS[0]) == 2


def test_curl(deployment):
    """A third-party client that speaks HTTP/2."""
    done = subprocess.run(
        [
            *("curl", "--silent", "--http2", "--cacert", deployment.certificate),
            *("--header", f"authorization: Bearer {deployment.key()}"),
            *("--data", json.dumps({"instances": TEXTS})),
            f"https://{deployment.gateway}/v1/models/{MODEL}:predict",
        ],
        capture_output=True,
        check=True,
    )
    assert len(json.loads(done.stdout)["predictions"]) == 2


@pytest.mark.parametrize("key", ["", "wrong", "upper case"])
def test_wrong_keys(deployment, rest, key):
    sent = deployment.key().upper() if key == "upper case" else key
    del rest.headers["authorization"]
    headers = {"authorization": f"Bearer {sent}"} if sent else {}
    answer = rest.get(f"/v1/models/{MODEL}", headers=headers)
    assert answer.status_code == 401
    assert "API key" in answer.json()["error"]
    url = f"grpcs://{deployment.gateway}"
    with connect(url, ca_file=deployment.certificate, token=sent or None, retries=0) as client:
        for call in (lambda: client.predict(TEXTS, MODEL), lambda: client.status(MODEL)):
            with pytest.raises(ServingError) as caught:
                call()
            assert caught.value.code is Code.UNAUTHENTICATED


def test_plain_http(deployment):
    answer = httpx.get(f"http://{deployment.gateway}/v1/models/{MODEL}", trust_env=False)
    assert answer.status_code == 400
    assert "HTTPS" in answer.json()["error"]


@pytest.mark.parametrize(("version", "served"), [("1.1", False), ("1.2", True), ("1.3", True)])
def test_versions_of_tls(deployment, version, served):
    flag = "-tls" + version.replace(".", "_")
    asked = subprocess.run(
        ["openssl", "s_client", "-connect", deployment.gateway, flag, "-brief"],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert (asked.returncode == 0) == served, asked.stderr


@pytest.mark.parametrize(
    "path",
    ["/monitoring/prometheus/metrics", "/models", "/healthz", "/readyz", "/key", "/", "/v1/x"],
)
def test_paths_that_stay_inside(rest, path):
    assert rest.get(path).status_code == 404


def test_reload_stays_inside(deployment):
    with deployment.client("grpcs") as client, pytest.raises(ServingError) as caught:
        client.reload(ModelServerConfig())
    assert "the gateway does not pass this method on" in caught.value.message


def test_large_requests(rest):
    answer = rest.post(f"/v1/models/{MODEL}:predict", content=b" " * (4 * 1024**2 + 1))
    assert answer.status_code == 413
    assert "too large" in answer.json()["error"]


def test_no_way_around_the_gateway(deployment, docker, images):
    """Reachable neither through ports of this machine nor from another container network."""
    for service in ("serving-1", "serving-2"):
        ports = docker("port", deployment.container(service))
        assert ports == ""
    probe = (
        "import socket, sys\n"
        "for address in sys.argv[1:]:\n"
        "    for port in (8500, 8501):\n"
        "        try:\n"
        "            socket.create_connection((address, port), timeout=2)\n"
        "        except OSError as error:\n"
        "            print(address, port, type(error).__name__)\n"
        "        else:\n"
        "            sys.exit(f'{address}:{port} let us in')\n"
    )
    run = ("run", "--rm", "--entrypoint=python3")
    said = docker(
        *(*run, f"--network={PREFIX}_edge", images["engine"], "-c", probe),
        *(*ENGINE_ADDRESSES, "serving-1"),
    )
    assert len(said.splitlines()) == 6
    # Nor can the engines' network reach the outside.
    out = docker(*run, f"--network={PREFIX}_engine", images["engine"], "-c", probe, "203.0.113.1")
    assert len(out.splitlines()) == 2


def test_limit_of_guesses(deployment, rest):
    wrong = {"authorization": "Bearer guess"}
    statuses = [rest.get(f"/v1/models/{MODEL}", headers=wrong).status_code for _ in range(60)]
    assert set(statuses) == {401, 429}
    assert statuses.index(429) <= 30
    # A client with a valid key is not locked out by a neighbour who guesses keys.
    assert rest.get(f"/v1/models/{MODEL}").status_code == 200


def test_limit_of_requests(deployment):
    """More requests at once than a key may send: the rest is refused, also over gRPC."""

    async def ask():
        url, key = f"grpcs://{deployment.gateway}", deployment.key()
        async with connect_async(
            url, ca_file=deployment.certificate, token=key, retries=0, timeout=60
        ) as client:
            tasks = (client.predict(TEXTS, MODEL) for _ in range(500))
            return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(ask())
    refused = [one for one in answers if isinstance(one, ServingError)]
    assert {one.code for one in refused} == {Code.RESOURCE_EXHAUSTED}
    assert 0 < len(refused) < len(answers)
    assert all(isinstance(one, (dict, ServingError)) for one in answers)


@pytest.mark.skipif(os.geteuid() != 0, reason="reads other users' processes")
def test_processes_are_not_root(deployment, docker):
    for service in ("serving-1", "serving-2", "gateway", "prometheus"):
        (found,) = json.loads(docker("inspect", deployment.container(service)))
        assert found["HostConfig"]["ReadonlyRootfs"]
        assert found["HostConfig"]["CapDrop"] == ["ALL"]
        status = Path(f"/proc/{found['State']['Pid']}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        assert int(fields["Uid"].split()[0]) > 1000
        assert int(fields["CapEff"], 16) == 0
        assert fields["NoNewPrivs"] == "1"
