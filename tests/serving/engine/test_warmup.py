"""Warmup files, written here and by TensorFlow's own writer, replayed on real models."""

import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from gru_serving.engine import warmup
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.warmup import FILE, load_warm, predict_record, replay, write_records
from gru_serving.errors import InvalidArgument, Unimplemented
from tests.serving.engine.warmup_files import failure, replayed, write
from tests.serving.scrape import parsed, rendered

ONE = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}


@pytest.fixture
def version(models, tmp_path):
    return shutil.copytree(models / "affine" / "1", tmp_path / "1")


def test_round_trip(version, calls):
    total = predict_record({"x": ONE["x"]}, "total")
    path = write_records(version, [predict_record(ONE), total])
    assert path == version / "assets.extra" / "tf_serving_warmup_requests"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    load_warm(version).close()
    assert sorted(calls) == ["", "total"]  # in either order: they run side by side
    load_warm(version, iterations=3).close()
    assert sorted(calls[2:]) == ["", "", "", "total", "total", "total"]
    load_warm(version, iterations=0).close()
    assert len(calls) == 8


def test_first_records_of_signatures_run_side_by_side(version, calls, monkeypatch):
    """One after the other, they would wait for each other forever."""
    monkeypatch.setattr(warmup, "schedulable_cpus", lambda: 2)
    total = predict_record({"x": ONE["x"]}, "total")
    write_records(version, [*[predict_record(ONE)] * 3, total])
    both, waited = threading.Barrier(2, timeout=30), set()
    counted = Predictor.prepare

    def meeting(self, inputs, signature_name="", *rest):
        if signature_name not in waited:
            waited.add(signature_name)
            both.wait()
        return counted(self, inputs, signature_name, *rest)

    monkeypatch.setattr(Predictor, "prepare", meeting)
    load_warm(version).close()
    assert sorted(calls) == ["", "", "", "total"]


def test_any_signature_that_fails_fails_the_load(version, caplog):
    path = write_records(version, [predict_record(ONE), predict_record({}, "total")])
    assert str(failure(version)).startswith("input size does not match signature: 0!=1")
    assert f"A warmup request of {path} fails: INVALID_ARGUMENT: input size" in caplog.text


def test_upstream_reads_our_records(version):
    path = write_records(version, [predict_record(ONE, "s")])
    (record,) = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
    assert request.model_spec.signature_name == "s"
    np.testing.assert_array_equal(tf.make_ndarray(request.inputs["x"]), ONE["x"])


def test_all_kinds(models, tmp_path, calls):
    version = shutil.copytree(models / "text" / "1", tmp_path / "1")
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(b"good")
    logs = [prediction_log_pb2.PredictionLog() for _ in range(3)]
    predict = logs[0].predict_log.request
    predict.inputs["text"].CopyFrom(tf.make_tensor_proto(["bad"]))
    classification = logs[1].classify_log.request
    classification.model_spec.signature_name = "classify"
    classification.input.example_list.examples.append(example)
    regression = logs[2].regress_log.request
    regression.model_spec.signature_name = "regress"
    regression.input.example_list.examples.append(example)
    write(version, *logs[:3])
    load_warm(version).close()
    assert sorted(calls) == ["", "classify", "regress"]


def test_no_file_is_fine(version):
    load_warm(version).close()


def test_record_without_a_request_counts(version, calls):
    log = prediction_log_pb2.PredictionLog()
    log.log_metadata.model_spec.name = "m"
    write(version, b"", log)
    counted = parsed(rendered(replayed(version)))
    label = (str(version), "OK")
    assert counted[":tensorflow:serving:model_warmup_records_read"] == {label: 2}
    assert calls == []


def test_tensor_that_does_not_parse(version):
    log = predict_record(ONE)
    log.predict_log.request.inputs["b"].tensor_content = b"abc"
    write_records(version, [log])
    assert str(failure(version)) == "tensor parsing error: b"
    del log.predict_log.request.inputs["x"]
    write_records(version, [log])
    assert str(failure(version)).startswith("input size does not match signature: 1!=2")


def test_unsupported_kinds(version):
    log = prediction_log_pb2.PredictionLog()
    log.session_run_log.request.fetch.append("y:0")
    write(version, log)
    error = failure(version)
    assert isinstance(error, Unimplemented)
    assert str(error) == "Unsupported log_type for warmup: 5"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "corrupted record at 0 (Is this even a TFRecord file?)"),
        (20, "corrupted record at 12"),
    ],
)
def test_no_tfrecord_file(version, at, text):
    """TensorFlow's text; the metric has it without the advice."""
    path = write_records(version, [predict_record(ONE)])
    raw = path.read_bytes()
    path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
    error = failure(version)
    assert error.status == (
        f"DATA_LOSS: {text}. Please verify your warmup data is in TFRecord format."
    )
    counted = parsed(rendered(replayed(version)))
    label = (str(version), f"DATA_LOSS: {text}")
    assert counted[":tensorflow:serving:model_warmup_latency_count"] == {label: 1}
    assert counted[":tensorflow:serving:model_warmup_records_read"] == {label: 0}


def test_directory_in_place_of_the_file(version):
    (version / FILE).mkdir(parents=True)
    error = failure(version)
    assert error.status == f"FAILED_PRECONDITION: {version / FILE}; Is a directory"


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (b"malformed_record", "malformed_record"),
        (b"\xff\xff\xff", "\ufffd" * 3),
        (b"malformed_record" * 300, "malformed_record" * 64),
    ],
)
def test_record_that_is_no_log(version, record, shown):
    write(version, record)
    error = failure(version)
    assert isinstance(error, InvalidArgument)
    assert str(error) == f"Failed to parse warmup record: {shown} from {version / FILE}"


def test_too_many_records(version):
    with pytest.raises(ValueError, match="at most 1000; got 1001"):
        write_records(version, [predict_record(ONE)] * 1001)
    write(version, *[predict_record({"x": ONE["x"]}, "total")] * 1001)
    assert str(failure(version)) == (
        f"Number of warmup records exceeds the maximum (1000) at {version / FILE}"
    )


def test_record_beyond_the_limit_is_run_before_it_is_refused(version, calls):
    total = predict_record({"x": ONE["x"]}, "total")
    write(version, *[total] * 1000, predict_record({}, "total"))
    assert str(failure(version)).startswith("input size does not match signature: 0!=1")
    assert len(calls) == 1000


def test_replay_says_how_many(version):
    write_records(version, [predict_record(ONE)] * 3)
    predictor = Predictor(version)
    assert replay(predictor, version) == 3
    predictor.close()
