"""Versions that would end the process are tried in another one: by a server and in these tests."""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.load_watch import LoadWatch
from gru_serving.engine.trial import try_version
from gru_serving.engine.warmup import predict_record, write_records
from gru_serving.errors import DeadlineExceeded, Unavailable
from tests.ports import free_ports
from tests.serving.conftest import REPOSITORY, answers, running, start, wait_until
from tests.serving.saved_models import save_killer

ONE = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    directory = tmp_path_factory.mktemp("killer") / "2"
    made = f"from pathlib import Path; from {save_killer.__module__} import save_killer; "
    subprocess.run(
        [sys.executable, "-c", f"{made}save_killer(Path({str(directory)!r}))"],
        cwd=REPOSITORY,
        check=True,
    )
    return directory


@pytest.fixture
def base(models, killer, tmp_path):
    """A good version and one that kills."""
    base = tmp_path / "base"
    shutil.copytree(models / "affine" / "1", base / "1")
    shutil.copytree(killer, base / "2")
    return base


def status_of(client, version):
    return next((one for one in client.status("m") if one.version == version), None)


def test_a_version_that_kills_its_process_neither_ends_the_server_nor_its_start(base, tmp_path):
    flags = ("--model_name=m", f"--model_base_path={base}", "--trial_load=auto")
    log = tmp_path / "log"
    with running(log, *flags) as server, connect(server.rest) as client:
        for version in (2, 3):
            # One that exists at the start, and one that arrives while the server runs.
            if version == 3:
                shutil.copytree(base / "2", tmp_path / "3")
                (tmp_path / "3").rename(base / "3")
                wait_until(lambda: status_of(client, 3), server)
                wait_until(lambda: status_of(client, 3).state == "END", server)
            assert client.predict(ONE, "m")["y"].tolist() == [[9, 12]]
            assert status_of(client, 1).state == "AVAILABLE"
            known = status_of(client, version)
            assert (known.state, known.error_code) == ("END", "INTERNAL")
            words = r"trial process ended with signal 6 \(SIGABRT\): .*key not found: value"
            assert re.search(words, known.error_message)
    text = log.read_text()
    assert text.count("try 1 of 6") == 2
    assert "try 2 of 6" not in text
    assert re.search(r"Tried .*/1 in \d+\.\d\d s", text)


@pytest.mark.slow
def test_without_a_trial_the_server_dies(base, tmp_path):
    """The reason for the trial; should TensorFlow stop dying of this, the tests need another."""
    port, rest_port = free_ports(2)
    process = start(
        f"--port={port}", f"--rest_api_port={rest_port}", "--model_name=m",
        f"--model_base_path={base}", "--trial_load=never", stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.wait(120) == -signal.SIGABRT


def test_a_trial_leaves_errors_to_the_load(models, tmp_path):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "1")
    try_version(version, LoadOptions(), LoadWatch())
    (version / "saved_model.pb").write_bytes(b"\xff")
    try_version(version, LoadOptions(), LoadWatch())


def test_a_trial_takes_no_longer_than_it_may(models, tmp_path):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "1")
    write_records(version, [predict_record({"steps": np.int64(10**12)}, "spin")])
    watch = LoadWatch(3)
    watch.begin()
    with pytest.raises(DeadlineExceeded, match=r"--load_timeout_seconds allows \(3 s\)"):
        try_version(version, LoadOptions(), watch)
    watch = LoadWatch()
    watch.stop()
    with pytest.raises(Unavailable, match="the server stops"):
        try_version(version, LoadOptions(), watch)


@pytest.mark.slow
def test_a_trial_ends_with_its_server(models, tmp_path):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "base" / "1")
    write_records(version, [predict_record({"steps": np.int64(10**12)}, "spin")])
    port, _ = free_ports(2)
    process = start(f"--port={port}", f"--model_base_path={version.parent}", "--trial_load=always")

    def children():
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)],
            check=False,
            capture_output=True,
            text=True,
        )
        return [int(pid) for pid in found.stdout.split()]

    wait_until(children)
    (child,) = children()
    process.kill()
    process.wait()
    wait_until(lambda: not _is_alive(child))


