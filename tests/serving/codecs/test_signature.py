"""Checks of names; the texts sent to clients are in test_grpc_service."""

import numpy as np
import pytest

from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.errors import InvalidArgument
from gru_serving.protos.meta_graph_pb2 import SignatureDef


def with_default():
    info = TensorInfo("n:0", 1, ())
    return Signature({"a": info, "b": info, "c": info}, {"y": info}, "m", {"c": np.float32(1)})


def test_defaults_may_be_left_out():
    with_default().check_input_names(["a", "b"])
    with_default().check_input_names(["a", "b", "c"])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "Signature input alias: b(feed name: n:0) not found in request and no default "
                "value provided. Inputs expected to be in the request {a}, or default input "
                "alias set: c"),
        (["a", "b", "z"], "Inputs contains invalid name. Used request inputs: a,b, request "
                          "input: a,b,z"),
    ],
)  # fmt: skip
def test_errors_with_defaults(names, text):
    with pytest.raises(InvalidArgument) as caught:
        with_default().check_input_names(names)
    assert str(caught.value) == text


def test_from_proto():
    proto = SignatureDef(method_name="m")
    info = proto.inputs["x"]
    info.name, info.dtype = "x:0", 1
    info.tensor_shape.dim.add(size=-1)
    proto.outputs["y"].tensor_shape.unknown_rank = True
    default = proto.defaults["x"]
    default.dtype = 1
    default.float_val.append(2.5)
    signature = Signature.from_proto(proto)
    assert signature.inputs == {"x": TensorInfo("x:0", 1, (-1,))}
    assert signature.outputs["y"].shape is None
    assert signature.defaults["x"] == np.float32(2.5)


def test_from_json_leaves_out_what_has_no_type():
    entry = {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [], "unknown_rank": True}, "name": "x:0"}
    signature = Signature.from_json(
        {"inputs": {"x": entry}, "outputs": {"init": {"dtype": "DT_INVALID"}}}
    )
    assert signature.inputs == {"x": TensorInfo("x:0", 1, None)}
    assert signature.outputs == {}
