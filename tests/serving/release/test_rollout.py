"""Labels moved on a live server, in both ways that a configuration can reach it."""

import json

import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.config.files import read_model_config
from gru_serving.errors import InvalidArgument
from tests.serving.full_disk import largest_file
from tests.serving.release.rollout_config import answer, write
from tests.serving.servers import running, wait_until


@pytest.fixture(scope="module", params=["reload", "poll"])
def site(request, bases, tmp_path_factory):
    """A server, its config file, and the commands' URL: gRPC makes it reload, REST waits for it."""
    directory = tmp_path_factory.mktemp("site")
    config = write(directory / "models.config", bases)
    flags = [f"--model_config_file={config}", "--max_num_load_retries=0"]
    if request.param == "poll":
        flags.append("--model_config_file_poll_wait_seconds=1")
    with running(directory / "log", *flags, "--file_system_poll_wait_seconds=1") as server:
        yield server, config, server.grpc if request.param == "reload" else server.rest


def test_a_config_that_asks_for_prediction_logs(bases, tmp_path, capsys):
    config = write(tmp_path / "models.config", bases)
    logging = 'logging_config { log_collector_config { filename_prefix: "m/requests" } }'
    config.write_text(config.read_text().replace('name: "m"', f'{logging} name: "m"'))
    flags = [f"--model_config_file={config}", f"--prediction_log_directory={tmp_path / 'logs'}"]
    with running(tmp_path / "log", *flags) as server:
        asked = ["--config", str(config), "--model", "m", "--url", server.grpc]
        assert main(["label", *asked, "stable=1"]) == 0
        assert main(["promote", *asked, "--to", "2"]) == 0
        assert answer(server.rest, "stable") == 2
        assert main(["rollback", *asked]) == 0
        assert answer(server.rest, "stable") == 1
    prune = ["prune", str(bases / "m"), "--keep", "1", "--config", str(config), "--dry-run"]
    assert main(prune) == 0
    assert "m/requests" in config.read_text()
    assert "m: stable 2 -> 1" in capsys.readouterr().out


def test_a_file_that_the_server_has_refused(bases, tmp_path, capsys):
    """It is told rather than taken for done, and a version that serves is a way out."""
    config = write(tmp_path / "models.config", bases)
    with running(tmp_path / "log", f"--model_config_file={config}") as server:
        file = ["--config", str(config), "--model", "m"]
        asked = [*file, "--url", server.grpc]
        assert main(["label", *asked, "stable=1"]) == 0
        assert main(["label", *file, "--offline", "stable=2"]) == 0
        assert main(["promote", *asked, "--to", "2"]) == 1
        assert "version 2 of model m, which is not currently available" in capsys.readouterr().err
        assert main(["label", *asked, "stable=1"]) == 0
        assert main(["promote", *asked, "--to", "2"]) == 0
        assert answer(server.rest, "stable") == 2


@pytest.mark.slow
def test_a_rollout_from_first_label_to_second_rollback(site, capsys):
    server, config, url = site

    def run(command, *arguments):
        common = ["--config", str(config), "--model", "m", "--url", url, "--wait", "30"]
        status = main([command, *common, *arguments])
        printed = capsys.readouterr()
        waits = "waiting for the server to read"
        said = [line for line in printed.err.splitlines() if waits not in line]
        assert (len(said) < len(printed.err.splitlines())) <= (url == server.rest)
        return status, printed.out + "".join(f"{line}\n" for line in said)

    assert run("label", "stable=1") == (0, "m: stable nothing -> 1\n")
    assert answer(server.grpc, "stable") == 1
    status, said = run("label", "canary=2")
    assert status == 0
    assert "will go to version 2, the highest that serves" in said
    assert answer(server.rest, "canary") == 2
    assert answer(server.rest, "stable") == 1
    assert run("promote", "--from", "canary")[0] == 0
    assert answer(server.rest, "stable") == 2
    assert run("promote", "--to", "3")[0] == 0
    assert answer(server.rest, "stable") == 3
    (model, _) = read_model_config(str(config))
    assert model.labels == {"stable": 3, "canary": 2}
    assert model.policy.versions == (2, 3)  # 2 for a rollback, and 1 no more
    with connect(url) as client:
        wait_until(lambda: {s.version: s.state for s in client.status("m")}[1] == "END")
    status, said = run("rollback")
    assert (status, said.splitlines()[0]) == (0, "m: stable 3 -> 2")
    assert "requests without label or version still go to version 3" in said
    assert answer(server.grpc, "stable") == 2
    assert "m: stable 2 -> 1\n" in run("rollback")[1]
    assert answer(server.grpc, "stable") == 1
    status, said = run("rollback", "--to", "3")
    assert (status, said) == (0, "m: stable 1 -> 3\n")
    assert run("label") == (0, "canary = 2\nstable = 3\n")
    assert run("label", "--remove", "canary") == (0, "m: canary 2 -> nothing\n")
    assert run("label", "stable=3") == (0, "m: nothing to change\n")
    history = config.with_name(config.name + ".history.jsonl").read_text().splitlines()
    assert [json.loads(line)["to"] for line in history] == [1, 2, 2, 3, 2, 1, 3, None]

    before = config.read_text()
    status, said = run("promote", "--to", "9")
    assert status == 1
    assert "version 9 of model m does not load" in said
    assert "Publish a repaired one under a higher number" in said
    assert config.read_text() == before
    assert answer(server.rest, "stable") == 3


