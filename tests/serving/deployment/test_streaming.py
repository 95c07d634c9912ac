"""Sessions of an exported classifier on a live server."""

import json
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest

from gru_serving.__main__ import main
from gru_serving.client import connect, connect_async
from gru_serving.client.results import Explanation, Sentiment
from gru_serving.client.streaming import AsyncStreamingSession, StreamingSession, StreamState
from gru_serving.errors import FailedPrecondition, InvalidArgument, NotFound
from tests.ports import free_ports
from tests.serving.deployment.classifier import TEXT, scores_so_far
from tests.serving.servers import start, wait_until


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


@pytest.mark.slow_cases
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
    with pytest.raises(InvalidArgument, match="not a saved streaming state"):
        StreamState.from_json('{"model": "one"}')


@pytest.mark.slow_cases
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
