"""Sessions that stream a series tick by tick, on a model made with plain TensorFlow."""

import json

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.client.streaming import StreamingSession, StreamState
from gru_serving.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ServingError,
    Unavailable,
)
from tests.ports import free_ports
from tests.serving.servers import running, wait_until

TICKS = [[1.0, 10.0], [3.0, -4.0], [2.0, 0.5], [6.0, 6.0]]
MEANS = np.cumsum(TICKS, axis=0) / np.arange(1, 5)[:, None]


class Mean(tf.Module):
    """The mean of all ticks so far, times a factor; the state is the sum and the count."""

    def __init__(self, factor):
        super().__init__()
        self.factor = tf.Variable(factor)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32, name="tick"),
            tf.TensorSpec([None, 3], tf.float32, name="state"),
        ]
    )
    def step(self, tick, state):
        after = state + tf.concat([tick, tf.ones_like(tick[:, :1])], 1)
        return {"mean": self.factor * after[:, :2] / after[:, 2:], "state": after}


def save(directory, factor):
    module = Mean(factor)
    tf.saved_model.save(
        module, str(directory), signatures={"serving_default": module.step, "step": module.step}
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    directory = tmp_path_factory.mktemp("base") / "series"
    save(directory / "1", 1.0)
    return directory


CONFIG = """
model_config_list {{ config {{
  name: "series" base_path: "{base}" model_platform: "tensorflow"
  version_labels {{ key: "live" value: {live} }}
}} }}
"""


@pytest.fixture(scope="module")
def config(base, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "models.config"
    path.write_text(CONFIG.format(base=base, live=1))
    return path


@pytest.fixture(scope="module")
def server(config, tmp_path_factory):
    flags = (
        f"--model_config_file={config}",
        "--model_config_file_poll_wait_seconds=1",
        "--allow_version_labels_for_unavailable_models",
    )
    with running(tmp_path_factory.mktemp("server") / "log", *flags) as server:
        yield server


def test_ticks(url):
    with connect(url) as client:
        session = StreamingSession(client, "series")
        for tick, mean in zip(TICKS, MEANS, strict=True):
            answer = session.feed(np.array(tick))
            np.testing.assert_allclose(answer.outputs["mean"], [mean], rtol=1e-6)
        saved = session.saved
        assert list(saved.history) == TICKS
        for wrong in ([1.0], "text", [[1.0, 2.0]]):
            with pytest.raises(InvalidArgument, match="expected a list of 2 numbers, one for each"):
                session.feed(wrong)
        assert session.saved == saved  # a failed step leaves the session unchanged


def test_ticks_on_the_command_line(url, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", iter([f"{json.dumps(tick)}\n" for tick in TICKS]))
    common = ["stream", "--url", url, "--model", "series", "--ticks"]
    assert main([*common, "--output", "json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose([line["mean"] for line in told], MEANS, rtol=1e-6)
    assert [line["fed"] for line in told] == TICKS


def test_gaps_and_rows_that_were_fed_before_are_noted(url, capsys, tmp_path):
    path, days = tmp_path / "s.csv", ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-05"]
    rows = [f"{day},{up},{down}\n" for day, (up, down) in zip(days, TICKS, strict=True)]
    state = ["--state", str(tmp_path / "state.json")]
    common = ["stream", "--url", url, "--model", "series", *state, "--csv", str(path)]
    path.write_text("".join(["day,up,down\n", *rows[:3]]))
    assert main(common) == 0
    assert not capsys.readouterr().err
    path.write_text("".join(["day,up,down\n", *rows]))
    assert main(common) == 0
    said = capsys.readouterr().err
    assert "2024-01-03 and 2024-01-05 are 2 days" in said
    assert "its first 3 rows were fed before and are fed again" in said


def test_states_of_another_model_are_refused(url):
    with connect(url, retries=0) as client:
        foreign = StreamState("series", 1, "step", "", 5, (0.0,) * 7, None)
        with pytest.raises(FailedPrecondition, match="has 7 numbers, that of version 1"):
            StreamingSession.resume(client, foreign).feed(TICKS[0])
        gone = StreamState("series", 9, "step", "", 5, (0.0,) * 3, None)
        with pytest.raises(FailedPrecondition, match="belongs to version 9 of series"):
            StreamingSession.resume(client, gone).feed(TICKS[0])
        with pytest.raises(InvalidArgument, match="has no signature 'nix'"):
            StreamingSession(client, "series", signature="nix").feed(TICKS[0])


def test_patience_ends():
    (port,) = free_ports(1)
    with connect(f"localhost:{port}", retries=0) as client, pytest.raises(Unavailable):
        StreamingSession(client, "series", patience=0.7).feed(TICKS[0])


def test_replay_on_another_version(base, config, server, tmp_path):
    with connect(server.rest) as rest, connect(server.grpc) as grpc:
        sessions = [StreamingSession(client, "series") for client in (rest, grpc)]
        labelled = StreamingSession(grpc, "series", label="live")
        for session in (*sessions, labelled):
            for tick in TICKS[:2]:
                session.feed(tick)
        saved = sessions[0].saved
        save(tmp_path / "aside", 100.0)
        (tmp_path / "aside").rename(base / "2")
        wait_until(lambda: [s.state for s in rest.status("series")] == ["AVAILABLE", "END"])
        # The saved state is that of version 1 after two ticks.
        sessions.append(StreamingSession.resume(grpc, StreamState.from_json(saved.to_json())))
        for session in sessions:
            answer = session.feed(TICKS[2])
            assert (answer.version, answer.replayed, answer.steps) == (2, True, 3)
            np.testing.assert_allclose(answer.outputs["mean"], [100 * MEANS[2]], rtol=1e-6)
            assert list(session.saved.history) == TICKS[:3]
            answer = session.feed(TICKS[3])
            assert (answer.version, answer.replayed, answer.steps) == (2, False, 4)
            np.testing.assert_allclose(answer.outputs["mean"], [100 * MEANS[3]], rtol=1e-6)
        # A session that follows a label waits for it to move, and is unchanged until then.
        before = labelled.saved
        labelled = StreamingSession.resume(grpc, StreamState.from_json(before.to_json()))
        for _ in range(2):
            with pytest.raises(NotFound, match=r"Specific\(series, 1\)"):
                labelled.feed(TICKS[2])
            assert labelled.saved == before
        config.write_text(CONFIG.format(base=base, live=2))
        wait_until(lambda: label_serves(grpc))
        answer = labelled.feed(TICKS[2])
        assert (answer.version, answer.replayed, answer.steps) == (2, True, 3)
        np.testing.assert_allclose(answer.outputs["mean"], [100 * MEANS[2]], rtol=1e-6)
        assert labelled.saved.label == "live"


def label_serves(client):
    try:
        return client.metadata("series", label="live").version == 2
    except ServingError:
        return False
