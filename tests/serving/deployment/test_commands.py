"""Commands that show, explain, load and publish an exported classifier."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.sentiment.served import main as served_accuracy
from gru_serving.__main__ import main
from gru_serving.commands.example_request import KINDS, example_request
from gru_serving.release.golden import read_golden
from gru_serving.storage.digests import FILE as DIGESTS
from tests.serving.conftest import REPOSITORY, curl_only
from tests.serving.deployment.classifier import TEXT, retouch


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


def test_explain_by_attribution(url, tmp_path, capsys):
    page = tmp_path / "why.html"
    common = ["explain", "--url", url, "--model", "both", "--attribution", TEXT]
    assert main([*common, "--html", str(page)]) == 0
    *rows, total, _ = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in rows[:4]] == ["token", "to", "be", "fair"]
    shares = [float(line.split()[1]) for line in rows[1:]]
    assert float(re.search(r"add up to (\S+)", total)[1]) == pytest.approx(sum(shares), abs=0.01)
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


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=curl_only if kind == "curl" else ()) for kind in KINDS]
)
def test_example_requests_work(kind, deployed, exports, capsys):
    """Each in its own shell or interpreter, as if pasted by a user."""
    for signature in ("serving_default", "classify") if kind != "client" else ("step",):
        arguments = ["--signature", signature, "--only", kind, "--rest", deployed.rest]
        arguments += ["--grpc", deployed.grpc, str(exports.root / "one")]
        assert main(["example-request", *arguments]) == 0
        lines = capsys.readouterr().out
        command = ["sh", "-c", lines] if kind == "curl" else [sys.executable, "-c", lines]
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
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


@pytest.mark.parametrize("extra", [[], ["--rate", "60", "--processes", "2"]])
def test_load_test_command(url, exports, tmp_path, capsys, extra):
    report, picture = tmp_path / "load.json", tmp_path / "load.png"
    arguments = ["load-test", "--url", url, "--model", "one", "--golden", str(exports.root / "one")]
    arguments += ["--seconds", "1", "--warmup", "0.3", "--json", str(report), *extra]
    assert main([*arguments, "--plot", str(picture), "--concurrency", "4"]) == 0
    figures = json.loads(report.read_text())
    assert figures["requests"] == figures["ok"] > 10
    assert figures["errors"] == {}
    latency = figures["latency"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"] < 10_000
    if extra:
        assert figures["loop"] == "open"
        assert 25 <= figures["requests"] <= 110
        assert latency["mean"] >= figures["service"]["mean"]
    else:
        assert 0 < figures["throughput"] <= figures["ok"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "answers/s" in capsys.readouterr().out


def test_load_test_refuses(url, capsys):
    arguments = ["load-test", "--url", url, "--model", "one", "--seconds", "0.5", "--warmup", "0"]
    assert main([*arguments, "--golden", "x", "good"]) == 2
    assert "got both" in capsys.readouterr().err
    assert main([*arguments, "--processes", "9", "good"]) == 2
    assert "processes: expected 1 up to the concurrency" in capsys.readouterr().err


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
