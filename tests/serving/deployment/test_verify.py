"""`verify` against a live server, and models that were changed."""

import json
import re
import shutil

import pytest

from gru_serving.__main__ import main
from gru_serving.storage.digests import FILE as DIGESTS
from tests.ports import free_ports
from tests.serving.deployment.classifier import retouch
from tests.serving.servers import running


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", ["one", "both"])
def test_verify_passes(url, exports, name, capsys):
    assert main(["verify", str(exports.root / name), "--url", url, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["largest_difference"] <= 1e-6
    assert {"serving_default", "classify", "gates"} <= outcome["by_signature"].keys()
    assert ("step" in outcome["by_signature"]) is (name == "one")


def test_verify_against_another_model_fails(url, exports, capsys):
    version = str(exports.version("one"))
    assert main(["verify", version, "--url", url, "--model", "both"]) == 1
    said = capsys.readouterr().err
    # Two models may agree on the label of a row; on its probability to 1e-5 they do not.
    differing = r"\(serving_default\), output '(label|probability)', row 0: expected .* got"
    assert re.search(differing, said)


def test_verify_tells_what_could_not_be_compared(url, exports, capsys):
    version = str(exports.version("one"))
    assert main(["verify", version, "--url", url, "--model", "nix"]) == 2
    assert main(["verify", version, "--url", url, "--label", "nix"]) == 1
    (port,) = free_ports(1)
    down = f"{url.rpartition(':')[0]}:{port}"
    assert main(["verify", version, "--url", down, "--timeout", "2"]) == 3
    assert "no server answers at" in capsys.readouterr().err


def test_tampered_model_is_found_in_files_and_on_a_server(exports, tmp_path, capsys):
    version = exports.version("one")
    base = tmp_path / "one"
    shutil.copytree(version, base / "1")
    retouch(base / "1")
    assert main(["verify", str(base / "1")]) == 1
    assert "expected" in capsys.readouterr().err
    (base / "1" / DIGESTS).unlink()  # otherwise the server would not load the version
    flags = ("--model_name=one", f"--model_base_path={base}", "--runtime=tensorflow")
    with running(tmp_path / "log", *flags) as server:  # the graphs of ONNX are what they were
        for url in (server.rest, server.grpc):
            assert main(["verify", str(version), "--url", url]) == 1
            assert "(serving_default), output" in capsys.readouterr().err
