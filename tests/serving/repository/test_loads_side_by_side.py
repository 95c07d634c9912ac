"""Versions that are loaded and unloaded at the same time, and isolated models."""

import threading
import time

import pytest

from gru_serving.config.files import ServedModel, VersionPolicy
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import NotFound
from gru_serving.repository.repository import RepositoryOptions
from tests.serving.repository.affine_versions import ask, states
from tests.serving.saved_models import publish
from tests.waiting import wait_until


class Gate:
    """Loads that wait until they are let through, counted."""

    def __init__(self):
        self.under_way = 0
        self.open = threading.Event()

    def __call__(self, path):
        self.under_way += 1
        self.open.wait(20)
        self.under_way -= 1
        return Predictor(path)


@pytest.mark.parametrize(("threads", "together"), [(0, 1), (2, 2), (4, 3)])
def test_versions_loaded_at_once(models, base, opened, threads, together):
    publish(models, base, 1)
    gate = Gate()
    gate.open.set()
    options = RepositoryOptions(poll_seconds=0.02, max_load_retries=0, load_threads=threads)
    repository = opened(ServedModel("m", base, VersionPolicy("all")), load=gate, options=options)
    repository.start()
    gate.open.clear()
    for version in (2, 3, 4):
        publish(models, base, version)
    wait_until(lambda: gate.under_way == together)
    time.sleep(0.2)
    assert gate.under_way == together
    assert ask(repository, version=1) == (1, 1.0)
    gate.open.set()
    wait_until(lambda: states(repository) == dict.fromkeys((1, 2, 3, 4), "AVAILABLE"))


@pytest.mark.parametrize(("threads", "others"), [(0, "AVAILABLE"), (2, "END")])
def test_an_unload_that_takes_long(models, base, opened, threads, others):
    """Without threads for it, everything waits for the requests of the version that goes."""
    for version in (1, 2, 3):
        publish(models, base, version)
    options = RepositoryOptions(poll_seconds=0.02, max_load_retries=0, unload_threads=threads)
    repository = opened(ServedModel("m", base, VersionPolicy("all")), options=options)
    repository.start()
    with repository.acquire("m", 1):
        for version in (1, 2):
            (base / str(version)).rename(base.parent / f"gone-{version}")
        wait_until(lambda: states(repository)[1] == "UNLOADING")
        if others == "END":
            wait_until(lambda: states(repository)[2] == "END")
        time.sleep(0.2)
        assert states(repository)[2] == others
        assert ask(repository)[0] == 3
    wait_until(lambda: states(repository) == {1: "END", 2: "END", 3: "AVAILABLE"})


def test_versions_about_to_serve_are_announced(models, base, opened):
    publish(models, base, 7)
    told = []
    repository = opened(ServedModel("m", base), loaded=lambda *what: told.append(what))
    repository.start()
    assert told == [("m", 7, base / "7")]


def test_scan_once_and_reload(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base), options=RepositoryOptions(poll_seconds=0))
    repository.start()
    publish(models, base, 2)
    time.sleep(0.1)
    assert states(repository) == {1: "AVAILABLE"}
    repository.reconfigure([ServedModel("n", base)])
    assert states(repository, "n") == {2: "AVAILABLE"}
    assert states(repository) == {1: "END"}


ISOLATED = RepositoryOptions(
    poll_seconds=0.02, max_load_retries=3, retry_seconds=60, isolate_models=True
)


def test_isolated_models_start_without_the_broken_and_the_missing(models, base, opened):
    publish(models, base, 1)
    broken, missing = base.parent / "broken", base.parent / "missing"
    (broken / "1").mkdir(parents=True)
    repository = opened(
        ServedModel("m", base),
        ServedModel("broken", broken),
        ServedModel("missing", missing),
        options=ISOLATED,
    )
    repository.start()  # although the broken one will be retried for minutes
    assert ask(repository) == (1, 1.0)
    assert states(repository, "broken") == {1: "LOADING"}
    assert [one["name"] for one in repository.listing()] == ["broken", "m", "missing"]
    with pytest.raises(NotFound, match="Servable not found for request"):
        ask(repository, "broken")
    assert repository.ready()
    # Neither keeps the others from being updated, and both may arrive later.
    publish(models, base, 2)
    wait_until(lambda: states(repository) == {2: "AVAILABLE", 1: "END"})
    publish(models, broken, 2, source=1)
    wait_until(lambda: states(repository, "broken").get(2) == "AVAILABLE")
    publish(models, missing, 1)
    wait_until(lambda: ask_or_none(repository, "missing") == (1, 1.0))


def test_isolated_models_that_all_fail_are_not_ready(base, opened):
    (base / "1").mkdir(parents=True)
    repository = opened(ServedModel("m", base), options=ISOLATED)
    repository.start()
    assert not repository.ready()


def test_reconfiguring_isolated_models_waits_for_none_that_is_not_there(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base), options=ISOLATED)
    repository.start()
    repository.reconfigure([ServedModel("m", base), ServedModel("later", base.parent / "later")])
    assert ask(repository) == (1, 1.0)
    publish(models, base.parent / "later", 1)
    wait_until(lambda: ask_or_none(repository, "later") == (1, 1.0))


def ask_or_none(repository, name):
    try:
        return ask(repository, name)
    except NotFound:
        return None
