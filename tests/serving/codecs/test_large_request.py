"""Large requests that are read in parts give what protobuf gives when it reads them at once."""

import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from gru_serving.codecs.dtypes import DTYPES, by_number
from gru_serving.codecs.large_request import MOST_FIELDS, measure
from gru_serving.codecs.tensor_proto import decode_input, decode_inputs
from gru_serving.codecs.wire import write_varint
from gru_serving.errors import Internal, ResourceExhausted, ServingError
from gru_serving.protos.classification_pb2 import ClassificationRequest
from gru_serving.protos.inference_pb2 import MultiInferenceRequest
from gru_serving.protos.input_pb2 import Input
from gru_serving.protos.model_management_pb2 import ReloadConfigRequest
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.tensor_pb2 import TensorProto
from tests.serving import hostile, hostile_calls

FLOAT = by_number(1)
LISTS = [one.field for one in DTYPES if one.field not in ("string_val", "float8_val")]
MOST = 512 << 20
START_GROUP = 3  # wire type
CLASSES = {
    "Predict": PredictRequest,
    "Classify": ClassificationRequest,
    "MultiInference": MultiInferenceRequest,
}


def decoded(read, lists=None):
    """What a service extracts from a request, or the error."""
    try:
        if read.DESCRIPTOR is PredictRequest.DESCRIPTOR:
            arrays = decode_inputs(read, lists)
            taken = {
                name: (one.dtype, one.shape, one.ravel().tolist())
                for name, one in sorted(arrays.items())
            }
            rest = read.model_spec, list(read.output_filter)
        else:
            taken = decode_input(read.input)
            rest = read.tasks if hasattr(read, "tasks") else read.model_spec
    except ServingError as error:
        # If several inputs are wrong, protobuf's map may report any of them first.
        several = read.DESCRIPTOR is PredictRequest.DESCRIPTOR and len(read.inputs) > 1
        return error.code, "" if several else error.message
    return repr(taken), str(rest)


def as_protobuf(request_class, raw):
    try:
        message = request_class.FromString(raw)
    except DecodeError:
        return None
    return decoded(message)


def as_ours(request_class, raw):
    try:
        read = measure(request_class, raw, MOST)
        message = request_class.FromString(read.rest)
    except (Internal, DecodeError):  # the service gives both the same answer
        return None
    if read.lists:  # otherwise there are none, or none of them is packed
        assert all(not getattr(one, name) for one in message.inputs.values() for name in LISTS)
    return decoded(message, read.lists)


def holds_group(message):
    """Whether protobuf skipped a group, which our reader refuses (`test_groups`)."""
    inner = []
    for field, value in message.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            inner += value.values()
        elif field.message_type:
            inner += value if field.is_repeated else [value]
    return any(one.wire_type == START_GROUP for one in UnknownFieldSet(message)) or any(
        map(holds_group, inner)
    )


def test_hostile_requests(figures):
    """All of the fuzzer's calls, including broken ones, give the same result."""
    count, readable = hostile.inputs(6000, 100_000), 0
    for number in range(count):
        method, raw = hostile_calls.call(random.Random(number))
        request_class = CLASSES.get(method.rpartition("/")[2])
        if request_class is None:
            continue
        expected = as_protobuf(request_class, raw)
        if expected is not None and holds_group(request_class.FromString(raw)):
            expected = None
        assert as_ours(request_class, raw) == expected, number
        readable += expected is not None
    figures(f"{count} requests, {readable} of them messages, read as protobuf reads them")
    assert readable > count // 3


EDGES = {
    "INT32": (0, 1, -1, 127, 128, 2**31 - 1, -(2**31)),
    "INT64": (0, 1, -1, 127, 128, 2**35, 2**63 - 1, -(2**63)),
    "UINT32": (0, 1, 127, 128, 2**32 - 1),
    "UINT64": (0, 1, 127, 128, 2**35, 2**64 - 1),
    "BOOL": (True, False, True),
    "FLOAT": (0.5, -1.5, 3e38, float("inf")),
    "DOUBLE": (0.5, -1.5, 1e300, float("inf")),
}
WIRE_TYPES = {"FLOAT": 5, "DOUBLE": 1}


def bytes_field(number, content):
    return write_varint(number << 3 | 2) + write_varint(len(content)) + content


def request(*tensor):
    """A PredictRequest with these parts of a tensor x."""
    return bytes_field(2, bytes_field(1, b"x") + bytes_field(2, b"".join(tensor)))


def head(dtype, count):
    proto = TensorProto(dtype=dtype.number)
    proto.tensor_shape.dim.add(size=count)
    return proto.SerializeToString()


@pytest.mark.parametrize("name", list(EDGES))
def test_lists_of_numbers(name):
    """Packed, one by one, in pieces, and with another field in between."""
    for dtype in DTYPES:
        field = TensorProto.DESCRIPTOR.fields_by_name[dtype.field]
        if getattr(field, f"CPPTYPE_{name}") != field.cpp_type:
            continue
        values = EDGES[name] * 3
        packed = TensorProto(**{dtype.field: values}).SerializeToString()
        single = b""
        for value in values:
            payload = TensorProto(**{dtype.field: [value]}).SerializeToString()
            tag = write_varint(field.number << 3 | WIRE_TYPES.get(name, 0))
            single += tag + payload[len(write_varint(field.number << 3 | 2)) + 1 :]
        for lists in ([packed], [single], [packed, b"\x18\x05", single], [single, packed, packed]):
            whole = TensorProto.FromString(b"".join(lists))
            count = len(getattr(whole, dtype.field)) // (1 + (dtype.numpy.kind == "c"))
            raw = request(*lists, head(dtype, count))
            expected = as_protobuf(PredictRequest, raw)
            assert f"({count},)" in str(expected[0])
            assert as_ours(PredictRequest, raw) == expected


