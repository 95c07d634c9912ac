"""Interrupting the demo: it says so, and leaves no process and no half-made run behind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
MARK = "KERAS_GRU_DEMO_UNDER_TEST"

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs /proc to find the demo's processes"
)


def processes(mark):
    """Ids of all processes, except zombies, whose environment contains the mark."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environment.read_bytes():
                found.append(int(environment.parent.name))
        except OSError:  # it has ended meanwhile, or belongs to another user
            continue
    return found


@contextmanager
def not_ignored(number):
    """What is started meanwhile does not inherit an ignored signal, as it would under nohup."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "seconds"),
    [
        pytest.param(signal.SIGTERM, 0, id="sigterm-as-a-child-starts"),
        pytest.param(signal.SIGHUP, 1, id="terminal-closed-while-importing"),
        pytest.param(signal.SIGINT, 4, id="ctrl-c"),
    ],
)
def test_interrupted_demo_leaves_nothing_running(tmp_path, number, seconds):
    mark = f"{MARK}={uuid.uuid4()}"
    said = tmp_path / "said.txt"
    name, _, value = mark.partition("=")
    with said.open("wb") as output, not_ignored(number):
        demo = subprocess.Popen(
            [sys.executable, "-m", "demo"],
            cwd=tmp_path,
            env={
                **os.environ,
                name: value,
                "PYTHONPATH": str(ROOT),
                "PYTHONUNBUFFERED": "1",
            },
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: len(processes(mark)) > 1, 10)
        time.sleep(seconds)
        demo.send_signal(number)
        assert demo.wait(30) == 130
        assert processes(mark) == []
    finally:
        for survivor in processes(mark):
            os.kill(survivor, signal.SIGKILL)
        demo.wait()
    text = said.read_text("utf-8")
    assert "demo: interrupted; everything it started has been stopped" in text
    assert "Traceback" not in text
    runs = tmp_path / "demo_output" / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []
