"""Requests that once ended, froze or swelled the server, kept so that none does so again.

Each was seen to do so with a version of the server or of TensorFlow. Models are those of
`saved_models`: `echo` gives back what it gets, `grow` adds a dimension, `text` reads words.
"""

import json
from dataclasses import dataclass
from functools import partial

from gru_serving.protos.predict_pb2 import PredictRequest

FLOAT, STRING = 1, 7


@dataclass(frozen=True)
class Killer:
    """One such request.

    Attributes:
        name: What is wrong with it.
        model: That it is for.
        content: Makes the body of a REST request, or a message.
        codes: With which it may be answered: HTTP statuses, or names of gRPC codes.
    """

    name: str
    model: str
    content: object
    codes: tuple


def nested(depth, key="inputs", value="x", signature="string"):
    """A REST body with one value inside this many lists."""
    lists = "[" * depth + json.dumps(value) + "]" * depth
    return f'{{"signature_name": "{signature}", "{key}": {lists}}}'.encode()


def tensor(sizes, signature, dtype=STRING, **values):
    """A PredictRequest for the input `x`."""
    request = PredictRequest()
    request.model_spec.signature_name = signature
    proto = request.inputs["x"]
    proto.dtype = dtype
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    for field, listed in values.items():
        getattr(proto, field).extend(listed)
    return request


REFUSED = (400,)
INVALID = ("INVALID_ARGUMENT",)

REST = (
    Killer("33 dimensions of strings", "echo", partial(nested, 33), REFUSED),
    Killer("33 dimensions of strings, in rows", "echo", partial(nested, 33, "instances"), REFUSED),
    Killer("64 dimensions of strings", "echo", partial(nested, 64), REFUSED),
    Killer("254 dimensions of strings", "echo", partial(nested, 254), REFUSED),
    Killer("strings that become 33 dimensions", "grow",
           partial(nested, 32, signature="strings"), REFUSED),
    Killer("strings of a signature that promises one dimension", "grow",
           partial(nested, 32, signature="declared"), REFUSED),
    Killer("numbers that become strings of 33 dimensions", "grow",
           partial(nested, 33, value=1.5, signature="shown"), REFUSED),
    Killer("numbers that become 65 dimensions", "grow",
           partial(nested, 64, value=1.5, signature="numbers"), REFUSED),
)  # fmt: skip

GRPC = (
    Killer("33 empty dimensions of strings", "echo",
           partial(tensor, [0] * 33, "string"), INVALID),
    Killer("60 dimensions of strings", "echo",
           partial(tensor, [1] * 60, "string", string_val=[b"x"]), INVALID),
    Killer("strings that become 33 dimensions", "grow",
           partial(tensor, [1] * 32, "strings", string_val=[b"x"]), INVALID),
    Killer("no strings that become 33 dimensions", "grow",
           partial(tensor, [0] * 32, "strings"), INVALID),
    Killer("numbers that become strings of 33 dimensions", "grow",
           partial(tensor, [1] * 33, "shown", FLOAT, float_val=[1.5]), INVALID),
    Killer("numbers that become 65 dimensions", "grow",
           partial(tensor, [1] * 64, "numbers", FLOAT, float_val=[1.5]), INVALID),
    Killer("one string of 20 kB for a million", "echo",
           partial(tensor, [1000, 1000], "string", string_val=[b"x" * 20_000]), INVALID),
    Killer("one string of 2 kB for a million", "echo",
           partial(tensor, [1000, 1000], "string", string_val=[b"x" * 2000]), INVALID),
    Killer("one word for 200,000", "echo",
           partial(tensor, [200_000], "string", string_val=[b"word"]), INVALID),
    Killer("40,000 dimensions of 2^62", "echo",
           partial(tensor, [2**62] * 40_000, "float64", 2), INVALID),
    Killer("255 dimensions of 2^62", "echo",
           partial(tensor, [2**62] * 255, "float64", 2), INVALID),
    Killer("300 dimensions of 1", "echo",
           partial(tensor, [1] * 300, "float64", 2, double_val=[1]), INVALID),
    Killer("no elements of a size that NumPy cannot count", "echo",
           partial(tensor, [0, 2**62], "float64", 2), INVALID),
)  # fmt: skip
