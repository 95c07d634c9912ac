"""Versions coming into and out of a base path, by several processes at once."""

import subprocess
import sys

import pytest

from serving.inspect_command import main as inspect
from serving.publishing import PublishError, publisher

from .conftest import REPOSITORY
from .saved_models import save_affine

# Each prints the exceptions that it did not expect.
PRUNE = """
import sys
from pathlib import Path
from serving.publishing import PublishError, remove_old

for keep in range(300, 0, -1):
    try:
        remove_old(Path(sys.argv[1]), keep)
    except PublishError:
        pass
"""
LOCK = """
import sys, time
from pathlib import Path
from serving.file_lock import LockedError, file_lock

end = time.monotonic() + 8
while time.monotonic() < end:
    try:
        with file_lock(Path(sys.argv[1], "lock")):
            pass
    except LockedError:
        pass
"""


def test_a_version_is_no_base_path(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with (
        pytest.raises(PublishError, match="expected the base path of a model"),
        publisher(tmp_path),
    ):
        raise AssertionError("unreachable")
    assert [path.name for path in tmp_path.iterdir()] == ["saved_model.pb"]


@pytest.mark.parametrize("program", [PRUNE, LOCK])
def test_at_once(tmp_path, program):
    for number in range(1, 302):
        (tmp_path / str(number)).mkdir()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            cwd=REPOSITORY,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert said == [""] * 6
    assert not (tmp_path / "lock").exists()
    highest = max(int(path.name) for path in tmp_path.iterdir())
    assert highest == 301


def test_a_broken_model_card_is_named(tmp_path, capsys):
    save_affine(tmp_path / "1")
    (tmp_path / "1" / "assets.extra").mkdir(exist_ok=True)
    (tmp_path / "1" / "assets.extra" / "model_card.json").write_text('{"task": ')
    assert inspect([str(tmp_path)]) == 2
    assert "model_card.json: expected JSON; got: " in capsys.readouterr().err
