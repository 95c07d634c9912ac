"""Varints, compared with protobuf's own."""

from google.protobuf.wrappers_pb2 import UInt64Value
from hypothesis import example, given
from hypothesis import strategies as st

from gru_serving.codecs.wire import read_varint, write_varint


@given(st.integers(1, 2**64 - 1))
@example(127)
@example(128)
@example(2**14 - 1)
@example(2**14)
@example(2**64 - 1)
def test_as_protobuf(value):
    wire = UInt64Value(value=value).SerializeToString()[1:]
    assert write_varint(value) == wire
    # What follows is not part of it.
    assert read_varint(b"\xff" + wire + b"\x01", 1) == (value, 1 + len(wire))


def test_zero_is_one_byte():
    assert write_varint(0) == b"\0"
    assert read_varint(b"\0", 0) == (0, 1)
