"""`gru-serve export`: what it publishes, and why it refuses to."""

import json
import os
import shlex
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.__main__ import main as serve
from gru_serving.commands.export import main
from gru_serving.storage.publishing import LOCK, publisher
from gru_training.sentiment.served.servable import SentimentServable


@pytest.fixture(scope="module")
def small(exports):
    """A run that is cheap to export."""
    return exports.runs["both"]


@pytest.mark.slow
def test_next_export_takes_the_next_number_and_old_ones_go(small, tmp_path, capsys):
    models = tmp_path / "Zoë's both"
    for taken in ("6", "7"):
        (models / taken).mkdir(parents=True)
    assert main([str(small.path), "--to", str(models), "--keep", "2"]) == 0
    assert (models / "8" / "saved_model.pb").is_file()
    said = capsys.readouterr().out
    (line,) = (line for line in said.splitlines() if line.startswith("next "))
    assert shlex.split(line)[-2:] == ["--model_name=Zoë's both", f"--model_base_path={models}"]
    assert f"removed {models / '6'}" in said
    assert sorted(child.name for child in models.iterdir()) == ["7", "8"]


@pytest.mark.slow
def test_model_that_answers_differently_is_not_published(small, tmp_path, monkeypatch, capsys):
    honest = SentimentServable.golden

    def tampered(self):
        requests = honest(self)
        one = next(request for request in requests if request.signature == "classify")
        one.outputs["scores"][0, 0] += 0.01
        return requests

    monkeypatch.setattr(SentimentServable, "golden", tampered)
    assert main([str(small.path), "--to", str(tmp_path / "m")]) == 2
    message = capsys.readouterr().err
    assert "does not answer as the Keras model" in message
    assert "(classify), output 'scores', row 0" in message
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_check_that_dies_names_the_signal(small, tmp_path, monkeypatch, capsys):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    monkeypatch.setenv(
        "PYTHONPATH", str(tmp_path)
    )  # every Python process started from here dies of it
    assert main([str(small.path), "--to", str(tmp_path / "m")]) == 2
    message = capsys.readouterr().err
    assert "checks its answers died of SIGSEGV" in message
    assert "as the Keras model" not in message
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_streaming_that_differs_is_not_published(exports, tmp_path, monkeypatch, capsys):
    for answer, said in ((0.6, "1.0e-01"), (np.nan, "nan")):
        pairs = [(np.full((2, 2), 0.5), np.full((2, 2), 0.5)), (np.array([[0.5]]), [[answer]])]
        streamed = [tuple(map(np.asarray, pair)) for pair in pairs]
        monkeypatch.setattr(SentimentServable, "streamed", lambda _, of=streamed: iter(of))
        assert main([str(exports.runs["one"].path), "--to", str(tmp_path / "m")]) == 2
        assert f"streaming differs from the sequence by {said}" in capsys.readouterr().err
        assert not (tmp_path / "m").exists()


def test_second_publisher_is_refused_and_a_dead_one_is_not_in_the_way(small, tmp_path, capsys):
    (tmp_path / ".publish-left").mkdir()
    with publisher(tmp_path) as aside:
        assert not (tmp_path / ".publish-left").exists()
        assert main([str(small.path), "--to", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert f"another process is publishing to it (process {os.getpid()})" in error
        assert "try again" in error
        assert aside.is_dir()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK).write_text("process 1")  # left behind by a killed process
    with publisher(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_run_of_another_major_version_is_refused(small, tmp_path, capsys):
    shutil.copytree(small.path, tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    values = json.loads(config.read_text())
    values["keras_gru"] = "7.1.0"
    config.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n")
    manifest = tmp_path / "run" / "manifest.json"
    sizes = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**sizes, "config.json": config.stat().st_size}))
    assert main([str(tmp_path / "run"), "--to", str(tmp_path / "models")]) == 2
    said = capsys.readouterr().err
    assert "got one of 7.1.0; train again with this version" in said


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (shutil.rmtree, "there is no run directory"),
        (lambda run: (run / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda run: (run / "model.keras").unlink(), "model.keras is missing"),
        (lambda run: os.truncate(run / "model.keras", 100), "model.keras has 100 bytes"),
    ],
)
def test_incomplete_run_is_refused(small, tmp_path, capsys, break_it, words):
    shutil.copytree(small.path, tmp_path / "run")
    break_it(tmp_path / "run")
    assert main([str(tmp_path / "run"), "--to", str(tmp_path / "models")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "models").exists()


def test_target_that_cannot_be_written(small, tmp_path, capsys):
    (tmp_path / "file").write_text("not a directory")
    assert main([str(small.path), "--to", str(tmp_path / "file" / "models")]) == 2
    error = capsys.readouterr().err
    assert "--to" in error
    assert "expected a directory that can be written" in error
    assert "Traceback" not in error


def test_full_disk_is_told_and_leaves_nothing(small, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", full)
    assert main([str(small.path), "--to", str(tmp_path)]) == 2
    assert f"--to {tmp_path}: writing failed: No space left" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sigterm_removes_what_was_written(small, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def terminated(*_, **__):
        assert list(tmp_path.iterdir()) != []
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(tf.saved_model, "save", terminated)
    assert serve(["export", str(small.path), "--to", str(tmp_path)]) == 130
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before
