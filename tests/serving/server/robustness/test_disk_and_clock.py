"""A disk that is full, and a clock that jumps, under a running server."""

import contextlib
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.client import connect
from gru_serving.errors import DeadlineExceeded
from tests.serving.load import load
from tests.serving.saved_models import publish
from tests.serving.server.robustness.version_states import serves
from tests.serving.servers import running, wait_until


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if not mounted or mounted.returncode != 0:
        pytest.skip("may not mount a tmpfs")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_full_disk(models, tmp_path, tiny_disk):
    """Unwritable logs affect no request, are reported as lost, and continue afterwards."""
    base = tmp_path / "m"
    publish(models, base, 1)
    access, predictions = tiny_disk / "access.log", tiny_disk / "predictions"
    flags = (
        f"--model_base_path={base}", "--model_name=m", f"--access_log={access}",
        f"--prediction_log_directory={predictions}", "--prediction_log_sampling_rate=1",
    )  # fmt: skip

    def predictions_again():
        with contextlib.suppress(FileNotFoundError):  # a file that cannot be written is removed
            return any(path.stat().st_size for path in predictions.iterdir())

    with running(tmp_path / "log", *flags) as server, load(server, "m", threads=2) as seen:
        ballast = tiny_disk / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
        wait_until(lambda: "lost so far" in server.log.read_text(), server)
        wait_until(lambda: "No space left on device" in server.log.read_text(), server)
        before, size = seen.counted, access.stat().st_size
        wait_until(lambda: seen.counted > before + 20, server)
        ballast.unlink()
        wait_until(lambda: access.stat().st_size > size + 1000, server)
        wait_until(predictions_again, server)
    seen.check(least=20)
    entries = [json.loads(line) for line in access.read_text().splitlines()]
    assert entries[-1]["status"] == "OK"
    files = [str(path) for path in predictions.iterdir()]
    assert sum(1 for _ in tf.data.TFRecordDataset(files)) > 0


@pytest.fixture(scope="module")
def shifted_clock(tmp_path_factory):
    """Environment of a process whose wall clock can be changed, and the file that changes it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    directory = tmp_path_factory.mktemp("clock")
    library, offset = directory / "clock.so", directory / "offset"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(offset)}, offset


@pytest.mark.slow
def test_clock_that_jumps(models, tmp_path, shifted_clock):
    """The wall clock jumps a day ahead and back: deadlines, polls and the stop are unaffected."""
    environment, offset = shifted_clock
    base = tmp_path / "m"
    publish(models, base, 1)
    flags = (f"--model_base_path={base}", "--model_name=m")
    with (
        running(tmp_path / "log", *flags, environment=environment) as server,
        connect(server.grpc) as client,
    ):
        with load(server, "m") as seen:
            for version, seconds in enumerate((86_400, -86_400, 0), 2):
                offset.write_text(str(seconds))
                publish(models, base, version)
                wait_until(lambda version=version: serves(client, version), server, seconds=60)
            started = time.monotonic()
            with pytest.raises(DeadlineExceeded):
                client.predict(np.int64(10**12), "m", signature="spin", timeout=0.5)
            assert time.monotonic() - started < 60
        offset.write_text("86400")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(90) == 0
        stamps = {line.split()[0] for line in server.log.read_text().splitlines() if ":" in line}
    seen.check(least=10)
    days = {stamp for stamp in stamps if stamp.startswith("20")}
    assert len(days) == 3, "the clock did not jump"
