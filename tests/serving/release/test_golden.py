"""Golden requests and unusable versions, and what the commands that read them print."""

import json
import math
import re
import shlex
import shutil
from urllib.parse import unquote

import pytest

from gru_serving.__main__ import main
from gru_serving.conformance.models import save_affine

GOOD = {
    "method": "predict",
    "signature_name": "serving_default",
    "inputs": {"x": [[1.0, 0.0, 0.0]], "b": [[0.5]]},
    "outputs": {"y": [[1.5, 2.5]], "doubled": [[2.0, 0.0, 0.0]]},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A version whose answers can be computed by hand: y = x [[1, 2], [3, 4], [5, 6]] + b."""
    version = tmp_path_factory.mktemp("affine") / "1"
    save_affine(version)
    (version / "assets.extra").mkdir(exist_ok=True)
    write(version, [GOOD])
    return version


@pytest.fixture
def version(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "m" / "1")


def write(version, golden):
    (version / "assets.extra" / "golden.json").write_text(json.dumps(golden))


def test_answers_known_by_hand(version, capsys):
    assert main(["verify", str(version), "--tolerance=0"]) == 0
    write(version, [{**GOOD, "outputs": {"y": [[1.5, 2.6]]}}])
    assert main(["verify", str(version)]) == 1
    assert "request 0 (serving_default), output 'y', row 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inputs": [1.0]}, "request 0: expected inputs to be a dict with something in it; got [1"),
        ({"inputs": {}}, "expected inputs to be a dict with something in it; got {}"),
        ({"outputs": ["y"]}, "expected outputs to be a dict with something in it; got ['y']"),
        ({"outputs": {}}, "expected outputs to be a dict with something in it; got {}"),
        (
            {"method": "classify", "examples": {"x": 1}},
            "expected examples to be a list with something in it; got {'x': 1}",
        ),
    ],
)
def test_requests_of_another_form_are_no_wrong_answers(version, capsys, change, said):
    write(version, [{**GOOD, **change}])
    for command in ("verify", "example-request"):
        assert main([command, str(version)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("golden", "said"),
    [
        ([], "expected a non-empty list of requests; got []"),
        (GOOD, "expected a non-empty list of requests; got {'method': 'predict'"),
        ([GOOD, 5], "request 1 must have the keys"),
        ([{**GOOD, "method": "regress"}], "['examples', 'outputs', 'signature_name']"),
    ],
)
def test_files_without_requests(version, capsys, golden, said):
    write(version, golden)
    assert main(["verify", str(version)]) == 2
    assert said in capsys.readouterr().err


def test_names_in_files_do_nothing_to_a_terminal(version, capsys):
    """Example requests keep their meaning: curl's body as JSON, and Python's as its repr."""
    evil = "a\x1b[2J\x9b31m\x7f\u202egnp\u2028\ud800"
    place = version.parent.with_name("m\x1b[31m\x9bx")
    version.parent.rename(place)
    write(place / "1", [{**GOOD, "signature_name": evil, "inputs": {evil: [[1.0]]}}])
    assert main(["example-request", str(place), "--signature", "none"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert main(["example-request", str(place), "--signature", evil]) == 0
    shown = capsys.readouterr().out
    raw = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e-\u200f\u2028-\u202e\ud800-\udfff]")
    assert raw.findall(said + shown) == []
    words = shlex.split(next(line for line in shown.splitlines() if line.startswith("curl")))
    assert json.loads(words[3]) == {"signature_name": evil, "inputs": {evil: [[1.0]]}}
    assert unquote(words[4]).endswith("/v1/models/m\x1b[31m\x9bx:predict")


def of_examples(method, outputs):
    examples = [{"text": "good"}, {"text": "good bad"}]
    return {
        "method": method,
        "signature_name": method,
        "examples": examples,
        "outputs": outputs,
    }


@pytest.mark.parametrize("transport", ["files", "rest", "grpc"])
def test_classify_and_regress(models, server, tmp_path, capsys, transport):
    """The text model counts good and bad words; the odds are e to the power of the difference."""
    positive = [math.e / (1 + math.e), 0.5]
    scores = [[1 - one, one] for one in positive]
    version = shutil.copytree(models / "text" / "1", tmp_path / "text" / "1")
    (version / "assets.extra").mkdir(exist_ok=True)
    asked = ["verify", str(version)]
    if transport != "files":
        asked += ["--url", getattr(server, transport)]
    classified = of_examples(
        "classify", {"classes": [["negative", "positive"]] * 2, "scores": scores}
    )
    write(version, [classified, of_examples("regress", {"outputs": positive})])
    assert main(asked) == 0
    assert "2 requests with 4 rows" in capsys.readouterr().out
    write(version, [classified, of_examples("regress", {"outputs": [positive[0], 0.6]})])
    assert main(asked) == 1
    assert "request 1 (regress), output 'outputs', row 1" in capsys.readouterr().err


@pytest.mark.parametrize("tolerance", ["nan", "-1"])
def test_a_tolerance_that_is_none(version, capsys, tolerance):
    for command in (["verify", str(version)], ["diff", str(version), str(version)]):
        assert main([*command, f"--tolerance={tolerance}"]) == 2
        assert "tolerance: expected a number from 0; got" in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["saved_model.pb", "variables/variables.index"])
def test_the_version_that_does_not_load_is_named(saved, version, capsys, broken):
    path = version / broken
    path.write_bytes(path.read_bytes()[:30])
    for command in (
        ["verify", str(version)],
        ["diff", str(saved), str(version)],
        ["diff", str(version), str(saved)],
        ["inspect", str(version)],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"gru-serve {command[0]}: {version}"), said


def test_what_publish_could_not_copy_is_one_line(version, tmp_path, capsys):
    for name in ("a", "b", "c"):
        (version / name).symlink_to("nowhere")
    assert main(["publish", str(version), "--to", str(tmp_path / "to"), "--unverified"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gru-serve publish: copying failed: [Errno 2] No such file or directory")
    assert said.endswith(", and 2 more\n")
    assert not (tmp_path / "to").exists()
