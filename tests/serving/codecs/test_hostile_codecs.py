"""Both codecs, given bytes and messages that nobody should send: an array or a refusal, soon."""

import random
import time

import numpy as np
import pytest
from tensorflow.core.framework import tensor_pb2

from gru_serving.codecs.dtypes import DTYPES
from gru_serving.codecs.json_example import parse_examples
from gru_serving.codecs.json_inputs import decode_inputs, signature_name
from gru_serving.codecs.rapidjson.parser import parse
from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.codecs.tensor_proto import decode_tensor, encode_tensor
from gru_serving.errors import InvalidArgument, ServingError
from gru_serving.protos.tensor_pb2 import TensorProto
from tests.serving import hostile, hostile_calls, hostile_http

PATIENCE = 60.0
ONE_INPUT = [Signature({"x": TensorInfo("x:0", dtype.number, None)}, {}) for dtype in DTYPES]
TWO_INPUTS = Signature({"x": TensorInfo("x:0", 1, None), "b": TensorInfo("b:0", 7, None)}, {})


def refused(call):
    """The error of a call, or None if there was none. Any other exception is a bug."""
    started = time.monotonic()
    try:
        call()
    except ServingError as error:
        return error
    finally:
        assert time.monotonic() - started < PATIENCE
    return None


def read_json(body):
    error = refused(lambda: signature_name(parse(body)))
    if error is not None:
        return 0
    parsed = parse(body)
    errors = [
        refused(lambda one=one: decode_inputs(parsed, one)) for one in (*ONE_INPUT, TWO_INPUTS)
    ]
    refused(lambda: parse_examples(body))
    return sum(error is None for error in errors)


def test_json(figures):
    count = hostile.inputs(1000, 50_000)
    read = sum(read_json(hostile_http.body(random.Random(number))) > 0 for number in range(count))
    figures(f"{count} bodies, {read} of them readable for some signature")
    assert count // 100 < read < count // 2


def test_tensors(figures):
    count = hostile.inputs(1000, 50_000)
    read = 0
    for number in range(count):
        theirs = hostile_calls.tensor(random.Random(number), tensor_pb2.TensorProto())
        proto = TensorProto.FromString(theirs.SerializeToString())
        error = refused(lambda proto=proto: decode_tensor(proto))
        if error is None:
            array = decode_tensor(proto)
            again = decode_tensor(encode_tensor(array)) if array.size < 10_000 else array
            assert array.shape == again.shape == tuple(d.size for d in proto.tensor_shape.dim)
            read += 1
    figures(f"{count} tensors, {read} of them readable")
    assert count // 100 < read < count


def filled(count, dtype=1):
    proto = TensorProto(dtype=dtype, float_val=[1.0], string_val=[b"a"])
    proto.tensor_shape.dim.add(size=count)
    return proto


def test_one_value_stands_for_many_but_not_for_any_number():
    array = decode_tensor(filled(1 << 20))
    assert array.shape == (1 << 20,)
    assert (array == 1).all()
    for count in (1 << 25, 1 << 40, (1 << 61) - 1):
        with pytest.raises(InvalidArgument, match=f"1 values for a tensor of {count} elements"):
            decode_tensor(filled(count))
    with pytest.raises(InvalidArgument, match=r"a tensor of more than 2\^63 - 1 bytes"):
        decode_tensor(filled(1 << 61))
    # Strings count with their bytes, not with those of a reference to them.
    assert decode_tensor(filled(20_000, dtype=7)).tolist() == [b"a"] * 20_000
    with pytest.raises(InvalidArgument, match=r"1 values .* repeated up to 1 MiB only"):
        decode_tensor(filled(200_000, dtype=7))
    # Spelled out, a tensor may have any size.
    spelled = encode_tensor(np.zeros(1 << 25, np.float32), content=True)
    assert decode_tensor(spelled).nbytes == 1 << 27


def test_feature_name_that_is_no_text():
    with pytest.raises(InvalidArgument, match="has a name that is not UTF-8"):
        parse_examples(b'{"examples": [{"t\xe0": 1}]}')


def test_endless_length_of_a_string():
    proto = TensorProto(dtype=7, tensor_content=b"\x80" * 1_000_000 + b"\x01")
    proto.tensor_shape.dim.add(size=1)
    started = time.monotonic()
    with pytest.raises(InvalidArgument, match="more than 64 bits"):
        decode_tensor(proto)
    assert time.monotonic() - started < PATIENCE
