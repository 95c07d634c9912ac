"""Versions that failed: which of them count, and when they are tried again."""

import shutil

import pytest

from gru_serving.client import connect
from gru_serving.config.files import ServedModel
from gru_serving.errors import RefusedVersion, Unknown
from gru_serving.repository.repository import RepositoryOptions
from gru_serving.storage.digests import write_digests
from tests.serving.repository.affine_versions import Counted, ask, states
from tests.serving.saved_models import publish
from tests.serving.servers import running
from tests.waiting import wait_until


class Refusing(Counted):
    """Refuses some versions."""

    def __init__(self, *refused):
        super().__init__()
        self.refused = {str(number) for number in refused}

    def __call__(self, path):
        if path.name in self.refused:
            self.tried.append(path.name)
            raise RefusedVersion(f"{path} is not as it was")
        return super().__call__(path)


def test_a_failed_version_is_tried_again_when_its_files_have_changed(models, base, opened):
    publish(models, base, 1)
    repository = opened(ServedModel("m", base))
    repository.start()
    (base / "2").mkdir()
    wait_until(lambda: states(repository).get(2) == "END")
    shutil.copytree(models / "affine" / "3", base / "2", dirs_exist_ok=True)
    wait_until(lambda: states(repository) == {2: "AVAILABLE", 1: "END"})
    assert ask(repository) == (2, 10.0)


def test_files_that_are_being_written_are_not_tried_at_every_look(models, base, opened):
    publish(models, base, 1)
    load = Counted()
    options = RepositoryOptions(poll_seconds=0, max_load_retries=0, retry_seconds=0)
    repository = opened(ServedModel("m", base), load=load, options=options)
    repository.start()
    (base / "2").mkdir()
    repository.poll()
    for size in range(5):
        (base / "2" / "part").write_bytes(bytes(size))
        repository.poll()
    assert load.tried == ["1", "2"]
    repository.poll()
    assert load.tried == ["1", "2", "2"]


@pytest.mark.parametrize("isolated", [False, True])
def test_a_refused_version_does_not_count_among_the_latest(models, base, opened, isolated):
    for version in (1, 2, 3):
        publish(models, base, version)
    load = Refusing(2, 3)
    # Retries would take forever.
    options = RepositoryOptions(0.02, 5, retry_seconds=1e6, isolate_models=isolated)
    repository = opened(ServedModel("m", base), load=load, options=options)
    repository.start()
    assert ask(repository) == (1, 1.0)
    assert states(repository) == {3: "END", 2: "END", 1: "AVAILABLE"}
    assert repository.status("m", 3)[0].error_code.name == "DATA_LOSS"
    publish(models, base, 4)
    wait_until(lambda: states(repository).get(4) == "AVAILABLE")
    wait_until(lambda: states(repository)[1] == "END")
    assert load.tried == ["3", "2", "1", "4"]


@pytest.mark.parametrize("threads", [0, 2])
def test_refused_versions_of_a_new_model_and_one_that_is_mended(
    models, base, opened, polled, threads
):
    for version in (1, 2):
        publish(models, base, version)
    load = Refusing(2)
    options = RepositoryOptions(0.02, 0, retry_seconds=0, load_threads=threads)
    repository = opened(load=load, options=options)
    repository.start()
    repository.reconfigure([ServedModel("m", base)])
    assert ask(repository) == (1, 1.0)
    # What serves goes on serving, although only the refused version is left.
    shutil.rmtree(base / "1")
    polled()
    assert ask(repository) == (1, 1.0)
    load.refused.clear()
    (base / "2" / "saved_model.pb").touch()
    wait_until(lambda: states(repository) == {2: "AVAILABLE", 1: "END"})


def test_a_refused_version_without_another_ends_the_start(models, base, opened):
    publish(models, base, 7)
    load = Refusing(7)
    with pytest.raises(Unknown, match=r"version: 7} due to error: DATA_LOSS: .* not as it was"):
        opened(ServedModel("m", base), load=load).start()
    assert load.tried == ["7"]


ALL = """model_config_list {{ config {{
  name: "m" base_path: "{}" model_platform: "tensorflow" model_version_policy {{ all {{}} }}
}} }}"""


@pytest.mark.slow
def test_files_that_the_server_may_not_read_are_named(models, base, tmp_path, no_superpowers):
    """The files belong to another user; the versions serve as soon as they may be read."""
    for version in (1, 2, 3, 4):
        publish(models, base, version)
    write_digests(base / "2")
    closed = [base / "2" / "saved_model.pb", base / "3", base / "4" / "saved_model.pb"]
    config = tmp_path / "models.config"
    config.write_text(ALL.format(base))
    for path in closed:
        path.chmod(0)
    flags = (f"--model_config_file={config}", "--max_num_load_retries=0")
    try:
        with (
            running(tmp_path / "log", *flags, prefix=no_superpowers) as server,
            connect(server.rest) as client,
        ):
            known = {one.version: one for one in client.status("m")}
            assert [known[version].state for version in (1, 2, 3, 4)] == ["AVAILABLE", *["END"] * 3]
            assert known[2].error_code == "DATA_LOSS"
            assert known[3].error_code == "PERMISSION_DENIED"
            for version, path in zip((2, 3, 4), closed, strict=True):
                assert str(path) in known[version].error_message
                assert "Permission denied" in known[version].error_message
            for path in closed:
                path.chmod(0o755)
            wait_until(lambda: {one.state for one in client.status("m")} == {"AVAILABLE"})
    finally:
        base.joinpath("3").chmod(0o755)
