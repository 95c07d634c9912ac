"""The configuration and its history as files: who owns them, and what a move does to them."""

import json
import os

import pytest

from gru_serving.__main__ import main
from gru_serving.config.files import read_model_config
from gru_serving.config.model_config_edit import RolloutError
from gru_serving.release.rollout import Rollout
from gru_serving.release.rollout_history import History, Move
from gru_serving.storage.file_lock import file_lock
from tests.serving.release.rollout_config import write


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("promote", ["--to", "5"], "there is no version 5"),
        ("promote", ["--from", "nix"], "--from: expected one of the labels []; got 'nix'"),
        ("rollback", [], "has no earlier version; give one with --to"),
        ("label", ["stable"], "expected LABEL=VERSION, as stable=3; got 'stable'"),
        ("label", ["--remove", "nix"], "--remove: expected one of the labels []"),
        ("label", ["--model", "nix", "a=1"], "--model: expected one of ['m', 'other']; got 'nix'"),
        ("label", ["--config", "/nix/x", "a=1"], "/nix/x; No such file"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    bases, tmp_path, capsys, command, arguments, said
):
    config = write(tmp_path / "models.config", bases)
    before = config.read_text()
    common = ["--config", str(config), "--model", "m", "--offline"]
    assert main([command, *common, *arguments]) in (1, 2)
    assert said in capsys.readouterr().err
    assert config.read_text() == before


def test_a_link_stays_and_so_does_the_owner(bases, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "real").mkdir()
    config = write(tmp_path / "real" / "models.config", bases, "all {}")
    config.chmod(0o640)
    owner = (1234, 5678) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(config, *owner)
    link = tmp_path / "etc" / "models.config"
    link.symlink_to(config)
    assert main(["label", "--config", str(link), "--model", "m", "--offline", "stable=2"]) == 0
    assert link.is_symlink()
    assert read_model_config(str(config))[0].labels == {"stable": 2}
    found = config.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (*owner, 0o640)


def test_a_torn_line_of_the_history_is_named_and_spoils_no_other(bases, tmp_path, capsys):
    config = write(tmp_path / "models.config", bases, "all {}")
    history = tmp_path / "models.config.history.jsonl"
    common = ["--config", str(config), "--model", "m", "--offline"]
    assert main(["promote", *common, "--to", "1"]) == 0
    with history.open("a") as file:
        file.write('{"time": "2026-11-23T16:16')  # the disk was full
    assert main(["promote", *common, "--to", "2"]) == 0
    assert main(["rollback", *common]) == 1
    assert f"{history}, line 2: cannot be read" in capsys.readouterr().err
    lines = history.read_text().splitlines()
    history.write_text(
        "\n".join([lines[0], *lines[2:]])
    )  # from an editor that does not end the last line
    assert main(["rollback", *common]) == 0
    assert read_model_config(str(config))[0].labels == {"stable": 1}
    assert [json.loads(line)["to"] for line in history.read_text().splitlines()] == [1, 2, 1]


def test_a_move_that_fails_is_not_in_the_history(bases, tmp_path):
    config = write(tmp_path / "models.config", bases, "all {}")
    rollout = Rollout(config, "m", None)
    rollout.move({"stable": 1}, "label", retire=False)
    history = tmp_path / "models.config.history.jsonl"
    before = history.read_bytes()
    seen = []

    def fail():
        with History(config).noting("m", [Move("a", 1, 2)], "label"):
            seen.append(json.loads(history.read_text().splitlines()[-1])["label"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == ["a"]
    assert history.read_bytes() == before


def test_a_history_belongs_to_whom_the_config_does(bases, tmp_path):
    config = write(tmp_path / "models.config", bases, "all {}")
    config.chmod(0o660)
    owner = (65534, 65533) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(config, *owner)
    Rollout(config, "m", None).move({"stable": 1}, "label", retire=False)
    found = (tmp_path / "models.config.history.jsonl").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (*owner, 0o660)


def test_policy_all_stays_and_two_at_once_are_refused(bases, tmp_path):
    config = write(tmp_path / "models.config", bases, "all {}")
    rollout = Rollout(config, "m", None)
    rollout.move({"stable": 2}, "label", retire=True)
    (model, _) = read_model_config(str(config))
    assert (model.policy.kind, model.labels) == ("all", {"stable": 2})
    with (
        file_lock(tmp_path / ".models.config.lock"),
        pytest.raises(RolloutError, match="another process is changing it"),
    ):
        rollout.move({"stable": 3}, "label", retire=False)
