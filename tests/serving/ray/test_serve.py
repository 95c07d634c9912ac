"""Models behind Ray Serve on two nodes: the answers of TF Serving, and faults survived."""

import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

from gru_serving.client import connect
from gru_serving.config.flags import Flags, parse_flags
from gru_serving.conformance import kit
from gru_serving.conformance.models import FLAGS, make_models
from gru_serving.conformance.server import Server
from gru_serving.errors import ServingError
from gru_serving.protos import pool
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from tests.made_once import made_once
from tests.serving.ray.cluster import two_nodes
from tests.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster():
    with two_nodes() as cluster:
        yield cluster


def deploy(cluster, path, flags=None, **options):
    from gru_serving import ray

    options = {"num_replicas": 2, "ray_actor_options": {"num_cpus": 1}, **options}
    made = ray.deployment(path, flags, **options)
    ray.deploy(made, cluster.port, cluster.rest_port, "127.0.0.1")


def test_answers_are_those_of_tensorflow_serving(cluster, tmp_path):
    models = tmp_path / "models"
    shutil.copytree(made_once("conformance", make_models), models)
    text = kit.CONFIG.read_text().replace("$models", str(models))
    config = models / "models.config"
    config.write_text(text)
    with pytest.raises(RuntimeError, match=r"no replica starts: FailedPrecondition: .* label"):
        deploy(cluster, config, Flags(trial_load="never"), num_replicas=1)
    flags = parse_flags([f"--{flag}" for flag in FLAGS if "healthcheck" not in flag])
    deploy(cluster, config, flags, num_replicas=1)
    # A replica does not see a client's deadline, and would go on with that run beside the others.
    cases = [case for case in kit.all_cases() if case.name != "a deadline (grpc)"]
    with Server(cluster.grpc, cluster.rest, str(models), timeout=30) as server:
        found = kit.ask(server, cases, kit.read_deviations(kit.DEVIATIONS))
    assert [one for one in found if one.verdict == kit.DEVIATES] == []
    not_offered = {one.case.topic for one in found if one.verdict == kit.NOT_OFFERED}
    assert not_offered == {"reload", "transport"}  # reloads, and health over gRPC
    assert kit.counts(found)[kit.SAME] > 400
    with connect(cluster.grpc) as client, pytest.raises(ServingError, match="deploy-ray"):
        client.reload(text_format.Parse(text, ModelServerConfig(), descriptor_pool=pool.POOL))


@pytest.fixture(scope="module")
def base(exports, tmp_path_factory):
    """The base path of an export that needs no TensorFlow, on a disk that all nodes see."""
    base = tmp_path_factory.mktemp("served") / "one"
    shutil.copytree(exports.version("one").parent, base)
    return base


def under_load(cluster, change, seconds=8):
    """Requests and failures by (transport, retries) while something changes, and afterwards.

    Every answer is compared; twelve clients ask, of which half try nothing a second time.
    """
    ended = threading.Event()
    asked, failed, errors = Counter(), Counter(), []

    def ask(transport, retries):
        with connect(getattr(cluster, transport), retries=retries, timeout=60) as client:
            expected = client.predict(["good film"], "one")["scores"]
            while not ended.is_set():
                asked[transport, retries] += 1
                try:
                    answer = client.predict(["good film"], "one")["scores"]
                    np.testing.assert_array_equal(answer, expected)
                except ServingError as error:
                    failed[transport, retries] += 1
                    errors.append(f"{error.status} ({retries} retries)")
                except BaseException as error:
                    errors.append(repr(error))
                    raise

    kinds = [(transport, retries) for transport in ("rest", "grpc") for retries in (0, 3)]
    threads = [threading.Thread(target=ask, args=kind) for kind in 3 * kinds]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2)
        change()
        time.sleep(seconds)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    return asked, failed, errors


def test_faults_and_updates_lose_no_request(cluster, base, figures):
    deploy(cluster, base)
    for pid in cluster.replicas():
        assert "tensorflow" not in Path(f"/proc/{pid}/maps").read_text()

    def publish():
        shutil.copytree(base / "1", base / "aside")
        (base / "aside").rename(base / "2")
        for _ in range(20):  # both replicas
            wait_until(lambda: highest(cluster) == 2)

    changes = {
        "nothing": lambda: None,
        "a replica killed": cluster.kill_replica,
        "a new version published": publish,
        "deployed anew, with batching": lambda: deploy(cluster, base, Flags(enable_batching=True)),
        "a node killed": cluster.kill_node,
        "a node added": cluster.add_node,
    }
    for name, change in changes.items():
        asked, failed, errors = under_load(cluster, change)
        first = sum(count for (_, retries), count in failed.items() if not retries)
        figures(
            f"{name}: {asked.total()} requests, {first} of {asked['rest', 0] + asked['grpc', 0]} "
            f"failed at their first try, {failed.total() - first} of "
            f"{asked['rest', 3] + asked['grpc', 3]} with the client's retries"
        )
        # In a replica that is killed is at most what each client had sent.
        assert first <= (6 if "killed" in name else 0), (name, errors)
        assert failed.total() == first, (name, errors)
        assert min(asked.values()) > 20, (name, asked)
        assert len(errors) == first, (name, errors)
    wait_until(lambda: len(cluster.replicas()) == 2)


def highest(cluster):
    with connect(cluster.rest) as client:
        return max(one.version for one in client.status("one") if one.state == "AVAILABLE")


def test_replicas_follow_the_load(cluster, base):
    scaling = {
        "min_replicas": 1, "max_replicas": 2, "target_ongoing_requests": 1,
        "upscale_delay_s": 0.5, "downscale_delay_s": 1,
    }  # fmt: skip
    deploy(cluster, base, num_replicas="auto", autoscaling_config=scaling)
    wait_until(lambda: len(cluster.replicas()) == 1)
    _, failed, errors = under_load(
        cluster, lambda: wait_until(lambda: len(cluster.replicas()) == 2), seconds=1
    )
    assert not failed, errors