@pytest.mark.parametrize("content", [b"\xff" * 10 + b"\x01", b"\x80", b"\1" * 9 + b"\xff"])
def test_varints_that_are_none(content):
    raw = request(bytes_field(10, content), head(by_number(9), 1))
    assert as_protobuf(PredictRequest, raw) is None
    assert as_ours(PredictRequest, raw) is None


def test_long_lists_of_varints():
    """Longer than the parts in which they are read, with numbers across the boundaries."""
    rng = np.random.default_rng(2)
    values = rng.integers(-(2**63), 2**63 - 1, 200_000) >> rng.integers(0, 63, 200_000)
    message = PredictRequest()
    message.inputs["x"].dtype = 9
    message.inputs["x"].tensor_shape.dim.add(size=len(values))
    message.inputs["x"].int64_val.extend(values.tolist())
    read = measure(PredictRequest, message.SerializeToString(), MOST)
    found = decode_inputs(PredictRequest.FromString(read.rest), read.lists)["x"]
    assert found.dtype == np.int64
    assert (found == values).all()


def test_entries_that_repeat():
    """The last entry of a name counts; the parts of one value are merged."""
    first = bytes_field(5, b"\0" * 8)
    two = bytes_field(
        2, bytes_field(2, first) + bytes_field(1, b"x") + bytes_field(2, head(FLOAT, 2))
    )
    for raw in (request(first, head(FLOAT, 2)) + request(head(FLOAT, 1)), two, two + two):
        expected = as_protobuf(PredictRequest, raw)
        assert expected is not None
        assert as_ours(PredictRequest, raw) == expected


def test_examples_with_context():
    """Lists are merged; of the two kinds, the last counts."""
    listed, with_context = Input(), Input()
    listed.example_list.examples.add().features.feature["a"].int64_list.value.append(1)
    inner = with_context.example_list_with_context
    inner.examples.add().features.feature["b"].float_list.value.append(2)
    inner.context.features.feature["c"].bytes_list.value.append(b"3")
    a, b = (bytes_field(2, one.SerializeToString()) for one in (listed, with_context))
    for raw in (a, b, a + a, b + b, a + b, b + a, a + b + a, b""):
        expected = as_protobuf(ClassificationRequest, raw)
        assert expected is not None
        assert as_ours(ClassificationRequest, raw) == expected


EMPTY = {
    "strings": (PredictRequest, lambda count: request(b"\x42\0" * count)),
    "unpacked": (PredictRequest, lambda count: request(b"\x38\1" * count)),
    "dimensions": (PredictRequest, lambda count: request(bytes_field(2, b"\x12\0" * count))),
    "entries": (PredictRequest, lambda count: b"\x12\0" * count),
    "filters": (PredictRequest, lambda count: b"\x1a\0" * count),
    "unknown": (PredictRequest, lambda count: b"\x78\0" * count),
    "examples": (
        ClassificationRequest,
        lambda count: bytes_field(2, bytes_field(1, b"\x0a\0" * count)),
    ),
    "labels": (ReloadConfigRequest, lambda count: bytes_field(1, b"\x0a\0" * count)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_many_small_fields(name):
    """Fields that would take many times their size in memory are refused before they do."""
    request_class, make = EMPTY[name]
    few = measure(request_class, make(1000), MOST)
    assert 64_000 <= few.size < 70_000
    with pytest.raises(ResourceExhausted, match=f"more than {MOST_FIELDS} fields"):
        measure(request_class, make(2 * MOST_FIELDS), MOST)


def test_numbers_that_are_large_once_read():
    small = bytes_field(10, b"\1" * (7 << 20))
    assert 56 << 20 < measure(PredictRequest, request(small), 64 << 20).size < 57 << 20
    with pytest.raises(ResourceExhausted, match="--max_requests_mib=64 allows"):
        measure(PredictRequest, request(bytes_field(10, b"\1" * (9 << 20))), 64 << 20)


def test_messages_in_messages():
    """As deeply nested as protobuf reads them, and deeper."""
    for depth, code in ((10, 100), (10_000, None)):
        variant = b""
        for _ in range(depth):
            variant = bytes_field(15, bytes_field(3, variant))
        raw = request(variant)
        assert (as_protobuf(PredictRequest, raw) is None) == (code is None)
        assert (as_ours(PredictRequest, raw) is None) == (code is None)


def test_groups():
    """Our messages have no groups. Protobuf skips them; here they end the request."""
    raw = request(head(FLOAT, 0)) + b"\x7b\x7c"
    assert as_protobuf(PredictRequest, raw) is not None
    with pytest.raises(Internal, match=r"the request is not a tensorflow\.serving\.PredictRequest"):
        measure(PredictRequest, raw, MOST)
