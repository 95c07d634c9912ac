"""Versions that come and go on disk, with real SavedModels."""

import logging
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gru_serving.config.files import ServedModel, VersionPolicy
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import NotFound, Unavailable, Unknown
from gru_serving.repository.repository import RepositoryOptions
from gru_serving.storage.digests import write_digests
from gru_serving.storage.version_scan import is_version, versions_on_disk
from tests.serving.repository.affine_versions import FAST, Counted, X, ask, states
from tests.serving.saved_models import publish
from tests.waiting import wait_until


def test_new_version_takes_over_and_the_old_one_goes(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    assert ask(repository) == (1, 1.0)
    publish(models, base, 2, source=3)
    wait_until(lambda: states(repository) == {2: "AVAILABLE", 1: "END"})
    assert ask(repository) == (2, 10.0)
    with pytest.raises(NotFound, match=r"Specific\(m, 1\)"):
        ask(repository, version=1)


def test_no_request_fails_during_the_swap(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    seen, stop = [], threading.Event()

    def hammer():
        while not stop.is_set():
            seen.append(ask(repository))

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in (2, 3, 4):
        publish(models, base, version, source=3 if version % 2 else 1)
        wait_until(lambda v=version: states(repository).get(v) == "AVAILABLE")
        wait_until(lambda v=version: states(repository)[v - 1] == "END")
    stop.set()
    for thread in threads:
        thread.join()
    assert {version for version, _ in seen} == {1, 2, 3, 4}
    assert set(seen) == {(1, 1.0), (2, 1.0), (3, 10.0), (4, 1.0)}


def test_a_version_in_use_is_not_freed(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    with repository.acquire("m") as (predictor, version):
        publish(models, base, 2)
        wait_until(lambda: states(repository)[1] == "UNLOADING")
        time.sleep(0.1)
        assert states(repository)[1] == "UNLOADING"
        assert version == 1
        assert predictor.predict(X)["y"][0, 0] == 1.0
        assert ask(repository)[0] == 2
    wait_until(lambda: states(repository)[1] == "END")


def test_broken_version_leaves_the_old_one_serving_and_is_not_tried_again(
    models, base, opened, polled
):
    publish(models, base, 1)
    load = Counted()
    repository = opened(ServedModel("m", base), load=load)
    repository.start()
    (base / "2").mkdir()
    wait_until(lambda: states(repository).get(2) == "END")
    assert ask(repository) == (1, 1.0)
    status = repository.status("m", 2)[0]
    assert status.error_code.name == "NOT_FOUND"
    assert "Could not find SavedModel" in status.error_message
    broken, serving = repository.listing()[0]["versions"]
    assert broken["error"].startswith("NOT_FOUND: Could not find SavedModel")
    assert serving["error"] == ""
    polled()
    assert states(repository) == {2: "END", 1: "AVAILABLE"}
    assert load.tried == ["1", "2"]
    # Gone and back again counts as new.
    (base / "2").rename(base.parent / "elsewhere")
    polled()
    (base.parent / "elsewhere").rename(base / "2")
    wait_until(lambda: load.tried == ["1", "2", "2"])
    wait_until(lambda: states(repository) == {2: "END", 1: "AVAILABLE"})


def test_empty_base_path_unloads_everything(models, base, opened, caplog):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    shutil.rmtree(base / "1")
    wait_until(lambda: states(repository) == {1: "END"})
    assert "Did you forget to name your leaf directory as a number" in caplog.text
    with pytest.raises(NotFound):
        ask(repository)
    assert not repository.ready()


@pytest.mark.parametrize("policy", [VersionPolicy(), VersionPolicy("specific", versions=(1,))])
def test_the_last_version_stays_where_versions_are_always_present(
    models, base, opened, caplog, policy
):
    publish(models, base, 1)
    options = replace(FAST, always_present=True)
    repository = opened(ServedModel("m", base, policy), options=options)
    repository.start()
    shutil.rmtree(base / "1")
    wait_until(lambda: "Refusing to unload all versions for Servable: m" in caplog.text)
    assert ask(repository) == (1, 1.0)
    publish(models, base, 2)
    if policy.kind == "latest":
        wait_until(lambda: states(repository) == {2: "AVAILABLE", 1: "END"})


def test_another_base_path_with_the_number_that_serves_is_said(
    models, base, opened, polled, caplog
):
    publish(models, base, 1)
    other = base.parent / "other"
    publish(models, other, 1, source=3)
    repository = opened(ServedModel("m", base))
    repository.start()
    repository.reconfigure([ServedModel("m", other)])
    wait_until(lambda: f"altered after it was loaded ({other / '1'}/" in caplog.text)
    polled()
    assert caplog.text.count("altered") == 1
    assert ask(repository) == (1, 1.0)


@pytest.mark.parametrize("listed", [False, True])
def test_a_version_altered_in_place_is_said_once(models, base, opened, polled, caplog, listed):
    publish(models, base, 1)
    if listed:
        write_digests(base / "1")
    repository = opened(ServedModel("m", base))
    repository.start()
    said = "Version 1 of servable m was altered after it was loaded (saved_model.pb)"
    model = base / "1" / "saved_model.pb"
    (base / "1" / "assets.extra").mkdir(exist_ok=True)
    (base / "1" / "assets.extra" / "notes").write_text("may be added")
    polled()
    assert "was altered" not in caplog.text
    if listed:  # the same content again is no other version
        content = model.read_bytes()
        model.unlink()
        model.write_bytes(content)
        polled()
        assert "was altered" not in caplog.text
    model.write_bytes(model.read_bytes() + b"\0")
    wait_until(lambda: said in caplog.text)
    polled()
    assert caplog.text.count(said) == 1
    assert ask(repository) == (1, 1.0)
    model.write_bytes(b"another")
    wait_until(lambda: caplog.text.count(said) == 2)


def test_missing_base_path_changes_nothing(models, base, opened, caplog):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    base.rename(base.parent / "moved")
    wait_until(lambda: "filesystem access error" in caplog.text)
    assert ask(repository) == (1, 1.0)


def test_start_waits_for_the_first_version(models, base, opened):
    base.mkdir()
    repository = opened(ServedModel("m", base))
    started = threading.Thread(target=repository.start)
    started.start()
    time.sleep(0.1)
    assert started.is_alive()
    publish(models, base, 1)
    started.join(60)
    assert not started.is_alive()
    assert ask(repository) == (1, 1.0)


def test_close_ends_the_wait(base, opened):
    base.mkdir()
    repository = opened(ServedModel("m", base))
    started = threading.Thread(target=repository.start)
    started.start()
    repository.close()
    started.join(60)
    assert not started.is_alive()


def test_a_version_in_the_place_of_its_base_path_is_pointed_out(
    models, base, opened, caplog, monkeypatch
):
    monkeypatch.setattr("gru_serving.repository.repository._PATIENCE", 0)
    publish(models, base, 1)
    repository = opened(ServedModel("m", base / "1"))
    started = threading.Thread(target=repository.start)
    started.start()
    wait_until(lambda: "waiting" in caplog.text)
    repository.close()
    started.join(60)
    hint = f"waiting for a version of m in {base}/1, which is a version itself; its base path is "
    assert f"{hint}{base}\n" in caplog.text


def test_start_without_polling_does_not_wait(base, opened):
    base.mkdir()
    with pytest.raises(Unavailable, match="no version to serve for: m"):
        opened(ServedModel("m", base), options=RepositoryOptions(poll_seconds=0)).start()


def test_start_fails_when_the_only_version_does(base, opened):
    (base / "7").mkdir(parents=True)
    with pytest.raises(Unknown) as caught:
        opened(ServedModel("m", base)).start()
    assert str(caught.value).startswith(
        "1 servable(s) did not become available: {{{name: m version: 7} due to error: NOT_FOUND: "
    )
    assert str(caught.value).endswith(", }")


def test_retries(models, base, opened, caplog):
    publish(models, base, 1)
    tries = []

    def flaky(path):
        tries.append(path)
        if len(tries) < 3:
            raise OSError("disk on fire")
        return Predictor(path)

    options = RepositoryOptions(poll_seconds=0.02, max_load_retries=2, retry_seconds=0)
    repository = opened(ServedModel("m", base), load=flaky, options=options)
    with caplog.at_level(logging.ERROR):
        repository.start()
    assert len(tries) == 3
    assert "disk on fire" in caplog.text
    assert states(repository) == {1: "AVAILABLE"}


def test_a_folder_that_may_not_be_read_holds_no_versions(base, monkeypatch):
    """As one of another user's, mounted into a container."""

    def refused(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(NotFound, match=r"Could not find base path .*: Permission denied"):
        versions_on_disk(base)
    assert not is_version(base)
