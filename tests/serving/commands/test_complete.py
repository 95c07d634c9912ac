"""`gru-serve complete` where nobody answers; with a model: tests/training/language/served."""

import pytest

from gru_serving.__main__ import main
from tests.ports import free_ports


@pytest.mark.parametrize("scheme", ["http", "grpc"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_an_error_stands_alone(capsys, scheme, output):
    (port,) = free_ports(1)
    url = f"{scheme}://localhost:{port}"
    told = ["complete", "--url", url, "--timeout", "0.5", "--output", output, "The film was"]
    assert main(told) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"gru-serve complete: no server answers at {url}")
    assert shown.err.count("\n") == 1
