"""An exported classifier on a live server: verified, streamed, explained, loaded."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.sentiment.served import main as served_accuracy
from serving.__main__ import main
from serving.client import connect, connect_async
from serving.client.results import Explanation, Sentiment
from serving.client.streaming import AsyncStreamingSession, StreamingSession, StreamState
from serving.commands.example_request import KINDS, example_request
from serving.engine.predictor import Predictor
from serving.errors import FailedPrecondition, InvalidArgument, NotFound
from serving.release.golden import read_golden
from serving.storage.digests import FILE as DIGESTS
from tests.ports import free_ports

from .conftest import REPOSITORY, curl_only, running, start, wait_until

TEXT = "To be fair, at first it isn't dull, but then the script is not funny."
CONFIG = """
model_config_list {{
  config {{ name: "one" base_path: "{root}/one" model_platform: "tensorflow" }}
  config {{ name: "both" base_path: "{root}/both" model_platform: "tensorflow" }}
}}
"""


@pytest.fixture(scope="module")
def deployed(exports, tmp_path_factory):
    directory = tmp_path_factory.mktemp("deployed")
    config = directory / "models.config"
    config.write_text(CONFIG.format(root=exports.root))
    with running(directory / "log", f"--model_config_file={config}") as server:
        yield server


@pytest.fixture(params=["rest", "grpc"])
def url(request, deployed):
    return getattr(deployed, request.param)


def scores_so_far(exports, words):
    """The sequence signature's answer to every prefix of a text."""
    predictor = Predictor(exports.version("one"))
    texts = [" ".join(words[:count]).encode() for count in range(1, len(words) + 1)]
    return [predictor.predict({"text": np.array([text], object)})["scores"][0] for text in texts]


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
    assert re.search(r"\(serving_default\), output 'label', row 0: expected .* got", said)


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
    with running(tmp_path / "log", "--model_name=one", f"--model_base_path={base}") as server:
        for url in (server.rest, server.grpc):
            assert main(["verify", str(version), "--url", url]) == 1
            assert "(serving_default), output" in capsys.readouterr().err


def retouch(version):
    """Change a weight and write the variables again."""
    prefix = str(version / "variables" / "variables")
    reader = tf.train.load_checkpoint(prefix)
    tensors = {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}
    changed = next(
        n for n, v in tensors.items() if isinstance(v, np.ndarray) and v.dtype == np.float32
    )
    tensors[changed] = tensors[changed] + np.float32(0.05)
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[name]) for name in names],
    )


def test_typed_results(url):
    with connect(url) as client:
        results = Sentiment.from_outputs(client.predict([TEXT, "good"], "both"))
        assert [type(one.label) for one in results] == [str, str]
        assert results[0].probability == pytest.approx(results[0].scores.max())
        outputs = client.predict([TEXT, "good"], "both", signature="gates")
        explanation, short = Explanation.from_outputs(outputs)
        assert short.tokens == ("good",)
        assert "n't" in explanation.tokens
        steps = len(explanation.tokens)
        assert explanation.update_gate.shape == (steps, 1, 2, 8)
        assert explanation.scores.shape == (steps, 2)
        with pytest.raises(FailedPrecondition, match="expected a model with the outputs"):
            Sentiment.from_outputs(outputs)


def test_session_equals_the_sequence(url, exports):
    words = TEXT.split()
    with connect(url) as client:
        session = StreamingSession(client, "one")
        assert session.version is None
        for word, expected in zip(words, scores_so_far(exports, words), strict=True):
            answer = session.feed(word)
            np.testing.assert_allclose(answer.outputs["scores"][0], expected, atol=1e-6)
            assert answer.version == session.version == 1
        assert session.saved.steps == len(words)


def test_session_is_kept_and_resumed_by_another_client(deployed, exports):
    words = TEXT.split()
    with connect(deployed.rest) as client:
        session = StreamingSession(client, "one")
        for word in words[:5]:
            session.feed(word)
        text = session.saved.to_json()
    saved = StreamState.from_json(text)
    assert saved == session.saved
    with connect(deployed.grpc) as client:
        resumed = StreamingSession.resume(client, saved)
        for word in words[5:]:
            answer = resumed.feed(word)
    assert answer.steps == len(words)
    expected = scores_so_far(exports, words)[-1]
    np.testing.assert_allclose(answer.outputs["scores"][0], expected, atol=1e-6)
    with pytest.raises(InvalidArgument, match="no saved streaming state"):
        StreamState.from_json('{"model": "one"}')


