"""What `gru-serve predict` prints about a server that lies over gRPC."""

import numpy as np
import pytest

from gru_serving.__main__ import main
from gru_serving.codecs.tensor_proto import encode_tensor
from gru_serving.protos.get_model_metadata_pb2 import GetModelMetadataResponse, SignatureDefMap
from gru_serving.protos.predict_pb2 import PredictResponse
from gru_serving.protos.tensor_pb2 import TensorProto
from tests.serving.commands.lying_server import EVIL, GOOD, RAW
from tests.serving.strange_servers import bytes_over_grpc


def over_grpc(outputs):
    """The server of a classifier that answers with these tensors, by name of the output."""
    signatures = SignatureDefMap()
    default = signatures.signature_def["serving_default"]
    default.inputs["text"].dtype = 7
    default.inputs["text"].tensor_shape.dim.add(size=-1)
    for name in GOOD["serving_default"]:
        default.outputs[name].dtype = 7 if name == "label" else 1
        for size in (-1, 2) if name == "scores" else (-1,):
            default.outputs[name].tensor_shape.dim.add(size=size)
    metadata = GetModelMetadataResponse()
    metadata.model_spec.version.value = 1
    metadata.metadata["signature_def"].Pack(signatures)
    response = PredictResponse()
    for name, proto in outputs.items():
        response.outputs[name].CopyFrom(proto)
    return {
        "GetModelMetadata": metadata.SerializeToString(),
        "Predict": response.SerializeToString(),
    }


def proto(dtype, *dims, **fields):
    made = TensorProto(dtype=dtype, **fields)
    made.tensor_shape.SetInParent()
    for size in dims:
        made.tensor_shape.dim.add(size=size)
    return made


FINE = {name: encode_tensor(np.array(value, object if name == "label" else np.float32))
        for name, value in GOOD["serving_default"].items()}  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({}, "no output 'label'"),
        ({"label": FINE["scores"]}, "output 'label': expected string; got float"),
        ({"label": proto(7, 1, string_val=[EVIL.encode()])}, None),
        ({"label": proto(7, 1, string_val=[b"\xff\xfe\x1b"])}, None),
        ({"scores": proto(99, 1)}, "the server's answer"),
        ({"scores": proto(1, -5)}, "negative size"),
        ({"scores": proto(1, 2**40, float_val=[1])}, "the server's answer"),
        ({"scores": proto(1, *[2] * 70, float_val=[1])}, "the server's answer"),
        ({"scores": proto(1, 3, tensor_content=b"12345")}, "the server's answer"),
        ({"probability": proto(1, 0)}, "output 'probability': expected shape [1]; got [0]"),
        ({"probability": proto(9, 2, int64_val=[2**62, -1])}, "expected float; got int64"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("output", ["table", "json"])
def test_answers_over_grpc(capsys, outputs, said, output):
    answer = over_grpc({**FINE, **outputs} if outputs else {})
    with bytes_over_grpc(answer) as url:
        status = main(["predict", "--url", url, "--model", "m", "--output", output, "text"])
    printed, complained = capsys.readouterr()
    assert (status == 0) == (said is None)
    assert not RAW.search(printed + complained)
    assert "Traceback" not in complained
    assert complained.count("\n") == (said is not None)
    assert said is None or said in complained
