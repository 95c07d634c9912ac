"""Warmup files, written here and by TensorFlow's own writer, replayed on real models."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from serving.errors import Code, InvalidArgument, ServingError, Unimplemented
from serving.warmup import FILE, load_warm, predict_record, replay, write_records

ONE = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}


@pytest.fixture
def version(models, tmp_path):
    return shutil.copytree(models / "affine" / "1", tmp_path / "1")


@pytest.fixture
def calls(monkeypatch):
    """What is run: names of signatures, or of the tensors that several of them fetch."""
    from serving.predictor import Predictor

    seen = []
    real, together = Predictor.predict, Predictor.run

    def counted(self, inputs, signature_name="", *rest, **more):
        seen.append(signature_name)
        return real(self, inputs, signature_name, *rest, **more)

    def counted_run(self, feeds, fetches, *rest):
        seen.append(tuple(fetches))
        return together(self, feeds, fetches, *rest)

    monkeypatch.setattr(Predictor, "predict", counted)
    monkeypatch.setattr(Predictor, "run", counted_run)
    return seen


def write(version, *logs):
    path = version / FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for log in logs:
            writer.write(log if isinstance(log, bytes) else log.SerializeToString())


def test_round_trip(version, calls):
    total = predict_record({"x": ONE["x"]}, "total")
    path = write_records(version, [predict_record(ONE), total])
    assert path == version / "assets.extra" / "tf_serving_warmup_requests"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    load_warm(version).close()
    assert calls == ["", "total"]
    load_warm(version, iterations=3).close()
    assert calls[2:] == ["", "", "", "total", "total", "total"]
    load_warm(version, iterations=0).close()
    assert len(calls) == 8


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
    assert calls == ["", "classify", "regress"]


def test_multi_inference_in_one_run(models, tmp_path, calls):
    version = shutil.copytree(models / "half_plus_two" / "1", tmp_path / "1")
    log = prediction_log_pb2.PredictionLog()
    several = log.multi_inference_log.request
    example = several.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(1)
    for name in ("classify", "regress"):
        task = several.tasks.add(method_name=f"tensorflow/serving/{name}")
        task.model_spec.signature_name = f"{name}_x_to_y"
    write(version, log)
    load_warm(version).close()
    ((first, second),) = calls
    assert first == second


def test_no_file_is_fine(version):
    load_warm(version).close()


def failure(version):
    with pytest.raises(ServingError) as caught:
        load_warm(version)
    return caught.value


def test_failing_request_fails_the_load(version):
    write_records(version, [predict_record({"x": ONE["x"]})])
    assert str(failure(version)).startswith("input size does not match signature: 1!=2")


def test_unsupported_kinds(version):
    log = prediction_log_pb2.PredictionLog()
    log.session_run_log.request.fetch.append("y:0")
    write(version, log)
    error = failure(version)
    assert isinstance(error, Unimplemented)
    assert str(error) == "Unsupported log_type for warmup: 5"


def test_no_tfrecord_file(version):
    (version / FILE).parent.mkdir()
    (version / FILE).write_bytes(b"this is no TFRecord file at all")
    error = failure(version)
    assert error.code is Code.DATA_LOSS
    assert str(error).endswith(". Please verify your warmup data is in TFRecord format.")


def test_record_that_is_no_log(version):
    write(version, b"\xff\xff\xff")
    error = failure(version)
    assert isinstance(error, InvalidArgument)
    assert str(error).startswith("Failed to parse warmup record: ")


def test_too_many_records(version):
    with pytest.raises(ValueError, match="at most 1000; got 1001"):
        write_records(version, [predict_record(ONE)] * 1001)
    write(version, *[predict_record({"x": ONE["x"]}, "total")] * 1001)
    assert str(failure(version)) == (
        f"Number of warmup records exceeds the maximum (1000) at {version / FILE}"
    )


def test_replay_says_how_many(version):
    from serving.predictor import Predictor

    write_records(version, [predict_record(ONE)] * 3)
    predictor = Predictor(version)
    assert replay(predictor, version) == 3
    predictor.close()
