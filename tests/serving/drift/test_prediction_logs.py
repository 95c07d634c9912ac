"""Logged requests read back: written by tensorflow-serving-api and by TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from gru_serving.drift.prediction_logs import log_files, read_log
from gru_serving.errors import InvalidArgument, NotFound


def noted(log, signature="serving_default", version=3):
    log.log_metadata.model_spec.name = "m"
    log.log_metadata.model_spec.version.value = version
    log.log_metadata.model_spec.signature_name = signature
    log.log_metadata.timestamp_secs = 1_700_000_000
    return log.SerializeToString()


def predicted(signature="serving_default"):
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.inputs["text"].CopyFrom(tf.make_tensor_proto([b"one", b"two"]))
    log.predict_log.response.outputs["label"].CopyFrom(tf.make_tensor_proto([b"x", b"y"]))
    return noted(log, signature)


def example(text):
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
    return tf.train.Example(features=tf.train.Features(feature={"text": feature}))


def classified():
    log = prediction_log_pb2.PredictionLog()
    log.classify_log.request.input.example_list.examples.append(example(b"one"))
    row = log.classify_log.response.result.classifications.add()
    row.classes.add(label="x", score=0.25)
    row.classes.add(label="y", score=0.75)
    return noted(log, "classify")


def regressed():
    log = prediction_log_pb2.PredictionLog()
    log.regress_log.request.input.example_list.examples.append(example(b"one"))
    log.regress_log.response.result.regressions.add(value=2.5)
    return noted(log, "regress")


def write(path, *records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path


def test_each_kind_of_request(tmp_path):
    file = write(
        tmp_path / "a.tfrecord", predicted(), predicted("gates"), classified(), regressed()
    )
    first, second, third = read_log(file)
    assert (first.model, first.version, first.seconds) == ("m", 3, 1_700_000_000)
    assert first.inputs["text"].tolist() == [b"one", b"two"]
    assert first.outputs["label"].tolist() == [b"x", b"y"]
    assert second.inputs["text"].tolist() == [b"one"]
    assert second.outputs["label"].tolist() == [b"y"]
    np.testing.assert_array_equal(second.outputs["scores"].max(axis=1), [0.75])
    assert third.outputs["value"].tolist() == [2.5]


def test_a_record_that_is_being_written(tmp_path):
    file = write(tmp_path / "a.tfrecord", predicted(), predicted())
    file.write_bytes(file.read_bytes()[:-9])
    assert len(list(read_log(file))) == 1


@pytest.mark.parametrize("content", [b"text,label\nfine,good\n" * 9, b""], ids=["csv", "damaged"])
def test_other_files_are_refused(tmp_path, content):
    file = write(tmp_path / "a.tfrecord", predicted(), predicted())
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2 + 20] ^= 1
    file.write_bytes(content or bytes(whole))
    with pytest.raises(InvalidArgument, match=r"a\.tfrecord: expected a prediction log"):
        list(read_log(file))


def test_files_of_a_directory(tmp_path):
    with pytest.raises(NotFound, match="prediction_log_directory=DIR"):
        log_files(tmp_path)
    (tmp_path / "deep").mkdir()
    file = write(tmp_path / "deep" / "m-1.tfrecord", predicted())
    assert log_files(tmp_path) == [file] == log_files(file)
