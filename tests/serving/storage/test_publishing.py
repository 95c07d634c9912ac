"""Versions appear whole or not at all, with one publisher at a time; only the highest are kept."""

import os
import subprocess
import sys

import pytest

from gru_serving.__main__ import main
from gru_serving.commands.inspect import main as inspect
from gru_serving.conformance.models import save_affine
from gru_serving.errors import NotFound
from gru_serving.storage.publishing import (
    LOCK,
    PublishError,
    find_version,
    publisher,
    put_in_place,
    remove_old,
)
from tests.serving.servers import REPOSITORY

# Each prints the exceptions that it did not expect.
PRUNE = """
import sys
from pathlib import Path
from gru_serving.storage.publishing import PublishError, remove_old

for keep in range(300, 0, -1):
    try:
        remove_old(Path(sys.argv[1]), keep)
    except PublishError:
        pass
"""
TAKE_LOCK = """
import sys, time
from pathlib import Path
from gru_serving.storage.file_lock import LockedError, file_lock

end = time.monotonic() + 8
while time.monotonic() < end:
    try:
        with file_lock(Path(sys.argv[1], "lock")):
            pass
    except LockedError:
        pass
"""


def put(base, name, text="x"):
    (base / name).mkdir(parents=True)
    (base / name / "saved_model.pb").write_text(text)
    return base / name


def names(base):
    return sorted(child.name for child in base.iterdir())


def test_what_is_built_aside_becomes_the_next_version(tmp_path):
    for name in ("2", "00000010", "notes"):
        put(tmp_path, name)
    with publisher(tmp_path) as aside:
        assert (aside.parent, names(aside)) == (tmp_path, [])
        (aside / "variables").mkdir()
        (aside / "variables" / "index").write_text("whole")
        version = put_in_place(aside, tmp_path)
    assert version == tmp_path / "11"
    assert (version / "variables" / "index").read_text() == "whole"
    assert version.stat().st_mode & 0o777 == 0o755
    assert names(tmp_path) == ["00000010", "11", "2", "notes"]


def test_first_version_makes_the_base_path(tmp_path):
    base = tmp_path / "models" / "m"
    with publisher(base) as aside:
        assert put_in_place(aside, base) == base / "1"
    assert names(base) == ["1"]


def test_number_may_be_chosen_once(tmp_path):
    with publisher(tmp_path) as aside:
        assert put_in_place(aside, tmp_path, 7) == tmp_path / "7"
    with publisher(tmp_path) as aside, pytest.raises(PublishError) as caught:
        put_in_place(aside, tmp_path, 7)
    assert str(caught.value) == (
        f"{tmp_path}/7 exists already: a version never changes once it is published. Choose "
        "another number, or leave it out for 8"
    )
    with publisher(tmp_path) as aside:
        assert put_in_place(aside, tmp_path, 3) == tmp_path / "3"
    assert names(tmp_path) == ["3", "7"]


@pytest.mark.parametrize("before", [[], ["m"]])
def test_nothing_is_left_of_what_failed(tmp_path, before):
    def publish():
        with publisher(tmp_path / "m") as aside:
            put(aside, "variables")
            raise RuntimeError("half way")

    for name in before:
        (tmp_path / name).mkdir()
    with pytest.raises(RuntimeError, match="half way"):
        publish()
    assert names(tmp_path) == before
    assert all(names(tmp_path / name) == [] for name in before)


def test_what_a_killed_publisher_left_goes(tmp_path):
    put(tmp_path, ".publish-abc")
    put(tmp_path, "1")
    (tmp_path / LOCK).write_text("process 1")
    with publisher(tmp_path) as aside:
        assert names(tmp_path) == sorted([LOCK, "1", aside.name])
    assert names(tmp_path) == ["1"]


def test_two_at_once_are_refused(tmp_path):
    with publisher(tmp_path) as aside:
        (aside / "file").touch()
        with pytest.raises(PublishError) as caught, publisher(tmp_path):
            pass
        assert (aside / "file").exists()
    assert str(caught.value) == (
        f"{tmp_path}: another process is publishing to it (process {os.getpid()}); wait for it "
        "to end and try again"
    )


@pytest.mark.parametrize(
    ("keep", "protected", "removed"),
    [
        (1, (), ["1", "2", "00000010"]),
        (2, (), ["1", "2"]),
        (2, (1, 11), ["2"]),
        (4, (), []),
        (9, (), []),
    ],
)
def test_all_but_the_highest_and_the_protected_go(tmp_path, keep, protected, removed):
    versions = ["1", "2", "00000010", "11"]
    for name in (*versions, "notes"):
        put(tmp_path, name)
    expected = [tmp_path / name for name in removed]
    assert remove_old(tmp_path, keep, protected, dry_run=True) == expected
    assert names(tmp_path) == sorted([*versions, "notes"])
    assert remove_old(tmp_path, keep, protected) == expected
    assert names(tmp_path) == sorted({*versions, "notes"} - set(removed))


def test_removing_waits_for_no_publisher(tmp_path):
    for name in ("1", "2"):
        put(tmp_path, name)
    with publisher(tmp_path), pytest.raises(PublishError, match="another process is publishing"):
        remove_old(tmp_path, 1)
    assert names(tmp_path) == ["1", "2"]


def test_what_cannot_be_removed(tmp_path):
    put(tmp_path, "1")
    with pytest.raises(ValueError, match=r"keep: expected at least 1, .*; got 0"):
        remove_old(tmp_path, 0)
    with pytest.raises(NotFound, match="Could not find base path"):
        remove_old(tmp_path / "nix", 1)
    assert names(tmp_path) == ["1"]


def test_version_that_is_meant(tmp_path):
    for name in ("9", "10", "notes"):
        put(tmp_path, name)
    assert find_version(tmp_path) == tmp_path / "10"
    # A directory that is itself a version, whatever its name.
    assert find_version(tmp_path / "notes") == tmp_path / "notes"


def test_version_that_is_not_there(tmp_path):
    with pytest.raises(NotFound, match=r"nix: expected the directory of a version"):
        find_version(tmp_path / "nix")
    with pytest.raises(NotFound, match="found neither; `gru-serve export"):
        find_version(tmp_path)


def test_a_version_is_no_base_path(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with (
        pytest.raises(PublishError, match="expected a base path"),
        publisher(tmp_path),
    ):
        raise AssertionError("unreachable")
    assert [path.name for path in tmp_path.iterdir()] == ["saved_model.pb"]


@pytest.mark.slow
@pytest.mark.parametrize("program", [PRUNE, TAKE_LOCK])
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


@pytest.mark.parametrize("command", [["prune", "--keep=1"], ["publish", "--to=to"]])
def test_names_in_errors_are_shown_not_obeyed(tmp_path, capsys, command):
    assert main([*command, str(tmp_path / "a\x1b[2J\nb")]) == 2
    said = capsys.readouterr().err
    assert "/a\\u001b[2J\\nb" in said
    assert said.count("\n") == 1
