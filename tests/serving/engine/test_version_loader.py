"""From flags and files to a predictor: threads, config files, batching, checks, counts."""

import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

import gru_serving.engine.version_loader as version_loader_module
from gru_serving.config.batching_options import PER_MODEL_FILE
from gru_serving.config.flags import Flags
from gru_serving.engine.examples import classify, regress
from gru_serving.engine.load_options import SessionOptions, read_session_config
from gru_serving.engine.session import GraphSession
from gru_serving.engine.warmup import predict_record, write_records
from gru_serving.errors import Internal, InvalidArgument, NotFound
from gru_serving.server.process import repository_options, version_loader
from gru_serving.telemetry.metrics import Metrics
from tests.serving.scrape import parsed, rendered

ONE = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}


@pytest.fixture
def version(models, tmp_path):
    return shutil.copytree(models / "affine" / "1", tmp_path / "1")


@pytest.fixture
def load():
    """load(directory, **flags) -> (predictor, metrics)."""
    made = []

    def load(directory, **flags):
        metrics = Metrics()
        loader = version_loader(Flags(**{"trial_load": "never", **flags}), metrics)
        predictor = loader(directory)
        made.append((predictor, loader))
        return predictor, metrics

    yield load
    for predictor, loader in made:
        predictor.close()
        if loader._scheduler is not None:
            loader._scheduler.close()


def config(flags):
    return version_loader(flags, Metrics())._options.session.config_proto()


@pytest.mark.parametrize(
    ("flags", "intra", "inter"),
    [
        ({}, 0, 0),
        ({"tensorflow_session_parallelism": 3}, 3, 3),
        ({"tensorflow_intra_op_parallelism": 2}, 2, 0),
        ({"tensorflow_inter_op_parallelism": 2}, 0, 2),
        # Either of the two switches turns the common number off.
        ({"tensorflow_session_parallelism": 3, "tensorflow_intra_op_parallelism": 2}, 2, 0),
        ({"tensorflow_intra_op_parallelism": 2, "tensorflow_inter_op_parallelism": 5}, 2, 5),
    ],
)
def test_threads_of_sessions(flags, intra, inter):
    proto = config(Flags(**flags))
    assert proto.intra_op_parallelism_threads == intra
    assert proto.inter_op_parallelism_threads == inter


SESSION = """
device_count { key: "CPU" value: 2 }
intra_op_parallelism_threads: 7  inter_op_parallelism_threads: 8
gpu_options { per_process_gpu_memory_fraction: 0.25 allow_growth: true }
"""


def test_session_config_file(models, tmp_path):
    path = tmp_path / "session"
    path.write_text(SESSION)
    proto = config(Flags(tensorflow_session_config_file=str(path)))
    assert (proto.intra_op_parallelism_threads, proto.inter_op_parallelism_threads) == (7, 8)
    assert proto.gpu_options.per_process_gpu_memory_fraction == 0.25
    flags = Flags(
        tensorflow_session_config_file=str(path),
        tensorflow_intra_op_parallelism=1,
        per_process_gpu_memory_fraction=0.5,
    )
    proto = config(flags)
    assert (proto.intra_op_parallelism_threads, proto.inter_op_parallelism_threads) == (1, 8)
    assert proto.gpu_options.per_process_gpu_memory_fraction == 0.5
    assert proto.gpu_options.allow_growth
    # And a session honours it: two CPU devices, as requested.
    options = SessionOptions(config=read_session_config(str(path)))
    session = GraphSession(models / "affine" / "1", options=options)
    kinds = [device.device_type for device in session._session.list_devices()]
    assert kinds.count("CPU") == 2
    session.close()


def test_session_config_file_that_is_wrong(tmp_path, capsys):
    path = tmp_path / "session"
    with pytest.raises(NotFound, match="No such file"):
        config(Flags(tensorflow_session_config_file=str(path)))
    path.write_text("threads: 3")
    with pytest.raises(InvalidArgument) as caught:
        config(Flags(tensorflow_session_config_file=str(path)))
    assert str(caught.value) == f"Invalid protobuf file: '{path}'"
    assert "Error parsing text-format tensorflow.ConfigProto: 1:1: " in capsys.readouterr().err


