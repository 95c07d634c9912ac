"""Models behind Ray Serve on two nodes: the answers of the server itself, and faults survived."""

import json
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import grpc
import numpy as np
import pytest
from google.protobuf import text_format
from tests.serving.conformance.refusals import REFUSALS, affine

from gru_serving.client import connect
from gru_serving.config.flags import Flags
from gru_serving.errors import ServingError
from gru_serving.protos import pool
from gru_serving.protos.get_model_metadata_pb2 import GetModelMetadataResponse, SignatureDefMap
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from tests.serving.messages import (
    BOTH,
    HALF,
    examples,
    metadata,
    multi_inference,
    predict,
    regression,
    status,
)
from tests.serving.raw_http import HALF_URL, raw
from tests.serving.ray.cluster import two_nodes
from tests.serving.servers import CONFIG, running
from tests.waiting import wait_until

pytestmark = pytest.mark.long

TEXT, AFFINE = "/v1/models/text", "/v1/models/affine"
WITH_EXPORT = """
model_config_list {{
  config {{ name: "one" base_path: "{root}" model_platform: "tensorflow" }}
"""
EXAMPLE = '{"signature_name": "%s", "examples": [{"x": 3.0}, {"x": 4.0}]}'
REST = [
    ("GET", TEXT, None),
    ("GET", f"{HALF_URL}/versions/1", None),
    ("GET", f"{AFFINE}/metadata", None),
    ("GET", f"{AFFINE}/labels/stable/metadata", None),
    ("GET", "/v1/models/one/metadata", None),
    ("GET", "/models", None),
    ("GET", "/elsewhere", None),
    ("PUT", TEXT, "{}"),
    ("POST", f"{TEXT}:predict?verbose=1", "{}"),
    ("POST", f"{TEXT}:predict", '{"instances": ["good film", "bad"]}'),
    ("POST", f"{TEXT}:predict", '{"inputs": ["good film", "bad"]}'),
    ("POST", "/v1/models/one:predict", '{"instances": ["good film", "bad"]}'),
    ("POST", "/v1/models/one:predict", '{"inputs": ["good film", "bad"]}'),
    ("POST", "/v1/models/one:predict", '{"instances": [1]}'),
    ("POST", f"{AFFINE}/labels/canary:predict", '{"inputs": {"x": [[1, 2, 3]], "b": [[4]]}}'),
    ("POST", f"{AFFINE}/versions/1:predict", '{"instances": [{"x": [1, 2, 3], "b": [4]}]}'),
    ("POST", f"{HALF_URL}:classify", EXAMPLE % "classify_x_to_y"),
    ("POST", f"{HALF_URL}:regress", EXAMPLE % "regress_x_to_y"),
    *(refusal.rest for refusal in REFUSALS.values() if refusal.rest),
]  # fmt: skip
GRPC = [
    ("GetModelStatus", status(model_spec={"name": "affine"})),
    ("GetModelMetadata", metadata(model_spec={"name": HALF}, metadata_field=["signature_def"])),
    ("Predict", predict("one", texts=[b"good film", b"bad"])),
    ("Predict", predict(HALF, x=np.float32([1, 4]))),
    ("Predict", affine(label="canary")),
    ("Predict", affine(version=1)),
    ("Classify", examples(HALF, "classify_x_to_y", 3.0, 4.0)),
    ("Regress", regression(HALF, "regress_x_to_y", 3.0, 4.0)),
    ("MultiInference", multi_inference(*BOTH)),
    *(refusal.grpc for refusal in REFUSALS.values() if refusal.grpc),
]


@pytest.fixture(scope="module")
def cluster():
    with two_nodes() as cluster:
        yield cluster


def deploy(cluster, path, flags=None, **options):
    from gru_serving import ray

    options = {"num_replicas": 2, "ray_actor_options": {"num_cpus": 1}, **options}
    made = ray.deployment(path, flags, **options)
    ray.deploy(made, cluster.port, cluster.rest_port, "127.0.0.1")


def parsed(text):
    return text_format.Parse(text, ModelServerConfig(), descriptor_pool=pool.POOL)


def over_rest(server, method, path, body):
    answered, content, headers = raw(server, method, path, body)
    if answered == 200 and path.endswith("/metadata"):
        content = json.loads(content)  # signatures come in any order
    return answered, content, headers["content-type"]


def over_grpc(server, method, message):
    service = "ModelService" if method == "GetModelStatus" else "PredictionService"
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(f"/tensorflow.serving.{service}/{method}")
        try:
            answer = call(message.SerializeToString(deterministic=True), timeout=30)
        except grpc.RpcError as error:
            return error.code(), error.details()
    if method == "GetModelMetadata":
        signatures = SignatureDefMap()
        GetModelMetadataResponse.FromString(answer).metadata["signature_def"].Unpack(signatures)
        return signatures
    return answer


def test_same_answers_as_the_server(cluster, models, exports, tmp_path):
    config = tmp_path / "models.config"
    text = CONFIG.format(root=models).replace(
        "model_config_list {", WITH_EXPORT.format(root=exports.version("one").parent), 1
    )
    config.write_text(text)
    labels = {"allow_version_labels_for_unavailable_models": True}
    with pytest.raises(RuntimeError, match=r"no replica starts: FailedPrecondition: .* label"):
        deploy(cluster, config, Flags(trial_load="never"), num_replicas=1)
    deploy(cluster, config, Flags(trial_load="never", **labels), num_replicas=1)
    flags = f"--model_config_file={config}", *(f"--{name}=true" for name in labels)
    with running(tmp_path / "log", *flags) as server:
        for request in REST:
            assert over_rest(cluster, *request) == over_rest(server, *request), request
        for request in GRPC:
            assert over_grpc(cluster, *request) == over_grpc(server, *request), request
        with connect(cluster.grpc) as client, pytest.raises(ServingError, match="deploy-ray"):
            client.reload(parsed(text))
    assert len(REST) + len(GRPC) > 80


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
        "upscale_delay_s": 0.5, "downscale_delay_s": 1, "metrics_interval_s": 0.5,
        "look_back_period_s": 2,
    }  # fmt: skip
    deploy(cluster, base, num_replicas="auto", autoscaling_config=scaling)
    wait_until(lambda: len(cluster.replicas()) == 1)
    _, failed, errors = under_load(
        cluster, lambda: wait_until(lambda: len(cluster.replicas()) == 2), seconds=1
    )
    assert not failed, errors
