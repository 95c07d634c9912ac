"""Versions and configurations change while clients ask, and nobody notices."""

import functools
import shutil
import time

import grpc
import pytest

from gru_serving.client import connect
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.services import MODEL_SERVICE, Stub
from tests.serving import hostile
from tests.serving.load import FIRST, THIRD, load, resident
from tests.serving.saved_models import publish
from tests.serving.servers import models_flag, running, wait_until

BURST = hostile.inputs(100, 1500)  # requests at once


@pytest.mark.slow
def test_hot_swaps(models, tmp_path, figures):
    """Three models swap their versions at the same time; memory does not grow with each swap."""
    names = ("a", "b", "c")
    for name in names:
        publish(models, tmp_path / name, 1)
    rounds = hostile.inputs(4, 34)
    memory = {}
    with (
        running(
            tmp_path / "log", models_flag(tmp_path, {name: tmp_path / name for name in names})
        ) as server,
        load(server, *names, burst=BURST) as seen,
        connect(server.grpc) as client,
    ):
        for version in range(2, rounds + 2):
            for name in names:
                publish(models, tmp_path / name, version, source=3 if version % 2 else 1)
                shutil.rmtree(tmp_path / name / str(version - 1))
            for name in names:
                wait_until(functools.partial(only, client, name, version), server)
            memory[(version - 1) * len(names)] = round(resident(server))
    figures(f"{rounds * len(names)} swaps, {seen.counted} requests; MiB by swaps: {memory}")
    seen.check(least=100)
    assert all(values == {FIRST, THIRD} for values in seen.answers.values())
    if hostile.FULL:
        assert memory[rounds * len(names)] < memory[12] + 60, memory


def only(client, name, version):
    return lives(client, name) == {version}


def lives(client, name):
    return {one.version for one in client.status(name) if one.state != "END"}


def test_reloads(models, tmp_path, figures):
    """The configuration changes over gRPC: models come and go, and the one that stays answers."""
    for name in ("stays", "other"):
        publish(models, tmp_path / name, 1)
        publish(models, tmp_path / name, 2, source=3)
    count = hostile.inputs(6, 50)
    memory = {}
    with (
        running(tmp_path / "log", models_flag(tmp_path, {"stays": tmp_path / "stays"})) as server,
        load(server, "stays", burst=BURST) as seen,
        grpc.insecure_channel(server.grpc) as channel,
        connect(server.rest) as client,
    ):
        stub = Stub(channel, MODEL_SERVICE)
        for number in range(1, count + 1):
            request = ReloadConfigRequest()
            listed = request.config.model_config_list.config
            stays = listed.add(name="stays", model_platform="tensorflow")
            stays.base_path = str(tmp_path / "stays")
            if number % 2:
                stays.model_version_policy.all.SetInParent()
                listed.add(
                    name="other", base_path=str(tmp_path / "other"), model_platform="tensorflow"
                )
            assert stub.HandleReloadConfigRequest(request, timeout=60).status.error_code == 0
            expected = {1, 2} if number % 2 else {2}
            wait_until(lambda expected=expected: lives(client, "stays") == expected, server)
            wait_until(lambda odd=number % 2: bool(lives(client, "other")) == bool(odd), server)
            memory[number] = round(resident(server))
            time.sleep(0.1)
    figures(f"{count} reloads, {seen.counted} requests; MiB by reloads: {memory}")
    seen.check(least=100)
    if hostile.FULL:
        # The first ten fill caches and the allocator's pools.
        assert memory[count] < memory[10] + 30, memory
