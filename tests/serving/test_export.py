"""From a real, tiny training run to a version on disk."""

import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

import serving.export
from serving.__main__ import main as serve
from serving.batch_scheduler import BatchScheduler
from serving.batching import BatchingSession
from serving.batching_options import BatchingOptions, PoolOptions
from serving.coerce import coerce
from serving.export_command import main
from serving.portability import portability_faults
from serving.predictor import Predictor
from serving.session import GraphSession
from serving.verify import GOLDEN, VerificationError, WrongAnswerError, read_golden, replay
from serving.verify import main as verify
from training.config import DataConfig, ModelConfig, RunConfig, SentimentConfig, TrainingConfig
from training.sentiment import train_sentiment


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = SentimentConfig(
        data=DataConfig(reviews=600),
        model=ModelConfig(embedding_size=8, units=8),
        training=TrainingConfig(epochs=1),
        run=RunConfig(runs_dir=tmp_path_factory.mktemp("runs"), name="tiny"),
    )
    return train_sentiment(config)


@pytest.fixture(scope="module")
def version(run, tmp_path_factory):
    models = tmp_path_factory.mktemp("models") / "sentiment"
    assert main([str(run.path), "--to", str(models)]) == 0
    assert [child.name for child in models.iterdir()] == ["1"]
    return models / "1"


def test_labels_of_all_held_out_rows_equal_the_keras_model(run, version):
    rows = list(run.test_predictions())
    predictor = Predictor(version)
    texts = np.array([row.text.encode() for row in rows], object)
    answers = predictor.predict({"text": texts})
    assert [label.decode() for label in answers["label"]] == [row.predicted for row in rows]
    np.testing.assert_allclose(answers["scores"], [row.scores for row in rows], atol=1e-5)
    np.testing.assert_array_equal(answers["probability"], answers["scores"].max(-1))


