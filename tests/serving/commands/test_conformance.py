"""`gru-serve conformance`: the report, the file of outcomes, and the exit status."""

import json
import re

import pytest

from gru_serving.__main__ import main
from gru_serving.conformance import kit
from tests.ports import free_ports
from tests.serving.strange_servers import web

NAMES = ("unknown model (rest)", "unknown version (rest)", "unknown model (grpc)")


@pytest.fixture
def few_cases(monkeypatch):
    cases = [case for case in kit.all_cases() if case.name in NAMES]
    monkeypatch.setattr(kit, "all_cases", lambda: cases)


def answer(path):
    which = "Latest(nix)" if "nix" in path else "Specific(affine, <3>)"
    return json.dumps({"error": f"Servable not found for request: {which}"}).encode()


def test_report_and_outcomes(few_cases, tmp_path, capsys):
    page, outcomes = tmp_path / "report.html", tmp_path / "out.json"
    with web(404, answer, "application/json") as (_, url):
        status = main(
            ["conformance", "--rest", url, "--report", str(page), "--json", str(outcomes)]
        )
    said = capsys.readouterr().out
    assert status == 1
    assert "deviates: unknown version (rest): text: expected 'Servable not found" in said
    assert re.search(
        r"\b1  same\n.*\b0  deviates \(documented\)\n.*\b1  deviates\n.*\b1  not off", said
    )
    found = json.loads(outcomes.read_text("utf-8"))
    assert found["verdicts"] == {
        "same": 1, "deviates (documented)": 0, "deviates": 1, "not offered": 1,
    }  # fmt: skip
    assert found["cases"]["unknown model (rest)"]["verdict"] == "same"
    shown = page.read_text("utf-8")
    assert "Content-Security-Policy\" content=\"default-src 'none'" in shown
    assert "color-scheme:light dark" in shown
    assert not re.search(r"<script|<link|src=|href=|url\(", shown)
    assert "Specific(affine, &lt;3&gt;)" in shown
    assert "POST /v1/models/affine/versions/2:predict {}" in shown
    assert shown.count("<tr><td>") == 3


def test_nothing_deviates_but_as_documented(few_cases, tmp_path):
    known = tmp_path / "known.toml"
    known.write_text('[deviations]\n"unknown version (rest)" = "versions count from three"\n')
    with web(404, answer, "application/json") as (_, url):
        assert main(["conformance", "--rest", url, "--deviations", str(known)]) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "expected an address, as --grpc HOST:PORT, --rest URL or both"),
        (["--rest", "localhost:8501"], 2, "expected http://HOST:PORT; got localhost:8501"),
        (["--rest", "https://localhost:8501"], 2, "expected http://HOST:PORT"),
        (
            ["--rest", "http://localhost:{port}"],
            3,
            "--rest: expected a server there; got no answer",
        ),
        (["--grpc", "localhost:{port}"], 3, "--grpc: expected a server there; got UNAVAILABLE"),
        (
            ["--rest", "http://localhost:{port}", "--deviations", "nowhere"],
            2,
            "nowhere: No such file",
        ),
        (["--make-models", "{folder}"], 2, "it has files"),
    ],
)
def test_mistakes(arguments, status, said, tmp_path, capsys):
    (tmp_path / "file").touch()
    (port,) = free_ports(1)
    filled = [one.format(port=port, folder=tmp_path) for one in arguments]
    assert main(["conformance", *filled]) == status
    assert said in capsys.readouterr().err


def test_command_lines_start_a_server_of_the_models(tmp_path, monkeypatch, capsys):
    """Both have the same flags, which this project's parser knows."""
    from gru_serving.config.flags import parse_flags
    from gru_serving.conformance.models import command_lines

    lines = command_lines(tmp_path)
    flags = lines["gru-serve"].split()[2:]
    parsed = parse_flags(flags)
    assert parsed.model_config_file == f"{tmp_path}/models.config"
    assert parsed.enable_per_model_batching_parameters
    docker = lines["tensorflow/serving"].split()
    assert [one for one in docker if one.startswith("--enable")] == [
        one for one in flags if one.startswith("--enable")
    ]
