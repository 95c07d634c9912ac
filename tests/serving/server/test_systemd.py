"""What a server tells systemd, on a real socket; and the unit file, as systemd reads it."""

import configparser
import shlex
import shutil
import socket
import subprocess

import pytest

from gru_serving.config.flags import check, parse_flags
from tests.serving.saved_models import publish
from tests.serving.servers import REPOSITORY, running, wait_until

UNIT = REPOSITORY / "docker" / "systemd" / "gru-serve.service"


class Manager:
    """The socket of a service manager."""

    def __init__(self, address):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.settimeout(60)

    def close(self):
        self._socket.close()

    def next(self):
        return self._socket.recv(4096).decode()

    def waiting(self):
        """Whether a message has come already."""
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            self._socket.settimeout(60)
        return True


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path, monkeypatch):
    address = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}"
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    manager = Manager(address)
    yield manager
    manager.close()


def test_a_start_is_over_when_the_models_serve(models, tmp_path, manager):
    base = tmp_path / "m"
    base.mkdir()
    flags = ("--model_name=m", f"--model_base_path={base}")
    with running(tmp_path / "log", *flags, ready=False) as server:
        wait_until(lambda: "No versions of servable m found" in server.log.read_text(), server)
        assert not manager.waiting()
        publish(models, base, 1)
        assert manager.next() == "READY=1"
        assert "Successfully loaded servable version" in server.log.read_text()
        server.process.terminate()
        assert manager.next() == "STOPPING=1"
        assert server.process.wait(60) == 0
        assert not manager.waiting()


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_a_stop_before_the_models_are_loaded_is_told(tmp_path, manager):
    base = tmp_path / "m"
    base.mkdir()
    flags = ("--model_name=m", f"--model_base_path={base}")
    with running(tmp_path / "log", *flags, ready=False) as server:
        wait_until(lambda: "No versions of servable m found" in server.log.read_text(), server)
        server.process.terminate()
        assert manager.next() == "STOPPING=1"


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_the_watchdog_is_fed(models, tmp_path, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "100000")
    flags = ("--model_name=m", f"--model_base_path={models / 'affine'}")
    with running(tmp_path / "log", *flags):
        told = [manager.next() for _ in range(5)]
        assert told.count("WATCHDOG=1") == 4
        assert told.count("READY=1") == 1


def test_a_socket_that_is_none_costs_a_line(models, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "none"))
    flags = ("--model_name=m", f"--model_base_path={models / 'affine'}")
    with running(tmp_path / "log", *flags) as server:
        assert "cannot send READY=1: [Errno 2]" in server.log.read_text()


def test_the_unit_has_flags_of_the_server():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(UNIT.read_text("utf-8").replace("\\\n", " "))
    program, command, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert (program.rpartition("/")[2], command) == ("gru-serve", "serve")
    flags = parse_flags(arguments)
    check(flags)
    assert int(unit["Service"]["TimeoutStopSec"]) >= flags.drain_seconds + 10
    assert unit["Service"]["Type"] == "notify"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_unit(tmp_path):
    program = tmp_path / "gru-serve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text("utf-8").replace("/opt/keras-gru/bin/gru-serve", str(program)))
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (told.returncode, UNIT.name in told.stderr) == (0, False), told.stderr