def test_async_session_and_client(url, exports):
    import asyncio

    words = TEXT.split()

    async def stream():
        async with connect_async(url) as client:
            session = AsyncStreamingSession(client, "one")
            answers = [await session.feed(word) for word in words]
            texts = [" ".join(words[:count]) for count in range(1, len(words) + 1)]
            many = await asyncio.gather(*(client.predict([text], "one") for text in texts))
            rows = await client.classify([{"text": TEXT}], "one", signature="classify")
            assert (await client.metadata("one")).version == 1
            assert [one.state for one in await client.status("one")] == ["AVAILABLE"]
            return answers, many, rows

    answers, many, rows = asyncio.run(stream())
    expected = scores_so_far(exports, words)
    for answer, one, wanted in zip(answers, many, expected, strict=True):
        np.testing.assert_allclose(answer.outputs["scores"][0], wanted, atol=1e-6)
        np.testing.assert_allclose(one["scores"][0], wanted, atol=1e-6)
    np.testing.assert_allclose([score for _, score in rows[0]], expected[-1], atol=1e-6)


def test_model_that_reads_both_ways_cannot_stream(url):
    with connect(url) as client:
        with pytest.raises(InvalidArgument, match="--no-bidirectional, without --ngrams"):
            StreamingSession(client, "both").feed("good")
        with pytest.raises(FailedPrecondition, match="no state before its first step"):
            _ = StreamingSession(client, "one").saved


@pytest.mark.slow
def test_session_survives_a_restart_and_a_version_swap(exports, tmp_path):
    base = tmp_path / "m"
    base.mkdir()
    shutil.copytree(exports.version("one"), base / "1")
    port, rest_port = free_ports(2)
    flags = (
        f"--port={port}",
        f"--rest_api_port={rest_port}",
        "--model_name=m",
        f"--model_base_path={base}",
    )
    servers = []

    def serve():
        servers.append(start(*flags, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    words = TEXT.split()
    expected = scores_so_far(exports, words)
    try:
        serve()
        with connect(f"localhost:{port}") as client:
            session = StreamingSession(client, "m", patience=90)
            forgetful = StreamingSession(client, "m", patience=90, keep_history=False)
            pinned = StreamingSession(client, "m", version=1, patience=90)
            for word in words[:4]:
                session.feed(word)
            forgetful.feed(words[0])
            pinned.feed(words[0])
            servers[0].send_signal(signal.SIGKILL)
            servers[0].wait()
            timer = threading.Timer(1.0, serve)
            timer.start()
            answer = session.feed(words[4])
            timer.join()
            np.testing.assert_allclose(answer.outputs["scores"][0], expected[4], atol=1e-6)
            assert (answer.version, answer.steps, answer.replayed) == (1, 5, False)

            (tmp_path / "aside").mkdir()
            shutil.copytree(exports.version("one"), tmp_path / "aside" / "2")
            (tmp_path / "aside" / "2").rename(base / "2")
            wait_until(lambda: [s.state for s in client.status("m")] == ["AVAILABLE", "END"])
            answer = session.feed(words[5])
            np.testing.assert_allclose(answer.outputs["scores"][0], expected[5], atol=1e-6)
            assert (answer.version, answer.steps, answer.replayed) == (2, 6, True)
            answer = session.feed(words[6])
            np.testing.assert_allclose(answer.outputs["scores"][0], expected[6], atol=1e-6)
            assert (answer.version, answer.steps, answer.replayed) == (2, 7, False)
            gone = "state belongs to version 1 of m, which no longer serves"
            with pytest.raises(FailedPrecondition, match=gone):
                forgetful.feed(words[1])
            with pytest.raises(NotFound, match="Specific"):
                pinned.feed(words[1])
    finally:
        for server in servers:
            server.kill()
            server.wait()


def test_stream_command(url, tmp_path, capsys, monkeypatch):
    state = tmp_path / "s.json"
    common = ["stream", "--url", url, "--model", "one", "--state", str(state)]
    assert main([*common, "to be fair"]) == 0
    state.chmod(0o600)
    assert main([*common, "--output", "json", "but dull"]) == 0
    assert state.stat().st_mode & 0o777 == 0o600
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["to", "be", "fair"]
    last = json.loads(lines[-1])
    assert last["fed"] == "dull"
    assert last["version"] == 1
    with connect(url) as client:
        whole = client.predict(["to be fair but dull"], "one")
    np.testing.assert_allclose(last["scores"], whole["scores"][0], atol=1e-6)
    assert main([*common[:-1], str(tmp_path / "t.json"), "--ticks", "nix"]) == 2
    assert "expected a JSON number or list" in capsys.readouterr().err
    assert main(["stream", "--url", url, "--model", "one", "b\udcffd"]) == 2
    assert "expected UTF-8; text 1 has the byte 0xff at character 2" in capsys.readouterr().err


def test_a_state_that_cannot_be_kept_is_said_at_once(tmp_path, capsys):
    state = tmp_path / "nix" / "s.json"
    assert main(["stream", "--url", "grpc://localhost:1", "--state", str(state), "a"]) == 2
    said = f"gru-serve stream: --state {state}: there is no directory {state.parent}\n"
    assert capsys.readouterr().err == said


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
    assert "--signature: expected one of ['classify'" in capsys.readouterr().err


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
