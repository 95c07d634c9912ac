"""Models, labels and policies that change while a repository serves."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gru_serving.config.files import ServedModel, VersionPolicy
from gru_serving.errors import FailedPrecondition, InvalidArgument, Unavailable, Unknown
from gru_serving.repository.repository import Repository, RepositoryOptions
from tests.serving.repository.affine_versions import ask, states
from tests.serving.saved_models import publish
from tests.waiting import wait_until


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
