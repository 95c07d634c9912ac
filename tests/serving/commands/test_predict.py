"""`gru-serve predict` and the command table."""

import io
import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

import gru_serving.commands.predict
from gru_serving import __main__
from gru_serving.__main__ import COMMANDS, main
from gru_serving.commands.predict import print_answers
from gru_serving.errors import FailedPrecondition, InvalidArgument, NotFound
from tests.serving.servers import REPOSITORY


def predict(*argv):
    return main(["predict", *argv])


def test_table(url, capsys):
    assert predict("--url", url, "--model", "text", "great film", "awful") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["text", "label", "probability", "negative", "positive"]
    assert lines[1].split() == ["great", "film", "positive", "0.7311", "0.2689", "0.7311"]
    assert lines[2].split() == ["awful", "negative", "0.7311", "0.7311", "0.2689"]


def test_names_of_many_classes_stand_beside_their_scores(capsys):
    classes = [f"class {number}" for number in range(9)]
    scores = np.array([[0.0, 0.1, 0.02, 0.03, 0.4, 0.05, 0.06, 0.07, 0.27]], np.float32)
    outputs = {"label": np.array([b"class 4"], object), "scores": scores}
    print_answers({}, outputs, classes)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "class 4 0.4, class 8 0.27, class 1 0.1, class 7 0.07, class 6 0.06, class 5 0.05 ..."
        in said
    )


def test_json_output(url, capsys):
    assert predict("--url", url, "--model", "text", "--output", "json", "good") == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["label"] == "positive"
    assert row["probability"] == pytest.approx(0.7310586, abs=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": {"x": [[1, 0, 0]], "b": [[1]]}},
        {"instances": [{"x": [1, 0, 0], "b": [1]}]},
    ],
)
def test_json_request(url, capsys, tmp_path, body):
    path = tmp_path / "request.json"
    path.write_text(json.dumps(body))
    arguments = ("--url", url, "--model", "affine", "--json", str(path), "--output", "json")
    assert predict(*arguments, "--label", "stable") == 0
    assert json.loads(capsys.readouterr().out)["predictions"][0]["y"] == [2.0, 3.0]
    assert predict(*arguments, "--version", "3") == 0
    assert json.loads(capsys.readouterr().out)["predictions"][0]["y"] == [11.0, 21.0]


def test_standard_input(url, capsys, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b'{"instances": [[1, 1, 1]]}')

    monkeypatch.setattr(sys, "stdin", Stdin)
    arguments = ("--model", "affine", "--signature", "total", "--json", "-")
    assert predict("--url", url, *arguments) == 0
    assert capsys.readouterr().out == "total []: 3\n"


def test_wrong_data(url, capsys, tmp_path):
    path = tmp_path / "request.json"
    path.write_text('{"instances": [{"x": [1, 2, 3]}]}')
    assert predict("--url", url, "--model", "affine", "--json", str(path)) == 2
    said = capsys.readouterr().err
    assert f"{path}: expected" in said
    assert "b (float [?, 1]), x (float [?, 3])" in said
    assert "keys must be equal to: b,x" in said