def test_how_versions_are_looked_for_and_loaded():
    options = repository_options(
        Flags(
            num_load_threads=3,
            num_unload_threads=2,
            file_system_poll_wait_seconds=9,
            max_num_load_retries=4,
            load_retry_interval_micros=1500,
            allow_version_labels_for_unavailable_models=True,
        )
    )
    assert (options.load_threads, options.unload_threads) == (3, 2)
    assert (options.poll_seconds, options.max_load_retries) == (9, 4)
    assert options.retry_seconds == pytest.approx(0.0015)
    assert options.allow_labels_for_unavailable


def batches(metrics):
    return parsed(rendered(metrics)).get(":tensorflow:serving:batching_session:wrapped_run_count")


def test_no_batching_by_default(version, load):
    predictor, metrics = load(version)
    predictor.predict(ONE)
    assert batches(metrics) is None


def test_batching_with_a_parameters_file(version, load, tmp_path):
    path = tmp_path / "parameters"
    path.write_text(
        'max_batch_size { value: 4 } thread_pool_name { value: "mine" } '
        "num_batch_threads { value: 3 } batch_timeout_micros { value: 30000000 }"
    )
    predictor, metrics = load(version, enable_batching=True, batching_parameters_file=str(path))
    assert {f"mine_{i}" for i in range(3)} <= {thread.name for thread in threading.enumerate()}
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(predictor.predict, [ONE] * 4, timeout=60))
    assert [answer["y"].tolist() for answer in answers] == [[[9.0, 12.0]]] * 4
    assert batches(metrics) == {(): 1}
    with pytest.raises(InvalidArgument, match="Task size 5 is larger"):
        predictor.predict({name: np.repeat(array, 5, 0) for name, array in ONE.items()})


def test_bad_parameters_end_the_start(tmp_path):
    path = tmp_path / "parameters"
    path.write_text("allowed_batch_sizes: 3")
    flags = Flags(enable_batching=True, batching_parameters_file=str(path))
    with pytest.raises(InvalidArgument, match="Last entry in allowed_batch_sizes must match"):
        version_loader(flags, Metrics())


def test_parameters_per_model(models, version, load, tmp_path):
    common = tmp_path / "parameters"
    common.write_text("max_batch_size { value: 2 }  num_batch_threads { value: 1 }")
    (version / PER_MODEL_FILE).write_text("max_batch_size { value: 3 }")
    flags = {
        "enable_batching": True,
        "batching_parameters_file": str(common),
        "enable_per_model_batching_parameters": True,
    }
    five = {name: np.repeat(array, 5, 0) for name, array in ONE.items()}
    own, metrics = load(version, **flags)
    with pytest.raises(InvalidArgument, match="larger than maximum input batch size 3"):
        own.predict(five)
    own.predict(ONE)
    assert batches(metrics) == {(): 1}
    # A version without the file is not batched at all.
    other, metrics = load(models / "affine" / "1", **flags)
    assert other.predict(five)["y"].shape == (5, 2)
    assert batches(metrics) is None
    (version / PER_MODEL_FILE).write_text("nonsense")
    with pytest.raises(InvalidArgument, match="Invalid protobuf file"):
        load(version, **flags)


def test_warmup_is_batched_and_counted(version, load):
    write_records(version, [predict_record(ONE)] * 3)
    _, metrics = load(version, enable_batching=True, num_request_iterations_for_warmup=2)
    counted = parsed(rendered(metrics))
    serving = ":tensorflow:serving:"
    assert counted[f"{serving}batching_session:wrapped_run_count"] == {(): 6}
    labels = (str(version), "OK")
    assert counted[f"{serving}model_warmup_records_read"] == {labels: 3}
    assert counted[f"{serving}model_warmup_latency_count"] == {labels: 1}
    assert counted[f"{serving}model_warmup_latency_sum"][labels] > 0
    assert counted[":tensorflow:core:graph_runs"] == {(): 6}
    assert counted[":tensorflow:core:direct_session_runs"] == {(): 6}
    assert counted[":tensorflow:core:graph_run_time_usecs"][()] > 0
    _, metrics = load(version, enable_model_warmup=False)
    assert f"{serving}model_warmup_latency_count" not in parsed(rendered(metrics))


