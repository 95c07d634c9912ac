"""Large gRPC requests, measured before protobuf parses them.

Protobuf parses a message in one call, during which it holds the interpreter lock, and a message of
many small fields takes a hundred times its bytes. Fields are therefore counted first, and lists of
numbers, which may be long, are converted directly from the wire to NumPy.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from gru_serving.codecs.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    count_varints,
    fields,
    unpack_varints,
    write_varint,
)
from gru_serving.errors import Internal, ResourceExhausted
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.tensor_pb2 import TensorProto

MOST_FIELDS = 1 << 20
"""Greatest number of fields of one request with its nested messages; a packed list counts as
one.
"""

# Approximate size of a field in protobuf's memory.
_FIELD_SIZE = 64
# Protobuf's own limit.
_MAX_DEPTH = 100
_DTYPES: dict[int, np.dtype[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: np.dtype(np.int32),
    FieldDescriptor.CPPTYPE_INT64: np.dtype(np.int64),
    FieldDescriptor.CPPTYPE_UINT32: np.dtype(np.uint32),
    FieldDescriptor.CPPTYPE_UINT64: np.dtype(np.uint64),
    FieldDescriptor.CPPTYPE_BOOL: np.dtype(np.bool_),
    FieldDescriptor.CPPTYPE_ENUM: np.dtype(np.int32),
    FieldDescriptor.CPPTYPE_FLOAT: np.dtype("<f4"),
    FieldDescriptor.CPPTYPE_DOUBLE: np.dtype("<f8"),
}
_LISTS = {
    field.number: (field.name, _DTYPES[field.cpp_type])
    for field in TensorProto.DESCRIPTOR.fields
    if field.is_repeated and field.cpp_type in _DTYPES
}
_LIST_DTYPES = dict(_LISTS.values())
_KEY, _VALUE = 1, 2

Lists: TypeAlias = dict[str, bytearray]
"""The values of a TensorProto's lists of numbers as they stand on the wire, packed."""


class Measured(NamedTuple):
    """A request that was measured but not parsed.

    Attributes:
        rest: Bytes of the request, without the lists of numbers of a PredictRequest.
        lists: The lists, by the name of the input.
        size: Bytes that fields and lists will take.
    """

    rest: bytes
    lists: dict[str, Lists]
    size: int


def measure(request_class: type[Message], raw: bytes, most: int) -> Measured:
    """Estimate the memory of a request, and take the long lists out of it.

    Args:
        request_class: Class of the request.
        raw: Bytes as sent.
        most: Bytes that it may take.

    Raises:
        Internal: The bytes are no such request, with the message of gRPC's own libraries; or they
            hold a group.
        ResourceExhausted: The request takes more bytes, or has more fields than `MOST_FIELDS`.
    """
    footprint = _Footprint(raw, most)
    try:
        footprint.add(request_class.DESCRIPTOR, 0, len(raw))
        if request_class is PredictRequest and footprint.packed:
            return Measured(*_without_lists(raw), footprint.size)
    except ValueError:
        raise no_request(request_class) from None
    return Measured(raw, {}, footprint.size)


def no_request(request_class: type[Message]) -> Internal:
    """Make the error for bytes that are no message of this type."""
    return Internal(f"the request is not a {request_class.DESCRIPTOR.full_name}")


def unpack_list(name: str, content: bytearray) -> np.ndarray:
    """Unpack the numbers of a list that was taken out.

    Args:
        name: Name of the field of TensorProto.
        content: Bytes of the list, as in `Lists`.
    """
    dtype = _LIST_DTYPES[name]
    if dtype.kind == "f":
        return np.frombuffer(content, dtype)
    data = np.frombuffer(content, np.uint8)
    values = np.empty(count_varints(data), dtype)
    unpack_varints(data, values)
    return values


