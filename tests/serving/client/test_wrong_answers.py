"""Answers of a server that are not those of the signature: no client takes them."""

import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.codecs.tensor_proto import encode_tensor
from gru_serving.errors import Unknown
from gru_serving.protos.classification_pb2 import ClassificationResponse
from gru_serving.protos.predict_pb2 import PredictResponse
from gru_serving.protos.regression_pb2 import RegressionResponse
from tests.serving.client.odd_answers import RIGHT, over_grpc, over_rest

WRONG = [
    ({"y": [1.5, 2.5]}, r"output 'y': expected shape \[1\]; got \[2\]"),
    ({"y": []}, r"output 'y': expected shape \[1\]; got \[0\]"),
    ({"pair": [[1.0, 2.0], [3.0, 4.0]]}, r"output 'pair': expected shape \[1, 2\]; got \[2, 2\]"),
    ({"pair": [[1.0, 2.0, 3.0]]}, r"output 'pair': expected shape \[1, 2\]; got \[1, 3\]"),
    ({"pair": [1.0]}, r"output 'pair': expected shape \[1, 2\]; got \[1\]"),
    ({"y": 1.5}, r"output 'y': expected shape \[1\]; got \[\]"),
]
IN_JSON = [
    ({"y": [1e39]}, r"output 'y': expected numbers of float; got 1e\+39"),
    ({"small": [256]}, "output 'small': .* is not of expected type: uint8"),
    ({"small": [-1]}, "output 'small': .* is not of expected type: uint8"),
    ({"small": [1.5]}, "output 'small': .* is not of expected type: uint8"),
]


def predicted(outputs):
    response = PredictResponse()
    for name, value in outputs.items():
        array = value if isinstance(value, np.ndarray) else np.array(value, "f4")
        response.outputs[name].CopyFrom(encode_tensor(array))
    return response.SerializeToString()


def test_what_the_signature_says_is_taken():
    with over_rest(RIGHT) as (_, url), connect(url) as client:
        got = client.predict({"x": [1.0]}, "m")
    assert {name: array.tolist() for name, array in got.items()} == RIGHT
    right = {**RIGHT, "small": np.uint8([7])}
    with over_grpc(Predict=predicted(right)) as url, connect(url) as client:
        assert client.predict({"x": [1.0]}, "m")["pair"].tolist() == RIGHT["pair"]


def test_infinity_in_an_answer_is_taken():
    with over_rest({**RIGHT, "y": [float("inf")]}) as (_, url), connect(url) as client:
        assert client.predict({"x": [1.0]}, "m")["y"].tolist() == [np.inf]


@pytest.mark.parametrize(("wrong", "message"), [*WRONG, *IN_JSON])
def test_other_answers_over_rest_are_refused(wrong, message):
    with (
        over_rest({**RIGHT, **wrong}) as (_, url),
        connect(url, retries=0) as client,
        pytest.raises(Unknown, match=message),
    ):
        client.predict({"x": [1.0]}, "m")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *WRONG,
        ({"y": np.float64([1])}, "output 'y': expected float; got double"),
        ({"z": np.float32([1])}, r"expected the outputs \['pair', 'small', 'y'\]; got 'z'"),
    ],
)
def test_other_answers_over_grpc_are_refused(wrong, message):
    answer = predicted({**RIGHT, "small": np.uint8([7]), **wrong})
    with (
        over_grpc(Predict=answer) as url,
        connect(url, retries=0) as client,
        pytest.raises(Unknown, match=message),
    ):
        client.predict({"x": [1.0]}, "m")


@pytest.mark.parametrize("count", [0, 2])
def test_as_many_results_as_examples(count):
    classes, numbers = ClassificationResponse(), RegressionResponse()
    for _ in range(count):
        classes.result.classifications.add()
        numbers.result.regressions.add(value=1)
    answers = {
        "Classify": classes.SerializeToString(),
        "Regress": numbers.SerializeToString(),
    }
    with over_grpc(**answers) as url, connect(url, retries=0) as client:
        for ask in (client.classify, client.regress):
            with pytest.raises(Unknown, match=f"one result for each of 1 examples; got {count}"):
                ask([{"x": 1.0}], "m")