@pytest.mark.slow
def test_broken_warmup_file_is_counted_with_its_status(version, load):
    path = version / "assets.extra" / "tf_serving_warmup_requests"
    path.parent.mkdir()
    path.write_bytes(b"this is no TFRecord file at all")
    metrics = Metrics()
    with pytest.raises(Exception, match="TFRecord format"):
        version_loader(Flags(), metrics)(version)
    assert b'status="DATA_LOSS: ' in rendered(metrics)


def test_tags(version, load):
    with pytest.raises(NotFound, match=r"supplied tags: \{ gpu serve \}"):
        load(version, saved_model_tags="serve,gpu")
    assert load(version, saved_model_tags="serve")[0].predict(ONE)["y"].tolist() == [[9, 12]]


def test_ml_metadata(version):
    metrics = Metrics()
    loader = version_loader(Flags(), metrics)
    loader.note_metadata("m", 1, version)
    assert b"mlmd_map{" not in rendered(metrics)
    (version / "assets.extra").mkdir()
    (version / "assets.extra" / "mlmd_uuid").write_text("some_uuid")
    loader.note_metadata("m", 1, version)
    lines = [line for line in rendered(metrics).decode().splitlines() if "mlmd" in line]
    assert lines == [
        "# TYPE :tensorflow:serving:mlmd_map gauge",
        ':tensorflow:serving:mlmd_map{model_name="m",version="1"} 0',
    ]


def test_saved_model_config(version, load, caplog):
    path = version / "assets.extra" / "saved_model_config.pb"
    path.parent.mkdir()
    path.write_bytes(b"\x0a\x04\x12\x02\x08\x01")  # session_overrides { batch_op_rewriter_config }
    load(version)
    assert "no effect in this server: batch_op_rewriter_config" in caplog.text
    path.write_bytes(b"\xff\xff")
    with pytest.raises(Internal) as caught:
        load(version)
    assert str(caught.value) == f"Unable to parse SavedModelConfig: {path}"


def test_method_names(models, load):
    checked, _ = load(models / "text" / "1", enable_signature_method_name_check=True)
    free, _ = load(models / "text" / "1")
    example = [b""]
    for method, signature, kind in (
        (classify, "classify", "classification"), (regress, "regress", "regression"),
    ):  # fmt: skip
        # TensorFlow 2 exports say "predict" whatever the signature is.
        with pytest.raises(InvalidArgument) as caught:
            method(checked, signature, example)
        assert str(caught.value) == (
            f"Expected {kind} signature method_name to be tensorflow/serving/{signature}. "
            "Was: tensorflow/serving/predict"
        )
        with pytest.raises(InvalidArgument, match="required"):  # the example lacks the feature
            method(free, signature, example).run()
    assert checked.predict({"text": np.array([b"good"], object)})["label"] == [b"positive"]
    first, _ = load(models / "half_plus_two" / "1", enable_signature_method_name_check=True)
    two = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[2.0]))}
    serialized = tf.train.Example(features=tf.train.Features(feature=two)).SerializeToString()
    assert regress(first, "regress_x_to_y", [serialized]).run() == [3]
    # A signature without a method, which is how TensorFlow 2 stores its initialiser.
    with pytest.raises(Internal) as caught:
        checked.predict({}, "__saved_model_init_op")
    assert str(caught.value) == (
        "Expected prediction signature method_name to be one of {tensorflow/serving/predict, "
        "tensorflow/serving/classify, tensorflow/serving/regress}. Was: "
    )


def test_turns_at_the_interpreter_are_short_while_a_version_loads(version, load, monkeypatch):
    """Otherwise each request would wait 5 ms for a load, whenever it needs the interpreter."""
    seen = []
    opened = version_loader_module.open_version

    def open_version(*arguments):
        seen.append(sys.getswitchinterval())
        return opened(*arguments)

    monkeypatch.setattr(version_loader_module, "open_version", open_version)
    usual = sys.getswitchinterval()
    load(version)
    shutil.rmtree(version)
    with pytest.raises(NotFound):
        load(version)
    assert seen == pytest.approx([0.0005, 0.0005])
    assert sys.getswitchinterval() == usual
