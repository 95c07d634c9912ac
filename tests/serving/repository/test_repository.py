"""Versions that come and go, with real SavedModels; and the policy on its own."""

import logging
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serving.config.files import ServedModel, VersionPolicy
from serving.engine.predictor import Predictor
from serving.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable, Unknown
from serving.repository.loading import RepositoryOptions
from serving.repository.repository import Repository
from serving.repository.versions import ModelVersions, State, Version
from serving.storage.version_scan import choose, scan, versions_on_disk
from tests.serving.repository.affine_versions import Counted, X, ask, states
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
    monkeypatch.setattr("serving.repository.repository._PATIENCE", 0)
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


def test_labels(models, base, opened):
    publish(models, base, 1)
    publish(models, base, 2, source=3)
    served = ServedModel("m", base, VersionPolicy("all"), {"old": 1, "new": 2})
    with pytest.raises(FailedPrecondition) as caught:
        opened(served).start()
    assert str(caught.value) == (
        "Request to assign label to version 1 of model m, which is not currently available for "
        "inference"
    )
    options = RepositoryOptions(poll_seconds=0.02, allow_labels_for_unavailable=True)
    repository = opened(served, options=options)
    repository.start()
    assert ask(repository, label="old") == (1, 1.0)
    assert ask(repository, label="new") == (2, 10.0)
    with pytest.raises(InvalidArgument, match="Unrecognized servable version label: x"):
        ask(repository, label="x")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (VersionPolicy(), {12}),
        (VersionPolicy("latest", 2), {5, 12}),
        (VersionPolicy("latest", 0), {12}),
        (VersionPolicy("all"), {-1, 5, 12}),
        (VersionPolicy("specific", versions=(5, 99)), {5}),
        (VersionPolicy("specific"), set()),
    ],
)
def test_policies(policy, expected):
    assert set(choose({5: Path(), 12: Path(), -1: Path()}, policy)) == expected


def test_scan_of_names(tmp_path, caplog):
    for name in ("00000123", "7", "007", "tmp", "1.5", "９", "99999999999999999999"):
        (tmp_path / name).mkdir()
    (tmp_path / "42").write_text("files count too")
    versions_on_disk(tmp_path)
    found = versions_on_disk(tmp_path)
    assert found == {123: tmp_path / "00000123", 7: tmp_path / "7", 42: tmp_path / "42"}
    assert caplog.text.count("both stand for version 7") == 1  # not at every scan
    with pytest.raises(NotFound, match="No such file"):
        scan(ServedModel("m", tmp_path / "nix"))


def test_numbers_of_versions_are_int64(tmp_path):
    for name in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1):
        (tmp_path / str(name)).mkdir()
    assert set(versions_on_disk(tmp_path)) == {2**63 - 1, -(2**63)}


def test_versions_asked_for_that_are_missing_are_named(tmp_path, caplog):
    (tmp_path / "5").mkdir()
    asked = ServedModel("m", tmp_path, VersionPolicy("specific", versions=(5, 99)))
    assert scan(asked) == {5: tmp_path / "5"}
    assert f"Version 99 of servable m is not under {tmp_path}" in caplog.text
    assert "Version 5 " not in caplog.text


def versions(aspired, **by_state):
    model = ModelVersions(ServedModel("m", Path("/m")), aspired={n: Path() for n in aspired})
    for state, numbers in by_state.items():
        for number in numbers:
            model.known[number] = Version(number, Path(), State[state])
    return model


@pytest.mark.parametrize(
    ("model", "unload", "load"),
    [
        (versions([2], AVAILABLE=[1], START=[2]), None, 2),
        (versions([2], AVAILABLE=[1, 2]), 1, None),
        (versions([], AVAILABLE=[1, 2]), 1, None),
        (versions([3], AVAILABLE=[1, 2], START=[3]), 1, 3),
        (versions([3, 4], AVAILABLE=[1], START=[3, 4]), None, 4),
        (versions([2], AVAILABLE=[1], END=[2]), None, None),
        (versions([2], AVAILABLE=[2], UNLOADING=[1]), None, None),
    ],
)
def test_availability_preserving_policy(model, unload, load):
    for got, expected in ((model.next_unload(), unload), (model.next_load(), load)):
        assert (got.number if got else None) == expected


def test_ended_versions_start_anew_once_they_were_gone():
    model = versions([1, 2], AVAILABLE=[1], END=[2])
    both = {1: Path(), 2: Path()}

    def found():
        return {number: version.state.name for number, version in model.known.items()}

    model.aspire(both)
    assert found() == {1: "AVAILABLE", 2: "END"}
    model.aspire({})
    unloaded = model.next_unload()
    model.aspire(both)  # too late for the version that is about to be unloaded
    unloaded.state = State.END
    assert found() == {1: "END", 2: "START"}
    model.aspire(both)
    assert found() == {1: "START", 2: "START"}


