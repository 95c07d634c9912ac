"""Commands that show, explain, load and publish an exported classifier."""

import base64
import json
import re
import shutil
import subprocess
import sys

import grpc
import numpy as np
import pytest

from benchmarks.sentiment.served import main as served_accuracy
from gru_serving.__main__ import main
from gru_serving.commands.example_request import KINDS, example_request
from gru_serving.engine.golden import read_golden
from gru_serving.storage.digests import FILE as DIGESTS
from tests.serving.deployment.classifier import TEXT, retouch


@pytest.mark.slow_cases
def test_explain_command(url, tmp_path, capsys):
    for name in ("one", "both"):
        picture = tmp_path / f"{name}.png"
        common = ["explain", "--url", url, "--model", name, TEXT]
        assert main([*common, "--picture", str(picture)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split()[:2] == ["token", "update"]
        assert [line.split()[0] for line in lines[1:4]] == ["to", "be", "fair"]
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert main([*common, "--output", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["classes"] == ["negative", "positive"]
        assert np.shape(answer["scores"]) == (len(answer["tokens"]), 2)
    assert main(["explain", "--url", url, "--model", "one", " "]) == 2
    assert "text: expected words" in capsys.readouterr().err
    bad = ["explain", "--url", url, "--model", "one", "--picture", str(tmp_path / "x.nix"), "a"]
    assert main(bad) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.slow_cases
def test_explain_by_attribution(url, tmp_path, capsys):
    page = tmp_path / "why.html"
    common = ["explain", "--url", url, "--model", "both", "--attribution", TEXT]
    assert main([*common, "--html", str(page)]) == 0
    *rows, total, _ = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in rows[:4]] == ["token", "to", "be", "fair"]
    shares = [float(line.split()[1]) for line in rows[1:]]
    assert float(re.search(r"add up to (\S+)", total)[1]) == pytest.approx(sum(shares), abs=0.01)
    assert "Content-Security-Policy\" content=\"default-src 'none'" in page.read_text("utf-8")
    assert re.findall(r"<span[^>]*>([^<]*)</span>", page.read_text("utf-8"))[:3] == [
        "to", "be", "fair",
    ]  # fmt: skip
    by_name = {}
    for name in ("negative", "positive"):
        assert main([*common, "--of", name, "--output", "json"]) == 0
        by_name[name] = json.loads(capsys.readouterr().out)
        assert by_name[name]["label"] == name
    # Of two classes one is against what the other is for.
    np.testing.assert_allclose(
        by_name["negative"]["scores"], np.negative(by_name["positive"]["scores"]), atol=1e-5
    )
    for wrong, message in (
        (
            [*common, "--of", "neutral"],
            "expected an empty text or one of negative, positive; got neutral",
        ),
        ([*common, "--picture", "x.png"], "--picture is for gates"),
        (["explain", "--url", url, "--html", "x.html", TEXT], "need --attribution"),
    ):
        assert main(wrong) == 2
        assert message in capsys.readouterr().err


def first_score(version, signature):
    """Of the Keras model, to the request in these lines."""
    sent = example_request(version, signature)
    for request in read_golden(version):
        if request["signature_name"] != signature:
            continue
        rows = request.get("examples") or list(zip(*request["inputs"].values(), strict=True))
        wanted = sent.get("examples") or list(zip(*sent["inputs"].values(), strict=True))
        if wanted[0] in rows:
            return request["outputs"]["scores"][rows.index(wanted[0])][0]
    raise AssertionError(sent)


PROGRAMS = ("curl", "h2load")


def without(kind):
    """Skip where the program that the lines start is not installed."""
    absent = kind in PROGRAMS and shutil.which(kind) is None
    return pytest.mark.skipif(absent, reason=f"{kind} is not installed")


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=without(kind)) for kind in KINDS])
def test_example_requests_work(kind, deployed, exports, tmp_path, capsys):
    """Each in its own shell or interpreter, as if pasted by a user."""
    for signature in ("serving_default", "classify") if kind != "client" else ("step",):
        address = deployed.rest.removeprefix("http://")  # which is added
        arguments = ["--signature", signature, "--only", kind, "--rest", address]
        arguments += ["--grpc", deployed.grpc, str(exports.root / "one")]
        assert main(["example-request", *arguments]) == 0
        lines = capsys.readouterr().out.replace("-D 10", "-D 1")
        command = ["sh", "-ec", lines] if kind in PROGRAMS else [sys.executable, "-c", lines]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        if kind == "h2load":
            counts = re.findall(r"(\d+) succeeded, 0 failed, 0 errored", done.stdout)
            assert len(counts) == 2, lines + done.stdout
            assert min(map(int, counts)) > 10, done.stdout
            continue
        score = first_score(exports.version("one"), signature)
        assert f"{score:.8f}"[:6] in done.stdout, done.stdout


def test_example_request_of_no_signature(exports, capsys):
    assert main(["example-request", str(exports.root / "one"), "--signature", "nix"]) == 2
    assert "--signature: expected one of ['attribution', 'classify'" in capsys.readouterr().err


