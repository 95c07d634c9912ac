"""Versions that would end the process are tried in another one: by a server and in these tests."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.load_watch import LoadWatch
from gru_serving.engine.trial import Trials, TriedVersions
from gru_serving.engine.warmup import predict_record, write_records
from gru_serving.errors import DeadlineExceeded, RefusedVersion, Unavailable
from tests.made_once import made_once
from tests.ports import free_ports
from tests.serving.saved_models import save_killer
from tests.serving.servers import REPOSITORY, answers, models_flag, running, start, wait_until

TRIED = r"Tried .*/1 in \d+\.\d\d s"
ONE = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Where versions that came through their trial are remembered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "keras-gru" / "tried-versions"


@pytest.fixture(scope="module")
def trials():
    trials = Trials()
    yield trials
    trials.close(60)


@pytest.fixture(scope="module")
def killer():
    def make(folder):
        made = f"from pathlib import Path; from {save_killer.__module__} import save_killer; "
        subprocess.run(
            [sys.executable, "-c", f"{made}save_killer(Path({str(folder / '2')!r}))"],
            cwd=REPOSITORY,
            check=True,
        )

    return made_once("killer", make) / "2"


@pytest.fixture
def base(models, killer, tmp_path):
    """A good version and one that kills."""
    base = tmp_path / "base"
    shutil.copytree(models / "affine" / "1", base / "1")
    shutil.copytree(killer, base / "2")
    return base


def status_of(client, version):
    return next((one for one in client.status("m") if one.version == version), None)


@pytest.mark.slow
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
    assert re.search(TRIED, text)


@pytest.mark.slow
def test_without_a_trial_the_server_dies(base, tmp_path):
    """The reason for the trial; should TensorFlow stop dying of this, the tests need another."""
    port, rest_port = free_ports(2)
    process = start(
        f"--port={port}", f"--rest_api_port={rest_port}", "--model_name=m",
        f"--model_base_path={base}", "--trial_load=never", stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.wait(120) == -signal.SIGABRT


def test_a_trial_leaves_errors_to_the_load(models, tmp_path, trials):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "1")
    assert trials.try_version(version, LoadOptions(), LoadWatch())
    (version / "saved_model.pb").write_bytes(b"\xff")
    assert not trials.try_version(version, LoadOptions(), LoadWatch())


@pytest.mark.slow
def test_a_crash_ends_its_own_trial_alone(models, killer, trials):
    """Trials share a process; another version is tried beside and after the one that crashes."""
    with ThreadPoolExecutor(3) as threads:
        found = [
            threads.submit(trials.try_version, directory, LoadOptions(), LoadWatch())
            for directory in (models / "affine" / "1", killer, models / "affine" / "3")
        ]
    assert found[0].result()
    assert found[2].result()
    with pytest.raises(RefusedVersion, match=r"signal 6 \(SIGABRT\): .*key not found: value"):
        found[1].result()
    assert trials.try_version(models / "affine" / "1", LoadOptions(), LoadWatch())


@pytest.mark.slow
def test_an_idle_process_ends_and_another_one_is_started(models):
    trials = Trials(idle_seconds=0.1)
    try:
        for version in ("1", "3"):
            directory = models / "affine" / version
            assert trials.try_version(directory, LoadOptions(), LoadWatch())
            wait_until(lambda: not child_processes(os.getpid(), "trial_process"))
    finally:
        trials.close(60)


@pytest.mark.slow
def test_a_trial_takes_no_longer_than_it_may(models, tmp_path, trials):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "1")
    write_records(version, [predict_record({"steps": np.int64(10**12)}, "spin")])
    watch = LoadWatch(3)
    watch.begin()
    with pytest.raises(DeadlineExceeded, match=r"--load_timeout_seconds allows \(3 s\)"):
        trials.try_version(version, LoadOptions(), watch)
    watch = LoadWatch()
    watch.stop()
    with pytest.raises(Unavailable, match="the server stops"):
        trials.try_version(version, LoadOptions(), watch)


@pytest.mark.slow
def test_a_trial_ends_with_its_server_and_leaves_it_the_processor(models, tmp_path):
    version = shutil.copytree(models / "affine" / "1", tmp_path / "base" / "1")
    write_records(version, [predict_record({"steps": np.int64(10**12)}, "spin")])
    port, _ = free_ports(2)
    process = start(f"--port={port}", f"--model_base_path={version.parent}", "--trial_load=always")

    wait_until(lambda: child_processes(process.pid))
    (child,) = child_processes(process.pid)
    wait_until(lambda: child_processes(child, "trial_process"))
    (trial,) = child_processes(child, "trial_process")
    usual = os.getpriority(os.PRIO_PROCESS, process.pid)
    for pid in (child, trial):  # beside the server's requests it is of low priority
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(usual + 10, 19)
    process.kill()
    process.wait()
    wait_until(lambda: not (_is_alive(child) or _is_alive(trial)))


def child_processes(pid, command=""):
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(pid)], check=False, capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if command in line]


@pytest.mark.slow
def test_many_versions_are_tried_in_one_process_and_only_once(models, tmp_path, cache):
    """The next server knows those that came through, unless a byte of theirs has changed."""
    names = [f"m{number}" for number in range(6)]
    for name in names:
        version = shutil.copytree(models / "affine" / "1", tmp_path / name / "1")
        (version / "assets" / "name").write_text(name)
    bases = {name: tmp_path / name for name in names}
    flags = (models_flag(tmp_path, bases), "--trial_load=auto")
    with running(tmp_path / "log", *flags) as server:
        assert len(child_processes(server.process.pid)) == 1
    assert len(re.findall(TRIED, (tmp_path / "log").read_text())) == len(names)
    assert len(list(cache.iterdir())) == len(names)
    (tmp_path / "m0" / "1" / "assets" / "name").write_text("m?")
    with running(tmp_path / "log", *flags) as server, connect(server.rest) as client:
        assert client.predict(ONE, "m5")["y"].tolist() == [[9, 12]]
    assert re.findall(TRIED, text := (tmp_path / "log").read_text()) == re.findall(
        r"Tried .*/m0/1 in .* s", text
    )
    assert text.count("came through its trial before") == len(names) - 1


def test_what_is_remembered_is_for_the_same_bytes_options_and_packages_only(
    tmp_path, cache, monkeypatch
):
    version = tmp_path / "1"
    version.mkdir()
    (version / "saved_model.pb").write_bytes(b"a graph")
    options, tried = LoadOptions(), TriedVersions(cache)

    def key(options=options):
        return tried.key(version, options, lambda: None)

    known = key()
    assert known not in tried
    tried.add(known)
    assert known in TriedVersions(cache)
    assert key(replace(options, seconds=5.0)) == known
    assert key(replace(options, tags=("serve", "gpu"))) != known
    (version / "saved_model.pb").write_bytes(b"a GRAPH")
    assert key() != known
    (version / "saved_model.pb").write_bytes(b"a graph")
    (version / "variables").write_bytes(b"")
    assert key() != known
    (version / "variables").unlink()
    assert key() == known
    monkeypatch.setattr(
        "gru_serving.engine.trial.version", lambda package: f"{package} of tomorrow"
    )
    assert key() != known
    assert TriedVersions(cache).key(tmp_path / "nowhere" / "1", options, lambda: None) != known


def test_a_folder_that_others_may_write_to_is_not_believed(cache, caplog):
    caplog.set_level("INFO")
    tried = TriedVersions(cache)
    tried.add("a" * 64)
    cache.chmod(0o777)
    assert "a" * 64 not in tried
    tried.add("b" * 64)
    assert [path.name for path in cache.iterdir()] == ["a" * 64]
    assert f"cannot remember them in {cache}: others may write to it" in caplog.text


@pytest.mark.slow
def test_the_versions_remembered_are_those_loaded_last(cache, monkeypatch):
    monkeypatch.setattr("gru_serving.engine.trial._MOST_REMEMBERED", 3)
    tried = TriedVersions(cache)
    for time_, name in enumerate("abc", 1000):
        tried.add(name)
        os.utime(cache / name, (time_, time_))
    assert "a" in tried  # which makes it the latest
    tried.add("d")
    assert sorted(path.name for path in cache.iterdir()) == ["a", "c", "d"]


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
    bases = {name: tmp_path / name for name in ("good", "endless")}
    flags = (
        models_flag(tmp_path, bases), "--isolate_models", "--max_num_load_retries=0",
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
