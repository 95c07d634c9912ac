"""From a real, tiny training run to a version on disk."""

import json
import os
import shlex
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting as fingerprinting_pywrap

from keras_gru.introspection import gates_over_time
from serving.__main__ import main as serve
from serving.commands.export import main
from serving.commands.verify import main as verify
from serving.config.batching_options import BatchingOptions, PoolOptions
from serving.engine import warmup
from serving.engine.batching.scheduler import BatchScheduler
from serving.engine.batching.session import BatchingSession
from serving.engine.predictor import Predictor
from serving.engine.session import GraphSession
from serving.export.run import MODEL_CARD
from serving.protos.prediction_log_pb2 import PredictionLog
from serving.release.golden import (
    GOLDEN,
    VerificationError,
    WrongAnswerError,
    difference,
    local_engine,
    read_golden,
    replay,
)
from serving.storage.publishing import LOCK, publisher
from training.sentiment.served.servable import SentimentServable


@pytest.fixture(scope="module", params=["one", "both"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def run(exports, name):
    return exports.runs[name]


@pytest.fixture(scope="module")
def version(exports, name):
    return exports.version(name)


@pytest.fixture(scope="module")
def small(exports):
    """A run that is cheap to export."""
    return exports.runs["both"]


def test_labels_of_all_held_out_rows_equal_the_keras_model(run, version):
    rows = list(run.test_predictions())
    predictor = Predictor(version)
    texts = np.array([row.text.encode() for row in rows], object)
    answers = predictor.predict({"text": texts})
    assert [label.decode() for label in answers["label"]] == [row.predicted for row in rows]
    np.testing.assert_allclose(answers["scores"], [row.scores for row in rows], atol=1e-5)
    np.testing.assert_array_equal(answers["probability"], answers["scores"].max(-1))


def test_scores_of_every_signature_are_divided_by_the_temperature(run, version):
    text = next(row.text for row in run.test_predictions())
    logits = run.load_model()(run.preprocessor()(tf.constant([text]))).numpy()[0]
    assert abs(run.temperature.value - 1) > 0.05  # otherwise nothing would be seen
    powers = np.exp(logits.astype(np.float64) / run.temperature.value)
    expected = powers / powers.sum()
    signatures = tf.saved_model.load(str(version)).signatures
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(text.encode())
    found = {
        "serving_default": signatures["serving_default"](text=tf.constant([text]))["scores"],
        "classify": signatures["classify"](tf.constant([example.SerializeToString()]))["scores"],
        "gates": signatures["gates"](text=tf.constant([text]))["scores"][:, -1],
    }
    if "step" in signatures:
        state = tf.zeros((1, signatures["step"].structured_input_signature[1]["state"].shape[1]))
        for token in text.split():
            answer = signatures["step"](token=tf.constant([token]), state=state)
            state = answer["state"]
        found["step"] = answer["scores"]
    chosen = signatures["attribution"](text=tf.constant([text]), label=tf.constant(["positive"]))
    found["attribution"] = tf.sigmoid(chosen["value"] * [-1.0, 1.0])[tf.newaxis]
    assert found.keys() == set(signatures)
    for scores in found.values():
        np.testing.assert_allclose(scores.numpy()[0], expected, atol=1e-6)
    card = json.loads((version / MODEL_CARD).read_text("utf-8"))
    assert card["temperature"] == run.temperature.value


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


def test_signatures_are_the_contract(version, name):
    found = {
        name: (list(one.inputs), sorted(one.outputs), one.method_name.rpartition("/")[2])
        for name, one in Predictor(version).signatures.items()
        if not name.startswith("__")
    }
    gates = ["reset_gate", "scores", "state", "tokens", "update_gate"]
    expected = {
        "serving_default": (["text"], ["label", "probability", "scores"], "predict"),
        "classify": (["inputs"], ["classes", "scores"], "classify"),
        "gates": (["text"], gates, "predict"),
        "attribution": (
            ["label", "text"],
            ["attribution", "baseline", "label", "tokens", "value"],
            "predict",
        ),
    }
    if name == "one":
        outputs = ["label", "probability", "scores", "state"]
        expected["step"] = (["state", "token"], outputs, "predict")
    assert found == expected


def test_fingerprint_is_that_of_the_graph(version):
    """Even after the signatures got their methods, which changes the file."""
    stored = tf.saved_model.experimental.read_fingerprint(str(version))
    again = FingerprintDef.FromString(fingerprinting_pywrap.CreateFingerprintDef(str(version)))
    for name in (
        "saved_model_checksum",
        "graph_def_program_hash",
        "signature_def_hash",
        "saved_object_graph_hash",
        "checkpoint_hash",
    ):
        assert getattr(stored, name) == getattr(again, name) != 0


def test_every_signature_has_golden_and_warmup_requests(version):
    signatures = {n for n in Predictor(version).signatures if not n.startswith("__")}
    assert {request["signature_name"] for request in read_golden(version)} == signatures
    warmed = set()
    for record in tf.data.TFRecordDataset(str(version / warmup.FILE)).as_numpy_iterator():
        log = PredictionLog.FromString(record)
        request = getattr(log, log.WhichOneof("log_type")).request
        warmed.add(request.model_spec.signature_name)
    assert warmed == signatures
    assert warmup.replay(Predictor(version), version) >= 10


def test_gates_are_those_of_introspection(run, version):
    text = next(row.text for row in run.test_predictions())
    answer = Predictor(version).predict({"text": np.array([text.encode()], object)}, "gates")
    model = run.load_model()
    ids = run.preprocessor()(tf.constant([text]))
    assert [t.decode() for t in answer["tokens"][0]] == [
        t.decode() for t in run.preprocessor().tokens(tf.constant([text])).numpy()[0]
    ]
    layer = next(one for one in model.layers if "gru" in one.name or "bidirectional" in one.name)
    directions = [layer]
    if hasattr(layer, "forward_layer"):
        directions = [layer.forward_layer, layer.backward_layer]
    inputs = model.get_layer("embedding")(ids)
    for number, direction in enumerate(directions):
        activity = gates_over_time(direction, inputs)
        for output, wanted in (
            ("update_gate", activity.z), ("reset_gate", activity.r), ("state", activity.state)
        ):  # fmt: skip
            np.testing.assert_allclose(answer[output][:, :, 0, number], wanted, atol=1e-6)


def test_attributions_add_up_and_do_not_depend_on_neighbours(run, version):
    predictor = Predictor(version)
    texts = [*[row.text.encode() for row in run.test_predictions()][:8], b"", b"unknownword"]
    asked = {"text": np.array(texts, object), "label": np.array([b""] * len(texts), object)}
    together = predictor.predict(asked, "attribution")
    explained = together["value"] - together["baseline"]
    gap = np.abs(together["attribution"].sum(axis=1) - explained)
    assert (gap <= 0.05 * np.abs(explained) + 0.05).all()
    answers = predictor.predict({"text": asked["text"]})
    np.testing.assert_array_equal(together["label"], answers["label"])
    for row, text in enumerate(texts):
        one = {"text": np.array([text], object), "label": np.array([b""], object)}
        alone = predictor.predict(one, "attribution")["attribution"][0]
        np.testing.assert_allclose(together["attribution"][row, : len(alone)], alone, atol=1e-5)
    found = json.loads((version / MODEL_CARD).read_text("utf-8"))["attribution"]
    assert found["largest_gap"] < 0.1
    assert found["texts"] == 32


def test_streaming_equals_the_sequence_at_every_word(exports):
    predictor = Predictor(exports.version("one"))
    size = predictor.signatures["step"].inputs["state"].shape[1]
    rows = [row.text for row in exports.runs["one"].test_predictions()][:8]
    largest = 0.0
    for text in [*rows, "Don't <br />stop ... 映画 e\u0301t\u00e9 it's"]:
        state = np.zeros((1, size), np.float32)
        words = text.replace("<br />", "<br/>").split()
        for count, word in enumerate(words, 1):
            token = np.array([word.encode()], object)
            answer = predictor.predict({"token": token, "state": state}, "step")
            state = answer["state"]
            so_far = np.array([" ".join(words[:count]).encode()], object)
            scores = predictor.predict({"text": so_far})["scores"]
            largest = max(largest, np.abs(answer["scores"] - scores).max())
    assert largest <= 1e-6


def test_card_states_the_parity_of_streaming(version, name):
    card = json.loads((version / MODEL_CARD).read_text("utf-8"))
    assert card["streaming"] is (name == "one")
    if name == "one":
        assert card["streaming_parity"]["steps"] > 5
        assert card["streaming_parity"]["largest_difference"] <= 1e-6
    else:
        assert card["streaming_parity"] is None


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


def test_verify_says_what_differs(exports, tmp_path, capsys):
    version = exports.version("both")
    assert verify([str(version)]) == 0
    assert "64 rows" in capsys.readouterr().out
    shutil.copytree(version, tmp_path / "1")
    golden = json.loads((version / GOLDEN).read_text("utf-8"))
    golden[2]["outputs"]["label"][1] = "neutral"
    (tmp_path / "1" / GOLDEN).write_text(json.dumps(golden), "utf-8")
    assert verify([str(tmp_path / "1")]) == 1
    said = capsys.readouterr().err
    assert "request 2 (serving_default), output 'label', row 1: expected b'neutral'" in said
    (tmp_path / "1" / GOLDEN).unlink()
    assert verify([str(tmp_path / "1")]) == 2
    assert "golden.json: cannot be read" in capsys.readouterr().err
    assert verify([str(tmp_path / "nix")]) == 2
    assert "expected the directory of a version" in capsys.readouterr().err


def test_debug_shows_where_verification_failed(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(VerificationError, match=r"golden\.json: cannot be read"):
        verify(["--debug", str(tmp_path)])


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


def test_replay_sees_shapes_missing_outputs_and_nan(exports):
    golden = read_golden(exports.version("both"))
    right = local_engine(Predictor(exports.version("both")))

    def altered(change):
        def ask(request):
            answers = dict(right(request))
            change(answers)
            return answers

        return ask

    replay(golden, altered(dict.copy))
    for change, words in [
        (lambda a: a.pop("scores"), "missing"),
        (lambda a: a.update(scores=a["scores"][:, :1]), "expected shape"),
        (lambda a: a.update(scores=a["scores"] * np.nan), "expected array"),
    ]:
        with pytest.raises(WrongAnswerError, match=words):
            replay(golden, altered(change))


def test_differences_are_relative_to_large_numbers_alone():
    small = difference(np.array([0.5, -0.25]), np.array([0.5, -0.375], np.float32))
    np.testing.assert_array_equal(small, [0, 0.125])
    large = difference(np.array([400.0, 0.5]), np.array([402.0, 0.5]))
    np.testing.assert_array_equal(large, [2 / 400, 0])