def test_answer_does_not_depend_on_neighbours(run, version):
    predictor = Predictor(version)
    texts = [row.text.encode() for row in run.test_predictions()][:20]
    texts += [b"", b"\xff\xfe", "très bon 映画".encode(), b"word " * 500]
    together = predictor.predict({"text": np.array(texts, object)})["scores"]
    alone = [predictor.predict({"text": np.array([text], object)})["scores"][0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_answer_does_not_depend_on_who_shares_its_batch(run, version):
    texts = [row.text.encode() for row in run.test_predictions()][:60]
    texts += [b"", b"\xff\xfe", "très bon 映画".encode(), b"word " * 300]
    alone = Predictor(version)
    scheduler = BatchScheduler(PoolOptions(2))
    options = BatchingOptions(max_batch_size=16, allowed_batch_sizes=(4, 16))
    batched = Predictor(BatchingSession(GraphSession(version), scheduler, options))
    rng = np.random.default_rng(0)
    requests = [np.array(rng.choice(texts, rng.integers(1, 4)), object) for _ in range(64)]
    with ThreadPoolExecutor(16) as callers:
        answers = list(callers.map(lambda text: batched.predict({"text": text}), requests))
    for request, answer in zip(requests, answers, strict=True):
        expected = alone.predict({"text": request})
        assert answer["label"].tolist() == expected["label"].tolist()
        np.testing.assert_allclose(answer["scores"], expected["scores"], atol=1e-6)
    batched.close()
    scheduler.close()


def test_signature_is_the_contract(version):
    signature = Predictor(version).signatures["serving_default"]
    assert list(signature.inputs) == ["text"]
    assert sorted(signature.outputs) == ["label", "probability", "scores"]


def test_next_export_takes_the_next_number(run, version, capsys):
    models = version.parent
    (models / "7").mkdir()
    try:
        assert main([str(run.path), "--to", str(models)]) == 0
        assert (models / "8" / "saved_model.pb").is_file()
        assert f"--model_base_path={models}" in capsys.readouterr().out
    finally:
        shutil.rmtree(models / "7")
        shutil.rmtree(models / "8")


def test_model_that_answers_differently_is_not_published(run, tmp_path, monkeypatch, capsys):
    honest = serving.export._golden_requests

    def tampered(*arguments):
        requests = honest(*arguments)
        requests[1]["outputs"]["scores"][0][0] += 0.01
        return requests

    monkeypatch.setattr(serving.export, "_golden_requests", tampered)
    assert main([str(run.path), "--to", str(tmp_path / "m")]) == 2
    message = capsys.readouterr().err
    assert "does not answer as the Keras model" in message
    assert "request 1, output 'scores', row 0" in message
    assert list((tmp_path / "m").iterdir()) == []


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (shutil.rmtree, "there is no run directory"),
        (lambda run: (run / "manifest.json").unlink(), "manifest.json is missing"),
        (lambda run: (run / "model.keras").unlink(), "model.keras is missing"),
        (lambda run: os.truncate(run / "model.keras", 100), "model.keras has 100 bytes"),
    ],
)
def test_incomplete_run_is_refused(run, tmp_path, capsys, break_it, words):
    shutil.copytree(run.path, tmp_path / "run")
    break_it(tmp_path / "run")
    assert main([str(tmp_path / "run"), "--to", str(tmp_path / "models")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "models").exists()


def test_target_that_cannot_be_written(run, tmp_path, capsys):
    (tmp_path / "file").write_text("not a directory")
    assert main([str(run.path), "--to", str(tmp_path / "file" / "models")]) == 2
    error = capsys.readouterr().err
    assert "--to" in error
    assert "expected a directory that can be written" in error
    assert "Traceback" not in error


def test_verify_says_what_differs(version, tmp_path, capsys):
    assert verify([str(version)]) == 0
    assert "48 rows" in capsys.readouterr().out
    shutil.copytree(version, tmp_path / "1")
    golden = json.loads((version / GOLDEN).read_text("utf-8"))
    golden[2]["outputs"]["label"][1] = "neutral"
    (tmp_path / "1" / GOLDEN).write_text(json.dumps(golden), "utf-8")
    assert verify([str(tmp_path / "1")]) == 1
    assert "request 2, output 'label', row 1: expected b'neutral'" in capsys.readouterr().err
    (tmp_path / "1" / GOLDEN).unlink()
    assert verify([str(tmp_path / "1")]) == 2
    assert "golden.json: cannot be read" in capsys.readouterr().err


def test_debug_shows_where_verification_failed(tmp_path):
    with pytest.raises(VerificationError, match=r"golden\.json: cannot be read"):
        verify(["--debug", str(tmp_path)])


def test_full_disk_is_told_and_leaves_nothing(run, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", full)
    assert main([str(run.path), "--to", str(tmp_path)]) == 2
    assert f"--to {tmp_path}: writing failed: No space left" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sigterm_removes_what_was_written(run, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def terminated(*_, **__):
        assert list(tmp_path.iterdir()) != []
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(tf.saved_model, "save", terminated)
    assert serve(["export", str(run.path), "--to", str(tmp_path)]) == 130
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_replay_sees_shapes_missing_outputs_and_nan(version):
    golden = read_golden(version)
    right = Predictor(version)

    def altered(change):
        def predict(name, inputs):
            answers = dict(right.predict(coerce(inputs, right.find_signature(name)), name))
            change(answers)
            return answers

        return predict

    replay(golden, altered(dict.copy))
    for change, words in [
        (lambda a: a.pop("scores"), "missing"),
        (lambda a: a.update(scores=a["scores"][:, :1]), "expected shape"),
        (lambda a: a.update(scores=a["scores"] * np.nan), "expected array"),
    ]:
        with pytest.raises(WrongAnswerError, match=words):
            replay(golden, altered(change))


class Impure(tf.Module):
    """One signature per thing that must not be in an export."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def pure(self, x):
        return {"y": tf.map_fn(lambda v: v + self.count, x)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def random(self, x):
        return {"y": tf.map_fn(lambda v: v + tf.random.uniform(()), x)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def writes(self, x):
        self.count.assign_add(1.0)
        return {"y": x + self.count}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def python(self, x):
        return {"y": tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), (None,))}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def compiled(self, x):
        return {"y": tf.function(tf.sin, jit_compile=True)(x)}


def test_portability_faults_are_found(version, tmp_path):
    assert portability_faults(version) == []
    module = Impure()
    signatures = {
        name: getattr(module, name) for name in ("pure", "random", "writes", "python", "compiled")
    }
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    found = {}
    for fault in portability_faults(tmp_path):
        found.setdefault(fault.signature, set()).add(fault.reason)
    assert found == {
        "random": {"draws random numbers"},
        "writes": {"writes a variable"},
        "python": {"needs the Python process that made it"},
        "compiled": {"needs XLA, which TensorFlow Serving has off"},
    }
