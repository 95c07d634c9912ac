"""A lock has one holder at a time, and never a dead one."""

import os
import signal
import subprocess
import sys

import pytest

from gru_serving.storage.file_lock import LockedError, file_lock
from tests.serving.servers import REPOSITORY

HOLDER = """
import pathlib, sys, time
from gru_serving.storage.file_lock import file_lock
with file_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_lock_is_gone_when_released(tmp_path):
    path = tmp_path / "lock"
    for _ in range(2):
        with file_lock(path):
            assert path.read_text() == f"process {os.getpid()}"
        assert not path.exists()
    with pytest.raises(RuntimeError, match="inside"), file_lock(path):
        raise RuntimeError("inside")
    assert not path.exists()
    with file_lock(path):
        pass


def test_holder_is_named_and_keeps_the_lock(tmp_path):
    path = tmp_path / "lock"
    with file_lock(path):
        for _ in range(2):
            with pytest.raises(LockedError) as caught, file_lock(path):
                pass
            assert caught.value.holder == f"process {os.getpid()}"
            assert str(caught.value) == f"{path} is locked by process {os.getpid()}"
            assert path.exists()


def test_lock_whose_file_was_removed_is_released_all_the_same(tmp_path):
    path = tmp_path / "lock"
    with file_lock(path):
        path.unlink()
    with file_lock(path):
        assert path.exists()


def test_refusals_hold_no_file_open(tmp_path):
    with file_lock(tmp_path / "lock"):
        # The lowest free number shows whether any descriptor is left open.
        before = os.dup(0)
        os.close(before)
        for _ in range(3):
            with pytest.raises(LockedError), file_lock(tmp_path / "lock"):
                pass
        after = os.dup(0)
        os.close(after)
    assert after == before


def test_text_of_a_longer_holder_before_is_gone(tmp_path):
    path = tmp_path / "lock"
    path.write_text("process 123456789012345678901234567890")
    with file_lock(path):
        assert path.read_text() == f"process {os.getpid()}"


def test_lock_of_a_process_that_was_killed_is_free(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            with (
                pytest.raises(LockedError, match=f"locked by process {holder.pid}$"),
                file_lock(path),
            ):
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
    assert path.exists()
    with file_lock(path):
        assert path.read_text() == f"process {os.getpid()}"
    assert not path.exists()


def test_file_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError), file_lock(tmp_path / "nix" / "lock"):
        pass
