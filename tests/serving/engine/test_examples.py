"""Classify and Regress without a transport: which signatures and outputs are refused, and how."""

import numpy as np
import pytest

from gru_serving.engine.examples import (
    classify,
    read_classification,
    read_regression,
    regress,
)
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import InvalidArgument
from gru_serving.protos.get_model_metadata_pb2 import SignatureDefMap

FLOAT, STRING = 1, 7


class Session:
    """Has signatures only; no request here gets as far as a run."""

    def __init__(self, inputs, outputs, name="s"):
        self.signatures = SignatureDefMap()
        signature = self.signatures.signature_def[name]
        signature.method_name = "tensorflow/serving/predict"
        for names, infos in ((inputs, signature.inputs), (outputs, signature.outputs)):
            for name, dtype in names.items():
                infos[name].name = f"{name}:0"
                infos[name].dtype = dtype
                infos[name].tensor_shape.dim.add(size=-1)


def refusal(call, *arguments):
    with pytest.raises(InvalidArgument) as caught:
        call(*arguments)
    return str(caught.value)


def shown(field, name, dtype):
    return (
        f'{field} {{\n  key: "{name}"\n  value {{\n    name: "{name}:0"\n    dtype: {dtype}\n'
        "    tensor_shape {\n      dim {\n        size: -1\n      }\n    }\n  }\n}\n"
    )


METHOD = 'method_name: "tensorflow/serving/predict"\n'


@pytest.mark.parametrize("call", [classify, regress])
@pytest.mark.parametrize(("name", "asked"), [("s", "s"), ("serving_default", "")])
def test_signature_without_inputs_is_shown_whole(call, name, asked):
    predictor = Predictor(Session({"x": STRING}, {"scores": FLOAT}, name))
    kind = "classification" if call is classify else "regression"
    assert refusal(call, predictor, asked, [b""]) == (
        f"No {kind} inputs found in SignatureDef: "
        + shown("inputs", "x", "DT_STRING")
        + shown("outputs", "scores", "DT_FLOAT")
        + METHOD
    )


def test_signature_without_outputs_is_shown_whole():
    predictor = Predictor(Session({"inputs": STRING}, {"z": FLOAT, "a": STRING}))
    assert refusal(classify, predictor, "s", [b""]) == (
        'Expected classification signature outputs to contain at least one of "classes" or '
        '"scores". Signature was: '
        + shown("inputs", "inputs", "DT_STRING")
        + shown("outputs", "a", "DT_STRING")
        + shown("outputs", "z", "DT_FLOAT")
        + METHOD
    )
    predictor = Predictor(Session({"inputs": STRING}, {"ä": FLOAT}))
    assert refusal(regress, predictor, "s", [b""]) == (
        "No regression outputs found in SignatureDef: "
        + shown("inputs", "inputs", "DT_STRING")
        + shown("outputs", r"\303\244", "DT_FLOAT")
        + METHOD
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.zeros((), "f"),
         "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got []"),
        (np.zeros((2, 2), "d"),
         "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got [2,2]"),
        (np.zeros(2, "d"), "Input batch size did not match output batch size: 3 vs. 2"),
        (np.zeros((3, 1), "d"), "Expected output Tensor of DT_FLOAT.  Got: DT_DOUBLE"),
    ],
)  # fmt: skip
def test_regressions_that_are_refused(values, text):
    assert refusal(read_regression, {"outputs": values}, 3) == text


LABELS = np.full((3, 2), b"", object)


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"scores": np.zeros(3, "d")},
         "Expected Tensor shape: [batch_size num_classes] but got [3]"),
        ({"scores": np.zeros((2, 2), "d")}, "Expected scores Tensor of DT_FLOAT. Got: DT_DOUBLE"),
        ({"scores": np.zeros((2, 2), "f")}, "Expected scores output batch size of 3. Got: 2"),
        ({"classes": np.zeros((2, 2), "f"), "scores": np.zeros(3, "f")},
         "Expected classes Tensor of DT_STRING. Got: DT_FLOAT"),
        ({"classes": LABELS[:2], "scores": np.zeros(3, "f")},
         "Expected classes output batch size of 3. Got: 2"),
        ({"classes": LABELS, "scores": np.zeros((3, 1), "f")},
         "Tensors class and score should match in dim_size(1). Got 2 vs. 1"),
    ],
)  # fmt: skip
def test_classifications_that_are_refused(outputs, text):
    assert refusal(read_classification, outputs, 3) == text


def test_what_a_signature_does_not_tell_is_empty():
    labels = np.array([[b"a", b"b"]], object)
    assert read_classification({"classes": labels}, 1).rows() == [[(b"a", 0.0), (b"b", 0.0)]]
    scores = np.float32([[0.25, 0.75]])
    assert read_classification({"scores": scores}, 1).rows() == [[(b"", 0.25), (b"", 0.75)]]
