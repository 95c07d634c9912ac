"""Versions that cannot be loaded, or vanish, while others serve."""

import os
import shutil

import numpy as np
import pytest

from gru_serving.client import connect
from tests.serving.load import THIRD, X, load
from tests.serving.saved_models import publish
from tests.serving.server.robustness.version_states import ended, serves
from tests.serving.servers import running, wait_until

QUICK_LOADS = ("--max_num_load_retries=0", "--load_retry_interval_micros=-1")


def empty(directory, good):
    directory.mkdir()


def only_graph(directory, good):
    directory.mkdir()
    shutil.copy(good / "saved_model.pb", directory)


def only_variables(directory, good):
    directory.mkdir()
    shutil.copytree(good / "variables", directory / "variables")


def cut_graph(directory, good):
    shutil.copytree(good, directory)
    graph = directory / "saved_model.pb"
    os.truncate(graph, graph.stat().st_size // 2)


def empty_graph(directory, good):
    shutil.copytree(good, directory)
    os.truncate(directory / "saved_model.pb", 0)


def noise(directory, good):
    shutil.copytree(good, directory)
    (directory / "saved_model.pb").write_bytes(np.random.default_rng(0).bytes(5000))


def cut_variables(directory, good):
    shutil.copytree(good, directory)
    (data,) = (directory / "variables").glob("variables.data*")
    os.truncate(data, data.stat().st_size // 2)


def cut_index(directory, good):
    shutil.copytree(good, directory)
    index = directory / "variables" / "variables.index"
    os.truncate(index, index.stat().st_size // 2)


def a_file(directory, good):
    directory.write_text("no directory")


def a_loop(directory, good):
    directory.symlink_to(directory.name)


def a_dangling_link(directory, good):
    directory.symlink_to("nowhere")


def broken_warmup(directory, good):
    shutil.copytree(good, directory)
    (directory / "assets.extra").mkdir()
    (directory / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"no TFRecord" * 9)


BROKEN = (
    empty, only_graph, only_variables, cut_graph, empty_graph, noise, cut_variables, cut_index,
    a_file, a_loop, a_dangling_link, broken_warmup,
)  # fmt: skip


@pytest.mark.slow
def test_broken_versions(models, tmp_path):
    """Each ends with an error that says why; the good version goes on serving all the time."""
    base, good = tmp_path / "m", models / "affine" / "1"
    publish(models, base, 1)
    flags = (f"--model_base_path={base}", "--model_name=m", *QUICK_LOADS)
    with (
        running(tmp_path / "log", *flags) as server,
        load(server, "m") as seen,
        connect(server.rest) as client,
    ):
        for version, break_it in enumerate(BROKEN, 2):
            break_it(base / str(version), good)
        # Of the `latest` versions only the highest is wanted: they are tried from the top down.
        for version in range(len(BROKEN) + 1, 1, -1):
            wait_until(lambda version=version: ended(client, version), server)
            (found,) = client.status("m", version=version)
            assert found.error_code != "OK", BROKEN[version - 2].__name__
            assert found.error_message, BROKEN[version - 2].__name__
            _remove(base / str(version))
            assert serves(client, 1)
        base.rename(tmp_path / "away")
        wait_until(lambda: "Could not find base path" in server.log.read_text(), server)
        assert serves(client, 1)
        (tmp_path / "away").rename(base)
        publish(models, base, 99, source=3)
        wait_until(lambda: serves(client, 99), server)
    seen.check(least=10)


def _remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path)


@pytest.mark.slow
def test_version_copied_in_place_is_served_once_it_is_whole(models, tmp_path):
    """Not as recommended, but as many do: the copy takes longer than the first attempts to load."""
    base, good = tmp_path / "m", models / "affine" / "3"
    publish(models, base, 1)
    flags = (
        f"--model_base_path={base}", "--model_name=m", "--max_num_load_retries=100",
        "--load_retry_interval_micros=200000",
    )  # fmt: skip
    with (
        running(tmp_path / "log", *flags) as server,
        load(server, "m") as seen,
        connect(server.rest) as client,
    ):
        only_graph(base / "2", good)
        wait_until(lambda: "try 2 of 101" in server.log.read_text(), server)
        shutil.copytree(good, base / "2", dirs_exist_ok=True)
        wait_until(lambda: serves(client, 2), server)
        assert client.predict(X, "m")["y"][0, 0] == THIRD
    seen.check(least=10)


@pytest.mark.slow
def test_unreadable_directories(models, tmp_path, no_superpowers):
    """First a version disappears, then the whole base path: the good version goes on serving."""
    base = tmp_path / "m"
    publish(models, base, 1)
    flags = (f"--model_base_path={base}", "--model_name=m", *QUICK_LOADS)
    with (
        running(tmp_path / "log", *flags, prefix=no_superpowers) as server,
        load(server, "m") as seen,
        connect(server.rest) as client,
    ):
        try:
            shutil.copytree(models / "affine" / "3", tmp_path / "aside")
            (tmp_path / "aside").chmod(0)
            (tmp_path / "aside").rename(base / "2")
            wait_until(lambda: ended(client, 2), server)
            base.chmod(0)
            wait_until(lambda: "Permission denied" in server.log.read_text(), server)
            assert serves(client, 1)
        finally:
            base.chmod(0o755)
            (base / "2").chmod(0o755)
        publish(models, base, 3, source=3)
        wait_until(lambda: serves(client, 3), server)
    seen.check(least=10)
