"""What an export of a real, tiny training run answers and holds."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting as fingerprinting_pywrap

from gru_serving.config.batching_options import BatchingOptions, PoolOptions
from gru_serving.engine import warmup
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.engine.batching.session import BatchingSession
from gru_serving.engine.golden import read_golden
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.session import GraphSession
from gru_serving.export.run import MODEL_CARD
from gru_serving.protos.prediction_log_pb2 import PredictionLog
from keras_gru.introspection import gates_over_time


@pytest.fixture(scope="module", params=["one", pytest.param("both", marks=pytest.mark.slow)])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def run(exports, name):
    return exports.runs[name]


@pytest.fixture(scope="module")
def version(exports, name):
    return exports.version(name)


@pytest.fixture(scope="module")
def predictor(version):
    return Predictor(version)


def test_labels_of_all_held_out_rows_equal_the_keras_model(run, predictor):
    rows = list(run.test_predictions())
    texts = np.array([row.text.encode() for row in rows], object)
    answers = predictor.predict({"text": texts})
    assert [label.decode() for label in answers["label"]] == [row.predicted for row in rows]
    np.testing.assert_allclose(answers["scores"], [row.scores for row in rows], atol=1e-5)
    np.testing.assert_array_equal(answers["probability"], answers["scores"].max(-1))


@pytest.mark.slow
def test_scores_of_every_signature_are_divided_by_the_temperature(run, version, name):
    text = next(row.text for row in run.test_predictions())
    logits = run.load_model()(run.preprocessor()(tf.constant([text]))).numpy()[0]
    # Shares of GRU and regression are of the best size; otherwise nothing would be seen.
    assert name == "both" or abs(run.temperature.value - 1) > 0.01
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


def test_answer_does_not_depend_on_neighbours(run, predictor):
    texts = [row.text.encode() for row in run.test_predictions()][:20]
    texts += [b"", b"\xff\xfe", "très bon 映画".encode(), b"word " * 500]
    together = predictor.predict({"text": np.array(texts, object)})["scores"]
    alone = [predictor.predict({"text": np.array([text], object)})["scores"][0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.slow
def test_answer_does_not_depend_on_who_shares_its_batch(run, version, predictor):
    texts = [row.text.encode() for row in run.test_predictions()][:60]
    texts += [b"", b"\xff\xfe", "très bon 映画".encode(), b"word " * 300]
    scheduler = BatchScheduler(PoolOptions(2))
    options = BatchingOptions(max_batch_size=16, allowed_batch_sizes=(4, 16))
    batched = Predictor(BatchingSession(GraphSession(version), scheduler, options))
    rng = np.random.default_rng(0)
    requests = [np.array(rng.choice(texts, rng.integers(1, 4)), object) for _ in range(64)]
    with ThreadPoolExecutor(16) as callers:
        answers = list(callers.map(lambda text: batched.predict({"text": text}), requests))
    for request, answer in zip(requests, answers, strict=True):
        expected = predictor.predict({"text": request})
        assert answer["label"].tolist() == expected["label"].tolist()
        np.testing.assert_allclose(answer["scores"], expected["scores"], atol=1e-6)
    batched.close()
    scheduler.close()


def test_signatures_are_the_contract(predictor, name):
    found = {
        name: (list(one.inputs), sorted(one.outputs), one.method_name.rpartition("/")[2])
        for name, one in predictor.signatures.items()
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


def test_every_signature_has_golden_and_warmup_requests(version, predictor):
    signatures = {n for n in predictor.signatures if not n.startswith("__")}
    assert {request["signature_name"] for request in read_golden(version)} == signatures
    warmed, sizes = set(), []
    for record in tf.data.TFRecordDataset(str(version / warmup.FILE)).as_numpy_iterator():
        log = PredictionLog.FromString(record)
        request = getattr(log, log.WhichOneof("log_type")).request
        warmed.add(request.model_spec.signature_name)
        if log.HasField("predict_log"):
            sizes += [one.tensor_shape.dim[0].size for one in request.inputs.values()]
        else:
            sizes.append(len(request.input.example_list.examples))
    assert warmed == signatures - {"attribution"}
    assert set(sizes) == {1, 2}  # servers of small batches load it, too
    assert warmup.replay(predictor, version) > len(warmed)


def test_gates_are_those_of_introspection(run, predictor):
    text = next(row.text for row in run.test_predictions())
    answer = predictor.predict({"text": np.array([text.encode()], object)}, "gates")
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


@pytest.mark.slow
def test_attributions_add_up_and_do_not_depend_on_neighbours(run, version, predictor):
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


@pytest.mark.slow
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
