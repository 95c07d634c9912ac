"""When the server takes its ports, and what it says of those that are in use."""

import os
import socket
import subprocess
from contextlib import ExitStack

import httpx
import pytest

from gru_serving.client import connect
from tests.ports import free_ports
from tests.serving.server.ended_server import failure
from tests.serving.servers import answers, running, start, wait_until


@pytest.mark.parametrize("address", ["192.0.2.1", "not an address"])
def test_an_address_that_is_not_this_machine_s(address, tmp_path):
    out = failure(f"--model_base_path={tmp_path}", f"--bind_address={address}")
    assert out.startswith(
        f"Failed to start server. Error: UNAVAILABLE: --bind_address={address} is no address of "
        "this machine: "
    )
    assert "port" not in out


@pytest.mark.parametrize("flag", ["drain_seconds", "rest_keep_alive_seconds"])
def test_negative_times(flag, tmp_path):
    out = failure(f"--model_base_path={tmp_path}", f"--{flag}=-5")
    assert f"INVALID_ARGUMENT: --{flag} must be at least" in out
    assert "got -5" in out


@pytest.mark.parametrize("flag", ["port", "rest_api_port"])
def test_port_in_use(flag, tmp_path):
    """It is told before TensorFlow is imported, in less than a second of processor time."""
    other, own = free_ports(2)
    with socket.create_server(("127.0.0.1", own)):
        process = start(
            f"--model_base_path={tmp_path}",
            f"--{'rest_api_port' if flag == 'port' else 'port'}={other}",
            f"--{flag}={own}",
            environment={"PYTHONPROFILEIMPORTTIME": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        before = os.times()
        out, err = process.communicate(timeout=60)
        after = os.times()
    assert process.returncode == 255
    assert out == (
        f"Failed to start server. Error: UNAVAILABLE: cannot listen on 127.0.0.1:{own}: Address "
        f"already in use. Choose another port with --{flag}, or stop the program that uses this "
        "one.\n"
    )
    imported = {line.split("|")[-1].strip() for line in err.splitlines()}
    assert "asyncio" in imported
    assert "tensorflow" not in imported
    assert (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
        < 3  # on a slow machine; TensorFlow would take twice as long there
    )


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["port", "rest_api_port"])
def test_a_port_is_held_while_models_load(models, flag, tmp_path):
    """Meanwhile neither another server nor any other process can take it."""
    flags = ("--model_name=affine", f"--model_base_path={models / 'affine'}")
    with running(tmp_path / "log", *flags, ready=False, cold=True) as server:
        wait_until(lambda: "Importing TensorFlow" in server.log.read_text(), server)
        assert not answers(server)
        port = server.port if flag == "port" else server.rest_port
        for reuse in (0, 1):
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
                with pytest.raises(OSError, match="in use"):
                    other.bind(("127.0.0.1", port))
        ports = {"port": free_ports(1)[0], flag: port}
        out = failure(
            f"--model_base_path={tmp_path}", *(f"--{name}={own}" for name, own in ports.items())
        )
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in out
        assert not answers(server)
        wait_until(lambda: answers(server), server)
        with connect(server.grpc) as client:
            assert client.status("affine")


@pytest.mark.parametrize("waiting", [0, 1], ids=["free", "with no room for another client"])
def test_no_other_server_gets_the_socket(tmp_path, waiting):
    path = tmp_path / "grpc.sock"
    with ExitStack() as sockets:
        first, *clients = (
            sockets.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(1 + waiting)
        )
        first.bind(str(path))
        first.listen(0)
        for client in clients:
            client.connect(str(path))
        out = failure(f"--model_base_path={tmp_path}", f"--grpc_socket_path={path}", "--port=0")
    assert f"cannot listen on unix:{path}: another server does. Choose another path with" in out


def test_a_server_takes_the_ports_of_the_one_before_at_once(models, tmp_path):
    """Connections left over from before do not keep the server from taking it."""
    flags = ("--model_name=affine", f"--model_base_path={models / 'affine'}")
    with running(tmp_path / "log", *flags) as first, httpx.Client(trust_env=False) as client:
        assert client.get(f"{first.rest}/readyz").status_code == 200
        with connect(first.grpc) as other:
            assert other.status("affine")
        first.process.terminate()  # it closes the connections, which linger for a minute
        assert first.process.wait(60) == 0
        ports = f"--port={first.port}", f"--rest_api_port={first.rest_port}"
        with (tmp_path / "second").open("wb") as log:
            second = start(*ports, *flags, stdout=log, stderr=log)
        try:
            wait_until(lambda: answers(first) or second.poll() is not None)
            assert second.poll() is None, (tmp_path / "second").read_text()
        finally:
            second.terminate()
            second.wait(60)
