"""Sampled PredictionLogs: read back with tf.data and upstream's protos; rotation; refusals."""

import os
import shutil
import time

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from gru_serving.protos.logging_config_pb2 import LoggingConfig
from gru_serving.protos.request_identity_pb2 import RequestIdentity
from gru_serving.telemetry.prediction_log import PredictionLogger, PredictionLogOptions
from gru_serving.telemetry.request_record import Exchange, RequestRecord
from tests.serving.full_disk import largest_file
from tests.waiting import wait_until


def record(number=1.0, model="m", kind="predict", status="OK"):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([number]))
    response = predict_pb2.PredictResponse()
    response.outputs["y"].CopyFrom(tf.make_tensor_proto([2 * number]))
    messages = request.SerializeToString(), response.SerializeToString()
    return RequestRecord(
        "GRPC",
        "Predict",
        model=model,
        version=3,
        signature="s",
        status=status,
        exchange=Exchange(kind, lambda: messages),
        began=1234567890.5,
    )


def config(rate, prefix="", kind=""):
    made = LoggingConfig()
    made.sampling_config.sampling_rate = rate
    made.log_collector_config.filename_prefix = prefix
    made.log_collector_config.type = kind
    return made


def logged(directory, pattern="*.tfrecord"):
    files = [str(path) for path in sorted(directory.glob(pattern))]
    return [
        prediction_log_pb2.PredictionLog.FromString(one)
        for one in tf.data.TFRecordDataset(files).as_numpy_iterator()
    ]


def test_round_trip(tmp_path):
    counted = []
    options = PredictionLogOptions(tmp_path / "logs", sampling_rate=1)
    logger = PredictionLogger(options, lambda _: None, ("serve",), lambda *one: counted.append(one))
    for number in range(5):
        logger(record(number))
    logger(record(status="INVALID_ARGUMENT"))
    logger(RequestRecord("REST", "GET", model="m"))
    logger.close()
    found = logged(tmp_path / "logs")
    assert len(found) == 5
    for number, one in enumerate(found):
        assert one.WhichOneof("log_type") == "predict_log"
        assert tf.make_ndarray(one.predict_log.request.inputs["x"]) == [number]
        assert tf.make_ndarray(one.predict_log.response.outputs["y"]) == [2 * number]
        spec = one.log_metadata.model_spec
        assert (spec.name, spec.version.value, spec.signature_name) == ("m", 3, "s")
        assert one.log_metadata.sampling_config.sampling_rate == 1
        assert one.log_metadata.timestamp_secs == 1234567890
        assert list(one.log_metadata.saved_model_tags) == ["serve"]
    assert counted == [("m", "OK")] * 5
    (file,) = (tmp_path / "logs").glob("*.tfrecord")
    assert file.stat().st_mode & 0o777 == 0o600  # they contain people's texts


def test_ids_are_where_other_readers_do_not_look(tmp_path):
    options = PredictionLogOptions(tmp_path / "logs", sampling_rate=1)
    logger = PredictionLogger(options, lambda _: None)
    one = record()
    one.request_id, trace = "asked-1", "0af7651916cd43dd8448eb211c80319c"
    one.traceparent = f"00-{trace}-b7ad6b7169203331-01"
    logger(one)
    logger(record())
    logger.close()
    first, second = (found.log_metadata for found in logged(tmp_path / "logs"))
    identity = RequestIdentity.FromString(first.SerializeToString())
    assert (identity.request_id, identity.trace_id) == ("asked-1", trace)
    first.DiscardUnknownFields()
    assert first == second


def test_rate_of_the_model_counts(tmp_path):
    rates = {"none": config(0), "all": config(1, "own/prefix"), "half": None}
    options = PredictionLogOptions(tmp_path, sampling_rate=0.5)
    logger = PredictionLogger(options, rates.get)
    for model in rates:
        for _ in range(200):
            logger(record(model=model))
    logger.close()
    assert not list(tmp_path.glob("none*"))
    assert len(logged(tmp_path / "own", "prefix-*.tfrecord")) == 200
    # Within six standard deviations of 100.
    assert 57 < len(logged(tmp_path, "half-*.tfrecord")) < 143


def test_sampling_of_the_model_is_noted_whole(tmp_path):
    ours = config(1)
    ours.sampling_config.attributes = 3
    logger = PredictionLogger(PredictionLogOptions(tmp_path, 0.5), lambda _: ours)
    logger(record())
    logger.close()
    (one,) = logged(tmp_path)
    noted = one.log_metadata.sampling_config
    assert noted.SerializeToString() == ours.sampling_config.SerializeToString()
    assert (noted.sampling_rate, noted.attributes) == (1, 3)