def _is_alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.parametrize("beside", [[], [ONE]], ids=["alone", "beside another signature"])
def test_a_warmup_without_end_ends_by_its_time_or_a_signal(models, tmp_path, beside):
    """Beside a good model, which serves meanwhile; the server ends at once when told to."""
    for name in ("good", "endless"):
        shutil.copytree(models / "affine" / "1", tmp_path / name / "1")
    endless = predict_record({"steps": np.int64(10**12)}, "spin")
    write_records(tmp_path / "endless" / "1", [endless, *map(predict_record, beside)])
    config = tmp_path / "models.config"
    config.write_text(
        "model_config_list {"
        + "".join(
            f'config {{ name: "{name}" base_path: "{tmp_path}/{name}" '
            'model_platform: "tensorflow" }'
            for name in ("good", "endless")
        )
        + "}"
    )
    flags = (
        f"--model_config_file={config}", "--isolate_models", "--max_num_load_retries=0",
        "--load_timeout_seconds=10",
    )  # fmt: skip
    with running(tmp_path / "log", *flags) as server, connect(server.rest) as client:
        assert client.predict(ONE, "good")["y"].tolist() == [[9, 12]]
        (status,) = client.status("endless")
        assert (status.state, status.error_code) == ("END", "DEADLINE_EXCEEDED")
        assert "--load_timeout_seconds allows (10 s)" in status.error_message
        # Once more, and now the server is told to stop.
        (tmp_path / "endless" / "1" / "saved_model.pb").touch()
        wait_until(lambda: client.status("endless")[0].state == "LOADING", server)
        server.process.send_signal(signal.SIGTERM)
        started = time.monotonic()
        assert server.process.wait(60) == 0
        assert time.monotonic() - started < 9  # less time than the load would have had


@pytest.mark.slow
def test_a_warmup_does_not_wait_for_a_batch_to_fill(models, tmp_path):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "base" / "1")
    write_records(version, [predict_record(ONE)] * 3)
    parameters = tmp_path / "parameters"
    parameters.write_text(
        "batch_timeout_micros { value: 3600000000 } max_batch_size { value: 4 } "
        "num_batch_threads { value: 2 }"
    )
    flags = (
        "--model_name=m", f"--model_base_path={tmp_path}/base", "--enable_batching",
        f"--batching_parameters_file={parameters}", "--drain_seconds=1",
    )  # fmt: skip
    with running(tmp_path / "log", *flags) as server, connect(server.rest) as client:
        # Full batches run at once; requests that do not fill one still wait for others.
        four = {name: np.repeat(array, 4, 0) for name, array in ONE.items()}
        assert len(client.predict(four, "m")["y"]) == 4
        body = {"inputs": {name: array.tolist() for name, array in ONE.items()}}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.rest}/v1/models/m:predict", json=body, timeout=2, trust_env=False)


@pytest.mark.slow
@pytest.mark.parametrize("trial", ["never", "always"])
def test_a_stop_during_a_load_before_the_ports_open(models, tmp_path, trial):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "base" / "1")
    write_records(version, [predict_record({"steps": np.int64(10**12)}, "spin")])
    flags = (
        "--model_name=m", f"--model_base_path={tmp_path}/base", f"--trial_load={trial}",
    )  # fmt: skip
    with running(tmp_path / "log", *flags, ready=False) as server:
        wait_until(lambda: "Loading servable version" in server.log.read_text(), server)
        time.sleep(2)  # well inside the warmup, or on the way to it
        assert server.process.poll() is None
        assert not answers(server)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    assert "Stopping before the models are loaded" in (tmp_path / "log").read_text()
