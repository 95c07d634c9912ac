"""Warmup by requests of several tasks, and under which names runs are counted."""

import shutil

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from gru_serving.engine.warmup import load_warm
from gru_serving.errors import Code
from tests.serving.engine.warmup_files import failure, replayed, write
from tests.serving.scrape import parsed, rendered

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
BOTH = (("m", "classify_x_to_y", CLASSIFY), ("m", "regress_x_to_y", REGRESS))


@pytest.fixture
def half_plus_two(models, tmp_path):
    return shutil.copytree(models / "half_plus_two" / "1", tmp_path / "half")


def inference(*tasks, examples=1):
    """A MultiInference record; model, signature and method of each task."""
    log = prediction_log_pb2.PredictionLog()
    several = log.multi_inference_log.request
    for _ in range(examples):
        example = several.input.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(1)
    for model, signature, method in tasks:
        task = several.tasks.add(method_name=method)
        task.model_spec.name, task.model_spec.signature_name = model, signature
    return log


def test_multi_inference_in_one_run(half_plus_two, calls):
    write(half_plus_two, inference(*BOTH))
    load_warm(half_plus_two).close()
    ((first, second),) = calls
    assert first == second


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (inference(("", *BOTH[0][1:])), "Found ModelSpec with an empty model name."),
        (inference(BOTH[0], ("n", *BOTH[1][1:])),
         "All ModelSpecs in a MultiInferenceRequest must access the same model name."),
        (inference(BOTH[0], BOTH[0]), "Duplicate evaluation of signature: classify_x_to_y"),
        (inference(("m", "nix", CLASSIFY)), "Requested signature not found in model graph: nix"),
        (inference(), "Must specify at least one target to fetch or execute."),
        (inference(*BOTH, examples=0), "Input is empty."),
    ],
)  # fmt: skip
def test_multi_inference_that_is_refused(half_plus_two, log, text):
    write(half_plus_two, log)
    error = failure(half_plus_two)
    assert (error.code, str(error)) == (Code.INVALID_ARGUMENT, text)


def test_runs_are_counted_under_the_names_in_the_records(half_plus_two):
    logs = [prediction_log_pb2.PredictionLog() for _ in range(3)]
    predict = logs[0].predict_log.request
    predict.inputs["x"].CopyFrom(tf.make_tensor_proto([[1.0]]))
    classification, regression = logs[1].classify_log.request, logs[2].regress_log.request
    for number, request in enumerate((predict, classification, regression)):
        request.model_spec.name = f"m{number}"
    for request, (_, name, _) in zip((classification, regression), BOTH, strict=True):
        request.model_spec.signature_name = name
        request.input.CopyFrom(inference().multi_inference_log.request.input)
    write(half_plus_two, *logs, inference(*BOTH, examples=3))
    metrics = replayed(half_plus_two, iterations=2)
    counted = parsed(rendered(metrics))
    serving = ":tensorflow:serving:"
    assert counted[f"{serving}runtime_latency_count"] == {
        ("m0", "Predict", "TF1"): 2,
        ("m1", "Classify", "TF1"): 2,
        ("m2", "Regress", "TF1"): 2,
    }
    assert counted[f"{serving}request_example_count"] == {("m",): 6}
    assert counted[f"{serving}request_example_counts_count"] == {("m",): 2}
    assert counted[f"{serving}model_warmup_records_read"] == {(str(half_plus_two), "OK"): 4}