def test_integers_beyond_their_type_are_not_sent(url, capsys, tmp_path):
    path = tmp_path / "request.json"
    path.write_text('{"instances": [256]}')
    arguments = ("--model", "echo", "--signature", "uint8", "--json", str(path))
    assert predict("--url", url, *arguments) == 2
    assert "256 Type: Number is not of expected type: uint8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--model", "affine", "text"], "texts: the model takes"),
        (
            ["--model", "text"],
            "expected either texts or --csv FILE or --json FILE or --data FILE; got none",
        ),
        (
            ["--model", "text", "a", "--csv", "b.csv"],
            "expected either texts or --csv FILE or --json FILE or --data FILE; got several",
        ),
        (["--model", "text", "--json", "x", "t"], "got several"),
        (["--model", "text", "--json", "/nix/x.json"], "/nix/x.json: No such file"),
        (["--model", "text", "--signature", "s", "t"], "--signature: expected one of"),
        (["--model", "text", "--version", "1", "--label", "l", "t"], "version or label, not both"),
        (["--model", "text", "--url", "ftp://x", "t"], "url: expected http://"),
        (
            ["--model", "text", "--url", "http://x:1/gateway/v1/models/text:predict", "t"],
            "url: expected the server's, such as http://x:1/gateway; got 'http://x:1/gateway/v1/",
        ),
        (["--model", "text", "ok", "caf\udce9"], "text 2 has the byte 0xe9 at character 4"),
        (["--model", "text", "--token_file", "/nix", "t"], "/nix: No such file"),
        (["--model", "text", "--cert_file", "c", "t"], "cert_file and key_file belong together"),
    ],
)
def test_usage_errors(server, capsys, argv, said):
    assert predict("--url", server.rest, *argv) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--model", "nix"], "--model nix: expected what "),
        (["--model", "nix"], "Servable not found for request: Latest(nix)"),
        (["--model", "text", "--version", "9"], "--model text --version 9: expected what "),
        (["--model", "text", "--label", "nix"], "label: nix"),
        (["--model", "text", "--version", "-1"], "version must be at least 0"),
        (["--model", "text", "--version", str(2**63)], "version must be at least 0"),
        (["--model", "text", "--timeout", "nan"], "timeout must be positive; got nan"),
    ],
)
def test_what_the_server_does_not_have_is_a_usage_error(url, capsys, argv, said):
    assert predict("--url", url, *argv, "t") == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "over_rest", "over_grpc"),
    [
        (["--model", "txt"], "the server has the models affine, echo, half/plus:two, text", ""),
        (["--model", "affine", "--version", "9"], "model affine has the versions ", "3, 1"),
        (["--model", "affine", "--label", "nix"], "1 (the label stable)", "the versions 3, 1"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "explain", "stream"])
def test_what_the_server_has_is_listed(server, capsys, command, argv, over_rest, over_grpc):
    assert main([command, "--url", server.rest, *argv, "t"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert over_rest in line
    assert main([command, "--url", server.grpc, *argv, "t"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert over_grpc in line


@pytest.mark.parametrize("error", [NotFound, FailedPrecondition, InvalidArgument])
def test_the_status_of_refused_requests(monkeypatch, capsys, error):
    def refuse(*_):
        raise error("no")

    monkeypatch.setattr(gru_serving.commands.predict, "_predict", refuse)
    assert predict("t") == 2
    assert capsys.readouterr().err == "gru-serve predict: no\n"


def test_debug_shows_the_error_itself(server):
    with pytest.raises(ValueError, match="url: expected"):
        predict("--debug", "--url", "ftp://x", "t")


def test_help_of_every_command(capsys):
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for command, (_, text) in COMMANDS.items():
        assert command in said
        assert text in said


def test_help_of_every_command_is_there_before_anything_heavy_is_loaded():
    program = """
import contextlib, io, sys
from gru_serving.__main__ import COMMANDS, main
heavy = {"h5py", "httpx", "keras", "keras_gru", "matplotlib", "onnxruntime", "pandas", "pyarrow",
         "scipy", "sklearn", "starlette", "tensorflow"}
for name in COMMANDS:
    with contextlib.suppress(SystemExit):
        main([name, "--help"])
    assert not heavy & set(sys.modules), (name, heavy & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--rest_api_port" in done.stdout + done.stderr


def test_no_and_unknown_command(capsys):
    assert main([]) == 2
    assert main(["nix"]) == 2
    said = capsys.readouterr().err
    assert "expected a command (export, serve, playground, predict, " in said
    assert said.endswith("; got 'nix'\n")


def test_interrupt(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(gru_serving.commands.predict, "main", interrupted)
    assert __main__.main(["predict"]) == 130
    assert capsys.readouterr().err == "gru-serve predict: interrupted\n"


@pytest.mark.parametrize("argv", [["--help"], ["prune", "--help"], ["prune", "/", "--keep", "1"]])
def test_output_that_nobody_reads_any_more(argv):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "gru_serving", *argv],
        cwd=REPOSITORY,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (0, 141)  # argparse swallows the error of writing its help


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written(where):
    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m gru_serving prune / --keep 1 {where}"],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    full = "gru-serve: the output cannot be written: No space left on device\n"
    wanted = (0, "") if where == ">&-" else (2, full)
    assert (done.returncode, done.stderr) == wanted
