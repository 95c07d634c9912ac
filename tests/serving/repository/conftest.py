"""Repositories that are closed after each test."""

import pytest

from gru_serving.repository import repository as changes
from gru_serving.repository.repository import Repository
from tests.serving.repository.affine_versions import FAST
from tests.waiting import wait_until


@pytest.fixture
def base(tmp_path):
    return tmp_path / "base"


@pytest.fixture
def opened():
    """Makes repositories and closes them."""
    made = []

    def make(*models, options=FAST, **more):
        made.append(Repository(models, options=options, **more))
        return made[-1]

    yield make
    for repository in made:
        repository.close()


@pytest.fixture
def polled(monkeypatch):
    """Waits until the base paths have been scanned a few more times, so their state is known."""
    looks, scan = [], changes.scan

    def counted(*args):
        found = scan(*args)
        looks.append(found)
        return found

    def wait():
        before = len(looks)
        wait_until(lambda: len(looks) > before + 2)

    monkeypatch.setattr(changes, "scan", counted)
    return wait