def test_used_label_may_not_move_to_an_unloaded_version():
    model = versions([1], AVAILABLE=[1])
    labelled = ServedModel("m", Path("/m"), labels={"stable": 1})
    model.check_labels(labelled.labels, allow_unavailable=False)
    model.configure(labelled)
    with pytest.raises(FailedPrecondition):
        model.check_labels({"stable": 2}, allow_unavailable=True)
    model.check_labels({"stable": 1, "next": 2}, allow_unavailable=True)
    with pytest.raises(FailedPrecondition):
        model.check_labels({"stable": 1, "next": 2}, allow_unavailable=False)
    # Applied again, as by polling, while the version is still expected.
    model.configure(ServedModel("m", Path("/m"), labels={"stable": 1, "next": 2}))
    model.check_labels({"stable": 1, "next": 2}, allow_unavailable=True)
    with pytest.raises(FailedPrecondition):
        model.check_labels({"stable": 1, "next": 3}, allow_unavailable=True)


def test_nothing_configured_is_no_way_to_unload_everything(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    with pytest.raises(FailedPrecondition, match="Cannot transition to requested config"):
        repository.reconfigure(None)
    assert states(repository) == {1: "AVAILABLE"}
    repository.reconfigure([])
    assert states(repository) == {1: "END"}
    assert repository.configured_names() == []


def test_labels_before_any_configuration():
    repository = Repository(None)
    try:
        repository.start()
        repository.reconfigure(None)
        with pytest.raises(Unavailable, match=r"^Model labels does not init yet\.a$"):
            ask(repository, label="a")
        repository.reconfigure([])
        with pytest.raises(InvalidArgument, match="Unrecognized servable version label: a"):
            ask(repository, label="a")
    finally:
        repository.close()


def test_reconfigure_adds_removes_and_relabels(models, base, opened):
    publish(models, base, 1)
    publish(models, base, 2, source=3)
    repository = opened(ServedModel("m", base))
    repository.start()
    other = ServedModel("n", base, VersionPolicy("all"))
    repository.reconfigure([ServedModel("m", base, labels={"now": 2}), other])
    assert ask(repository, label="now") == (2, 10.0)
    assert states(repository, "n") == {1: "AVAILABLE", 2: "AVAILABLE"}
    assert repository.ready()

    with pytest.raises(FailedPrecondition):
        repository.reconfigure([ServedModel("m", base, labels={"now": 1})])
    assert ask(repository, label="now") == (2, 10.0)
    assert states(repository, "n") == {1: "AVAILABLE", 2: "AVAILABLE"}

    repository.reconfigure([ServedModel("m", base)])
    assert states(repository, "n") == {1: "END", 2: "END"}
    with pytest.raises(InvalidArgument, match="label"):
        ask(repository, label="now")
    assert repository.ready()

    repository.reconfigure([ServedModel("m", base), other])
    assert states(repository, "n") == {1: "AVAILABLE", 2: "AVAILABLE"}


class SlowDisk(type(Path())):
    """A directory whose listing, while `held`, arrives late: as it was when asked for."""

    @classmethod
    def at(cls, path):
        disk = cls(path)
        disk.held, disk.asked, disk.answer = (threading.Event() for _ in range(3))
        return disk

    def iterdir(self):
        listed = list(super().iterdir())
        if self.held.is_set():
            self.asked.set()
            self.answer.wait(20)
        return iter(listed)


def test_a_reload_that_overtakes_a_scan(models, base, opened):
    """The scan was of a configuration that no longer applies."""
    publish(models, base, 1)
    slow = SlowDisk.at(base)
    repository = opened(ServedModel("m", slow))
    repository.start()
    slow.held.set()
    assert slow.asked.wait(20)
    with ThreadPoolExecutor(1) as thread:
        reloaded = thread.submit(repository.reconfigure, [])
        wait_until(lambda: repository.configured_names() == [])
        slow.answer.set()
        reloaded.result(20)
    wait_until(lambda: states(repository) == {1: "END"})


def test_a_reload_waits_for_no_model_that_another_one_removes(models, base, opened):
    publish(models, base, 1)
    empty = base.parent / "empty"
    empty.mkdir()
    kept = ServedModel("m", base)
    repository = opened(kept)
    repository.start()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(repository.reconfigure, [kept, ServedModel("n", empty)])
        wait_until(lambda: "n" in repository.configured_names())
        time.sleep(0.2)
        assert not waiting.done()
        repository.reconfigure([kept])
        try:
            waiting.result(20)
        finally:
            repository.give_up()  # otherwise a failure would never end


def test_reconfigure_with_a_model_that_cannot_be_loaded(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    broken = base.parent / "broken"
    (broken / "4").mkdir(parents=True)
    with pytest.raises(Unknown) as caught:
        repository.reconfigure([ServedModel("m", base), ServedModel("b", broken)])
    assert str(caught.value).startswith(
        "1 model(s) did not become available: {{{name: b version: 4} due to error: NOT_FOUND: "
    )
    assert ask(repository) == (1, 1.0)


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