def test_the_served_classifier_is_as_accurate_as_its_run(url, exports, capsys):
    run = exports.runs["both"]
    asked = ["--url", url, "--model", "both"]
    assert served_accuracy([str(run.path), *asked]) == 0
    accuracy = f"{run.metrics['model']['test']['accuracy']:.2%}"
    assert f"60 test rows: accuracy {accuracy} served, {accuracy} in the run" in (
        capsys.readouterr().out
    )
    with pytest.raises(SystemExit, match="2"):
        served_accuracy([str(run.path), "--url", url, "--model", "nix"])
    assert "nix" in capsys.readouterr().err


def test_example_requests_take_the_addresses_of_other_commands(exports, capsys):
    for scheme, lines in (
        ("grpc", ("connect('grpc://h:1')", "grpc.insecure_channel('h:1')", " http://h:1/")),
        ("grpcs", ("connect('grpcs://h:1')", "grpc.secure_channel('h:1', ", " https://h:1/")),
    ):
        address = f"{scheme}://h:1"
        assert main(["example-request", str(exports.root / "one"), "--grpc", address]) == 0
        said = capsys.readouterr().out
        assert [line for line in lines if line not in said] == []


@pytest.mark.parametrize("signature", ["serving_default", "classify"])
def test_the_frame_for_h2load_is_a_request(signature, deployed, exports, capsys):
    """Its five bytes of prefix are gRPC's, and the rest is a message that the server answers."""
    model = str(exports.root / "one")
    assert main(["example-request", model, "--signature", signature, "--only", "h2load"]) == 0
    lines = capsys.readouterr().out.splitlines()
    frame = base64.b64decode(next(line.split()[1] for line in lines if line.startswith("echo ")))
    assert frame[:5] == b"\0" + (len(frame) - 5).to_bytes(4, "big")
    (path,) = re.findall(r"http://localhost:8500(/\S+)", lines[-1])
    with grpc.insecure_channel(deployed.grpc) as channel:
        answer = channel.unary_unary(path)(frame[5:], timeout=30)
    assert b"negative" in answer or b"positive" in answer


@pytest.mark.long
def test_inspect_and_diff(exports, capsys):
    assert main(["inspect", str(exports.root / "one")]) == 0
    said = capsys.readouterr().out
    assert "-> state: float [?, 25]" in said
    assert "portable and pure" in said
    assert "curl -sS -d" in said
    assert main(["inspect", str(exports.version("both")), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["card"]["task"] == "sentiment"
    assert found["golden_requests"]["gates"] == 2
    assert found["signatures"]["serving_default"]["inputs"] == {"text": "string [?]"}
    model = exports.runs["both"].load_model()
    assert found["numbers"] >= model.count_params()

    one, both = str(exports.version("one")), str(exports.version("both"))
    assert main(["diff", one, one]) == 0
    capsys.readouterr()
    assert main(["diff", one, both, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert "step: only in the old version" in found["signatures"]
    outputs = {(o["signature"], o["output"]): o for o in found["outputs"]}
    assert outputs["serving_default", "scores"]["differing"] > 0
    assert outputs["gates", "tokens"]["differing"] == 0
    assert outputs["gates", "state"]["shapes_differ"]
    assert main(["diff", one, str(exports.root / "nix")]) == 2
    assert "expected the directory of a version" in capsys.readouterr().err


@pytest.mark.long
def test_publish_and_prune(exports, tmp_path, capsys):
    target = tmp_path / "models" / "one"
    source = str(exports.root / "one")
    assert main(["publish", source, "--to", str(target)]) == 0
    assert "golden requests answered as at export" in capsys.readouterr().out
    assert main(["publish", source, "--to", str(target), "--as", "7", "--unverified"]) == 0
    assert main(["publish", source, "--to", str(target), "--as", "7", "--unverified"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["publish", source, "--to", str(target), "--unverified", "--keep", "0"]) == 2
    assert main(["publish", source, "--to", str(target), "--unverified", "--keep", "2"]) == 0
    assert sorted(child.name for child in target.iterdir()) == ["7", "8"]
    assert main(["verify", str(target)]) == 0

    assert main(["publish", source, "--to", str(target / "7")]) == 2
    assert f"got a version (with a saved_model.pb); its base path is {target}\n" in (
        capsys.readouterr().err
    )
    assert not list((target / "7").glob(".publish*"))

    broken = tmp_path / "broken"
    shutil.copytree(exports.version("one"), broken / "1")
    retouch(broken / "1")
    assert main(["publish", str(broken), "--to", str(target)]) == 2
    assert "/variables/variables." in capsys.readouterr().err
    (broken / "1" / DIGESTS).unlink()
    assert main(["publish", str(broken), "--to", str(target)]) == 1
    assert sorted(child.name for child in target.iterdir()) == ["7", "8"]
    capsys.readouterr()

    config = tmp_path / "models.config"
    config.write_text(
        f'model_config_list {{ config {{ name: "m" base_path: "{target}" '
        'model_platform: "tensorflow" version_labels { key: "stable" value: 7 } } }'
    )
    prune = ["prune", str(target), "--keep", "1"]
    assert main([*prune, "--config", str(config)]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"
    assert main([*prune, "--dry-run"]) == 0
    assert capsys.readouterr().out == f"would remove {target / '7'}\n"
    assert main(prune) == 0
    assert sorted(child.name for child in target.iterdir()) == ["8"]
    assert main(["prune", str(target), "--keep", "0"]) == 2
    assert "expected at least 1" in capsys.readouterr().err
    assert main(["prune", str(tmp_path / "nix"), "--keep", "1"]) == 2
