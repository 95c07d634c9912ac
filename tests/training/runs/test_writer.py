"""One process at a time builds a run of a given name, whatever happens to the process."""

import resource
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from gru_training.errors import RunDirectoryError
from gru_training.runs.lock import RunLock
from gru_training.runs.writer import TrainingRunWriter
from tests.training.conftest import tiny_config

HOLD = """if True:
    import signal, sys, time
    from pathlib import Path
    from tests.training.conftest import tiny_config
    from gru_training.runs.writer import TrainingRunWriter
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    with TrainingRunWriter(tiny_config(Path(sys.argv[1])), "sentiment", "tiny", False):
        print("begun", flush=True)
        time.sleep(600)
"""


def writer(folder, resume=False, named=True):
    config = tiny_config(folder)
    if not named:
        config = replace(config, run=replace(config.run, name=None))
    return TrainingRunWriter(config, "sentiment", "tiny", resume)


@pytest.fixture
def other(tmp_path):
    """A process that builds the run `tiny`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_run_that_another_process_trains_is_left_alone(tmp_path, other):
    before = sorted(tmp_path.rglob("*"))
    for resume in (False, True):
        with (
            pytest.raises(RunDirectoryError, match="tiny is being trained by another process"),
            writer(tmp_path, resume),
        ):
            pass
    assert sorted(tmp_path.rglob("*")) == before
    other.send_signal(signal.SIGINT)  # ends like a training that is interrupted
    other.wait(60)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_a_killed_process_was_building_is_removed(tmp_path, other):
    other.kill()
    other.wait(60)
    assert len(list(tmp_path.glob(".tiny.partial-*"))) == 1
    with writer(tmp_path) as mine:
        assert sorted(tmp_path.iterdir()) == sorted([mine.path, tmp_path / ".tiny.lock"])
        mine.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_trainings_begun_in_the_same_second_get_names_of_their_own(tmp_path):
    with writer(tmp_path, named=False) as first, writer(tmp_path, named=False) as second:
        places = first.publish(), second.publish()
    assert [place.name for place in places] == ["tiny", "tiny-2"]
    assert {path.name for path in tmp_path.iterdir()} == {"tiny", "tiny-2"}


def test_a_beginning_that_fails_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))  # as if the disk were nearly full
    try:
        with pytest.raises(RunDirectoryError, match=r"cannot write to .*: File too"):
            writer(tmp_path).__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    with writer(tmp_path) as mine:
        mine.publish()


def test_a_lock_that_was_removed_in_between_is_taken_anew(tmp_path):
    one, two = RunLock(tmp_path / "lock"), RunLock(tmp_path / "lock")
    assert one.acquire()
    assert not two.acquire()
    one.release()
    assert list(tmp_path.iterdir()) == []
    assert two.acquire()
    assert two.holds
    two.release()