def test_without_a_server_the_file_alone_is_written(bases, tmp_path, capsys):
    config = write(tmp_path / "models.config", bases, "latest { num_versions: 1 }")
    (bases / "m" / "9").rename(tmp_path / "9")
    try:
        common = ["--config", str(config), "--model", "m", "--offline"]
        assert main(["label", *common, "stable=2"]) == 0
    finally:
        (tmp_path / "9").rename(bases / "m" / "9")
    said = capsys.readouterr().err
    assert "--allow_version_labels_for_unavailable_models" in said
    assert "from latest to specific" in said
    (model, other) = read_model_config(str(config))
    assert model.policy.versions == (2, 3)
    assert other.name == "other"
    with running(
        tmp_path / "log",
        f"--model_config_file={config}",
        "--allow_version_labels_for_unavailable_models",
    ) as server:
        assert answer(server.rest, "stable") == 2


def test_a_history_that_cannot_be_written_moves_nothing(site, capsys):
    """A full disk: the server's answers, the file and the history stay as they are."""
    server, config, url = site
    history = config.with_name("models.config.history.jsonl")
    common = ["--config", str(config), "--model", "m", "--url", url, "--wait", "30"]
    assert main(["label", *common, "full=1"]) == 0
    with history.open("a") as file:
        file.write("\n" * 4000)
    before = config.read_bytes(), history.read_bytes()
    capsys.readouterr()
    for text in ("full=2", "new=1"):
        with largest_file(history.stat().st_size + 20):
            assert main(["label", *common, text]) == 2
        assert f"{history}: File too large" in capsys.readouterr().err
    assert (config.read_bytes(), history.read_bytes()) == before
    assert answer(server.grpc, "full") == 1
    with pytest.raises(InvalidArgument, match="label"):
        answer(server.grpc, "new")
    assert main(["label", *common, "--remove", "full"]) == 0


def test_a_config_that_cannot_be_written_is_named(site, capsys):
    server, config, url = site
    history = config.with_name("models.config.history.jsonl")
    common = ["--config", str(config), "--model", "m", "--url", url, "--wait", "30"]
    assert main(["label", *common, "full=1"]) == 0
    before = config.read_bytes(), history.read_text()
    capsys.readouterr()
    history.write_text("")
    with largest_file(150):
        assert main(["label", *common, "full=2"]) == 2
    assert f"{config}: File too large" in capsys.readouterr().err
    assert history.read_text() == ""
    assert config.read_bytes() == before[0]
    assert answer(server.grpc, "full") == 1
    history.write_text(before[1])
    assert main(["label", *common, "--remove", "full"]) == 0
    assert not list(config.parent.glob(".models.config.*"))


@pytest.mark.slow
def test_server_that_does_not_take_the_file_over_is_told(bases, tmp_path, capsys):
    config = write(tmp_path / "models.config", bases)
    with running(tmp_path / "log", f"--model_config_file={config}") as server:
        common = ["--config", str(config), "--model", "m", "--url", server.rest, "--wait", "1"]
        assert main(["label", *common, "stable=2"]) == 1
    said = capsys.readouterr().err
    assert "not done within 1 s. Does the server read" in said
    assert "--model_config_file_poll_wait_seconds" in said
    assert read_model_config(str(config)) == read_model_config(
        str(write(tmp_path / "again.config", bases))
    )