def test_rotation_keeps_the_newest(tmp_path):
    options = PredictionLogOptions(tmp_path, 1.0, file_bytes=400, files=3)
    logger = PredictionLogger(options, lambda _: None)
    neighbour = tmp_path / "m-b-20200101T000000-1-1.tfrecord"
    neighbour.write_bytes(b"")
    for number in range(40):
        logger(record(number))
    logger.close()
    files = sorted(tmp_path.glob("m-2*.tfrecord"))
    assert len(files) == 3
    assert all(path.stat().st_size < 1000 for path in files)
    numbers = [float(tf.make_ndarray(one.predict_log.request.inputs["x"])[0])
               for one in logged(tmp_path, "m-2*.tfrecord")]  # fmt: skip
    assert numbers == list(range(40))[-len(numbers) :]
    assert neighbour.exists()


def test_file_just_begun_is_kept_though_others_seem_newer(tmp_path):
    """As after the clock was set back."""
    tomorrow = time.time() + 86400
    options = PredictionLogOptions(tmp_path, 1.0, files=3)
    for number in range(3):
        logger = PredictionLogger(options, lambda _: None)
        logger(record(number))
        logger.close()
        for path in tmp_path.iterdir():
            os.utime(path, (tomorrow + number, tomorrow + number))
    logger = PredictionLogger(options, lambda _: None)
    for number in (3, 4, 5):
        logger(record(number))
    logger.close()
    found = {tf.make_ndarray(one.predict_log.request.inputs["x"])[0] for one in logged(tmp_path)}
    assert found >= {3, 4, 5}
    assert len(list(tmp_path.iterdir())) == 3


def test_oldest_by_their_time_go_and_not_by_their_name(tmp_path):
    """In the same second, process 10 has written after process 9."""
    older, newer = (tmp_path / f"m-20260101T000000-{pid}-1.tfrecord" for pid in (9, 10))
    for seconds, path in enumerate((older, newer)):
        path.write_bytes(b"")
        os.utime(path, (1_767_225_600 + seconds,) * 2)
    logger = PredictionLogger(PredictionLogOptions(tmp_path, 1.0, files=2), lambda _: None)
    logger(record())
    logger.close()
    assert newer.exists()
    assert not older.exists()


def test_smallest_options(tmp_path):
    """Models without logging write nothing; the others write one file with one record."""
    directory = tmp_path / "a" / "b"
    options = PredictionLogOptions(directory, sampling_rate=0, file_bytes=1, files=1)
    logger = PredictionLogger(options, {"m": config(1)}.get)
    for number in range(3):
        logger(record(number))
        logger(record(model="other"))
    logger.close()
    (path,) = directory.iterdir()
    (one,) = logged(directory)
    assert path.name.startswith("m-")
    assert tf.make_ndarray(one.predict_log.request.inputs["x"]) == [2]


def test_names_that_are_no_file_names(tmp_path):
    logger = PredictionLogger(PredictionLogOptions(tmp_path, 1.0), lambda _: None)
    logger(record(model="../half/plus:two"))
    logger.close()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("..%2Fhalf%2Fplus%3Atwo-")
    assert path.parent == tmp_path


def test_directory_that_goes_away_comes_back(tmp_path, caplog):
    logger = PredictionLogger(PredictionLogOptions(tmp_path / "d", 1.0), lambda _: None)
    logger(record(1))
    wait_until(lambda: list((tmp_path / "d").glob("*.tfrecord")))
    shutil.rmtree(tmp_path / "d")
    logger(record(2))
    logger.close()
    assert len(logged(tmp_path / "d")) == 1


def test_record_that_did_not_fit_leaves_no_half(tmp_path):
    """What was written before and after is readable; no empty files pile up."""
    outcomes = []
    logger = PredictionLogger(
        PredictionLogOptions(tmp_path, 1.0, files=3),
        lambda _: None,
        count=lambda _, outcome: outcomes.append(outcome),
    )
    for number in (1, 2):
        logger(record(number))
    wait_until(lambda: len(outcomes) == 2)
    (path,) = tmp_path.iterdir()
    size = path.stat().st_size
    with largest_file(size + 50):
        logger(record(3))
        wait_until(lambda: len(outcomes) == 3)
    assert path.stat().st_size == size
    with largest_file(50):
        for number in (4, 5, 6):
            logger(record(number))
        wait_until(lambda: len(outcomes) == 6)
    logger(record(7))
    logger.close()
    assert outcomes == ["OK"] * 2 + ["UNKNOWN"] * 4 + ["OK"]
    numbers = [tf.make_ndarray(one.predict_log.request.inputs["x"])[0] for one in logged(tmp_path)]
    assert numbers == [1, 2, 7]
    assert len(list(tmp_path.iterdir())) == 2
