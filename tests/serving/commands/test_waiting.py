import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.servers import REPOSITORY

pty = pytest.importorskip("pty")  # not available on Windows


@pytest.mark.slow
def test_a_terminal_shows_what_is_loaded_and_for_how_long(models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a path that fits a line of the terminal
    (tmp_path / "m").symlink_to(models / "affine")
    path = Path("m") / "1"
    command = [sys.executable, "-m", "gru_serving", "inspect", str(path), "--json"]
    terminal, end = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end) as process:
        os.close(end)
        said = b""
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # how Linux reports that the other end is closed
                break
            if not piece:
                break
            said += piece
        out = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0
    assert b"reading" in said
    assert b"0:00:0" in said
    assert out.startswith(b"{")


@pytest.mark.slow
def test_other_readers_of_errors_get_none_of_it(models):
    command = [sys.executable, "-m", "gru_serving", "inspect", str(models / "affine" / "1")]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True)
    assert done.returncode == 0
    assert done.stderr == b""
