"""What operators do and what happens to them, while clients ask: new versions, stops, crashes.

The tests run in this order: version 1 serves at first, version 2 after the first test.
"""

import json
import subprocess
import sys
import time

import pytest

from .images import PREFIX, REPOSITORY
from .steady_load import MODEL, answer, steady_load

pytestmark = pytest.mark.docker


def gateway_log(deployment, since):
    """What the gateway logged about each request."""
    log = deployment.docker("logs", f"--since={since}", deployment.container("gateway"))
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def asked_twice(entries):
    """Requests that the gateway passed to a second replica."""
    return sum(entry["upstream"].count(":85") > 1 for entry in entries)


def unanswered(entries):
    """Requests that the gateway gave up on, by transport."""
    rest = sum(entry["status"] >= 500 for entry in entries)
    return {"REST": rest, "gRPC": sum(entry["grpc_status"] == "14" for entry in entries)}


def now():
    return f"{time.time():.3f}"


def run_serving(*arguments):
    command = [sys.executable, "-m", "gru_serving", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def newest(client):
    """The highest version in service."""
    states = client.status(MODEL)
    return max((one.version for one in states if one.state == "AVAILABLE"), default=0)


def test_new_version_under_load(deployment, models, figures):
    with deployment.client("grpcs") as client:
        first = answer(client)
        with steady_load(deployment) as load:
            time.sleep(1)
            begun = time.monotonic()
            run_serving(
                *("publish", str(models / "next" / MODEL)), "--to", str(deployment.models / MODEL)
            )
            deadline = time.monotonic() + 120
            # On both replicas, although each request goes to a random one.
            while not all(newest(client) == 2 for _ in range(8)):
                assert time.monotonic() < deadline
                time.sleep(0.2)
            took = time.monotonic() - begun
            time.sleep(1)
        second = answer(client)
    figures(f"new version under load: {load.figures()}; both replicas had it after {took:.0f} s")
    assert load.failures == []
    assert first != second
    assert load.answers == {first, second}


def test_graceful_restart_under_load(deployment, figures):
    since = now()
    with steady_load(deployment) as load:
        time.sleep(1)
        deployment.compose("restart", "--timeout=30", "serving-1")
        deployment.wait_healthy("serving-1")
        time.sleep(3)
    again = asked_twice(gateway_log(deployment, since))
    figures(f"a replica restarted under load: {load.figures()}; the gateway asked twice {again} x")
    assert load.failures == []
    assert len(load.answers) == 1


def test_killed_replica_under_load(deployment, docker, figures):
    """Clients must retry what was under way: one of these requests may have killed the replica."""
    since = now()
    killed = deployment.container("serving-2")
    with steady_load(deployment, threads=4, retries=3) as load:
        time.sleep(2)
        before = len(load.seconds) / 2
        docker("kill", "--signal=KILL", killed)
        time.sleep(5)
        without = (len(load.seconds) - 2 * before) / 5
        pending = until_alert(deployment, "ReplicaDown")
        docker("start", killed)
        deployment.wait_healthy("serving-2")
        time.sleep(3)
    entries = gateway_log(deployment, since)
    lost = unanswered(entries)
    figures(f"a replica killed under load: {load.figures()}; alert ReplicaDown {pending}")
    figures(
        f"  the gateway asked twice {asked_twice(entries)} x; it gave up {lost['REST']} REST and "
        f"{lost['gRPC']} gRPC requests, which the clients sent again"
    )
    figures(f"  {before:.0f} requests/s before, {without:.0f} with one replica")
    assert load.failures == []
    assert max(lost.values()) <= 4  # one for each client that waited for an answer
    assert len(load.answers) == 1
    assert shares(deployment) == {"serving-1", "serving-2"}


def until_alert(deployment, name, seconds=30):
    """The alert's state, as soon as there is one."""
    deadline = time.monotonic() + seconds
    while not (found := deployment.query(f'ALERTS{{alertname="{name}"}}')):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found[0]["metric"]["alertstate"]


def shares(deployment):
    """The replicas that answer at present."""
    since = now()
    with deployment.client("https") as client:
        for _ in range(20):
            answer(client)
    addresses = {"10.213.87.11:8501": "serving-1", "10.213.87.12:8501": "serving-2"}
    return {addresses[entry["upstream"]] for entry in gateway_log(deployment, since)}


BALANCED = """
import re
from urllib.request import urlopen
from gru_serving.client import connect

def answered(replica):
    page = urlopen(f"http://{replica}:8501/monitoring/prometheus/metrics").read().decode()
    found = re.search(r'request_count\\{model_name="sentiment",status="OK"\\} (\\d+)', page)
    return int(found[1]) if found else 0

replicas = ("serving-1", "serving-2")
before = [answered(one) for one in replicas]
with connect("grpc://serving:8500", balance=True) as client:
    for _ in range(40):
        client.predict(["fine"], "sentiment")
print(*(answered(one) - count for one, count in zip(replicas, before)))
"""


def test_clients_balance_over_a_name_of_many_addresses(deployment, docker, images):
    """As with a headless service: `serving` is the name of both replicas."""
    said = docker(
        *("run", "--rm", f"--network={PREFIX}_engine", "--entrypoint=python3"),
        *(images["engine"], "-c", BALANCED),
    )
    assert all(10 <= int(count) <= 30 for count in said.split()), said


def test_sixteen_clients(deployment, figures):
    with steady_load(deployment, threads=8) as load:
        time.sleep(4)
    assert not load.failures
    figures(f"16 clients: {load.figures()}")
