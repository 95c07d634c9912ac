"""Servers that say what a model answers, and then answer as they like."""

import json

from gru_serving.protos.get_model_metadata_pb2 import GetModelMetadataResponse, SignatureDefMap
from tests.serving.strange_servers import bytes_over_grpc, web

TYPES = {"y": ("DT_FLOAT", 1), "pair": ("DT_FLOAT", 1), "small": ("DT_UINT8", 4)}
SHAPES = {"y": [-1], "pair": [-1, 2], "small": [-1]}
RIGHT = {"y": [1.5], "pair": [[1.0, 2.0]], "small": [7]}


def tensor_json(name):
    sizes = [{"size": str(size)} for size in SHAPES[name]]
    return {"dtype": TYPES[name][0], "tensor_shape": {"dim": sizes}, "name": f"{name}:0"}


METADATA = {
    "model_spec": {"name": "m", "version": "1"},
    "metadata": {
        "signature_def": {
            "signature_def": {
                "serving_default": {
                    "inputs": {"x": {**tensor_json("y"), "name": "x:0"}},
                    "outputs": {name: tensor_json(name) for name in SHAPES},
                }
            }
        }
    },
}


def over_rest(outputs):
    """A server that answers every Predict request with these outputs."""

    def answer(path):
        return json.dumps(METADATA if path.endswith("/metadata") else {"outputs": outputs}).encode()

    return web(200, answer, "application/json")


def over_grpc(**answers):
    signatures = SignatureDefMap()
    signature = signatures.signature_def["serving_default"]
    for name, info in [("x", signature.inputs), *((name, signature.outputs) for name in SHAPES)]:
        of = "y" if name == "x" else name
        info[name].name, info[name].dtype = f"{name}:0", TYPES[of][1]
        for size in SHAPES[of]:
            info[name].tensor_shape.dim.add(size=size)
    metadata = GetModelMetadataResponse()
    metadata.metadata["signature_def"].Pack(signatures)
    return bytes_over_grpc({"GetModelMetadata": metadata.SerializeToString(), **answers})
