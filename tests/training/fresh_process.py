"""`gru-train` in a process of its own, to see what it has imported."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = """
import contextlib, io, json, sys
from gru_training.__main__ import main
commands, heavy = json.loads(sys.argv[1])
ended = []
for command in commands:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(command)
    ended.append((status, out.getvalue(), errors.getvalue()))
print(json.dumps([ended, sorted(set(heavy) & set(sys.modules))]))
"""


class Ended(NamedTuple):
    status: int
    out: str
    errors: str


def in_fresh_process(*commands, heavy):
    """How each command ends, and which of these modules have been imported in the end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([commands, sorted(heavy)])],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    ended, imported = json.loads(done.stdout)
    return [Ended(*each) for each in ended], set(imported)


def processor_seconds(*arguments):
    """Exit status of a process of Python, and its user and system time."""
    command, before = [sys.executable, *arguments], os.times()
    status = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True).returncode
    after = os.times()
    return status, sum(after[k] - before[k] for k in (2, 3))