class _Footprint:
    """A count of the bytes that the fields of a request take in memory."""

    def __init__(self, raw: bytes, most: int) -> None:
        self._raw = raw
        self._most = most
        self._fields = 0
        self.packed = 0

    @property
    def size(self) -> int:
        return self.packed + self._fields * _FIELD_SIZE

    def add(self, descriptor: Any, start: int, end: int, depth: int = _MAX_DEPTH) -> None:
        """Count the fields of the message at this position."""
        if not depth:
            raise ValueError("messages nested deeper than protobuf reads")
        known = _known(descriptor)
        for number, kind, _, payload, at in fields(self._raw, start, end):
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise ResourceExhausted(
                    f"the request has more than {MOST_FIELDS} fields, such as strings, dimensions "
                    "or features; split it into several requests"
                )
            if kind == LENGTH and number in known and at > payload:
                inner = known[number]
                if isinstance(inner, np.dtype):
                    self.packed += self._count(payload, at, inner) * inner.itemsize
                else:
                    self.add(inner, payload, at, depth - 1)
            if self.size > self._most:
                raise ResourceExhausted(
                    "the request takes more memory when decoded than "
                    f"--max_requests_mib={self._most >> 20} allows"
                )

    def _count(self, start: int, end: int, dtype: np.dtype[Any]) -> int:
        if dtype.kind != "f":
            return count_varints(np.frombuffer(self._raw, np.uint8, end - start, start))
        count, rest = divmod(end - start, dtype.itemsize)
        if rest:
            raise ValueError("half a number")
        return count


@functools.cache
def _known(descriptor: Any) -> dict[int, Any]:
    """Map the numbers of fields with a length that hold messages or numbers to their types."""
    return {
        field.number: field.message_type or _DTYPES[field.cpp_type]
        for field in descriptor.fields
        if field.message_type or (field.is_repeated and field.cpp_type in _DTYPES)
    }


def _without_lists(raw: bytes) -> tuple[bytes, dict[str, Lists]]:
    """Return a PredictRequest without its tensors' lists of numbers, and these lists.

    Rules are protobuf's: the last entry of a name counts, the parts of one entry are merged, and an
    entry with a field of another kind is ignored.
    """
    lists: dict[str, Lists] = {}
    view = memoryview(raw)

    def of_request(number: int, kind: int, _: int, payload: int, at: int) -> bytes | None:
        if number != PredictRequest.INPUTS_FIELD_NUMBER or kind != LENGTH:
            return None
        key, taken, counts = b"", Lists(), True

        def of_entry(number: int, kind: int, _: int, payload: int, at: int) -> bytes | None:
            nonlocal key, counts
            counts = counts and number in (_KEY, _VALUE) and kind == LENGTH
            if number == _KEY and kind == LENGTH:
                key = raw[payload:at]
            if number != _VALUE or kind != LENGTH:
                return None
            return _field(number, _changed(raw, payload, at, of_tensor))

        def of_tensor(number: int, kind: int, _: int, payload: int, at: int) -> bytes | None:
            name, dtype = _LISTS.get(number, ("", None))
            if dtype is None or kind not in (LENGTH, _kind(dtype)):
                return None
            taken.setdefault(name, bytearray()).extend(view[payload:at])
            return b""

        entry = _changed(raw, payload, at, of_entry)
        name = key.decode()
        if counts:
            lists[name] = taken
        return _field(number, entry)

    return _changed(raw, 0, len(raw), of_request), lists


def _changed(raw: bytes, start: int, end: int, change: Callable[..., bytes | None]) -> bytes:
    """Rewrite the fields of a message with `change`; None keeps a field."""
    pieces: list[bytes] = []
    kept = start
    for field in fields(raw, start, end):
        if (changed := change(*field)) is not None:
            pieces += raw[kept : field[2]], changed
            kept = field[-1]
    return b"".join([*pieces, raw[kept:end]])


def _field(number: int, payload: bytes) -> bytes:
    return write_varint(number << 3 | LENGTH) + write_varint(len(payload)) + payload


def _kind(dtype: np.dtype[Any]) -> int:
    """Return the wire type of a single value."""
    if dtype.kind != "f":
        return VARINT
    return FIXED32 if dtype.itemsize == 4 else FIXED64
