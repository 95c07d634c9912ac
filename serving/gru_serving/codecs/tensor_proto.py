"""Conversion between TensorProto and NumPy, shared by server and client."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gru_serving.codecs.dtypes import (
    STRING,
    DType,
    TensorLimitError,
    by_number,
    by_numpy,
    check_rank,
    count_elements,
    string_array,
)
from gru_serving.codecs.large_request import Lists, unpack_list
from gru_serving.codecs.wire import read_varint, write_varint
from gru_serving.errors import InvalidArgument
from gru_serving.protos.input_pb2 import Input
from gru_serving.protos.predict_pb2 import PredictRequest
from gru_serving.protos.tensor_pb2 import TensorProto

# Lists of these fields are the array's own bytes on the wire after a tag and a length.
_RAW_FIELDS = {"float_val": 5, "double_val": 6, "scomplex_val": 9, "dcomplex_val": 12}
# Number of strings after which other threads get a turn.
_SLICE = 1 << 16
# Number of elements up to which converting one by one is faster.
_MAX_SINGLE_ELEMENTS = 32
# A message of a few bytes may announce a tensor of any size by repeating its last value. Beyond
# this many bytes all values must be spelled out, so small requests cannot fill the memory.
_MAX_FILLED = 16 << 20
# Models use far more memory for a text than its bytes. TensorFlow adds this many bytes to each
# string.
_MAX_FILLED_STRINGS = 1 << 20
_STRING_OVERHEAD = 24
# A context is repeated for each example, up to this many bytes in all.
_MAX_CONTEXTS = 64 << 20


def decode_tensor(proto: TensorProto, lists: Lists | None = None) -> np.ndarray:
    """Decode a TensorProto in either of its forms.

    Args:
        proto: The message.
        lists: Lists of numbers that were taken out of the message before.

    Returns:
        An array in native byte order; strings are `object` arrays of `bytes`. It may share memory
        with the message and be read-only.

    Raises:
        InvalidArgument: The message contradicts itself or holds a type without values.
    """
    dtype = by_number(proto.dtype)
    if proto.tensor_shape.unknown_rank:
        raise InvalidArgument("a tensor of unknown rank has no values")
    check_rank(len(proto.tensor_shape.dim), dtype)
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    count = count_elements(shape, dtype)
    if proto.tensor_content:
        flat = _decode_content(proto.tensor_content, dtype, count)
    else:
        flat = _fill(_decode_field(proto, dtype, lists or {}), dtype, count)
    return flat.reshape(shape)


def _decode_content(content: bytes, dtype: DType, count: int) -> np.ndarray:
    if dtype is STRING:
        return _decode_strings(content, count)
    expected = count * dtype.numpy.itemsize
    if len(content) != expected:
        raise InvalidArgument(
            f"tensor_content has {len(content)} bytes, the shape needs {expected}"
        )
    return np.frombuffer(content, dtype.numpy)


def _decode_strings(content: bytes, count: int) -> np.ndarray:
    """Decode strings: their lengths as varints, followed by their bytes."""
    lengths, at = [], 0
    try:
        for _ in range(count):
            length, at = read_varint(content, at)
            lengths.append(length)
    except IndexError:
        raise InvalidArgument("tensor_content ends inside the lengths of its strings") from None
    except ValueError:
        raise InvalidArgument("tensor_content has a length of more than 64 bits") from None
    if at + sum(lengths) != len(content):
        raise InvalidArgument("tensor_content does not hold the strings its lengths announce")
    flat = np.empty(count, object)
    for i, length in enumerate(lengths):
        flat[i] = content[at : at + length]
        at += length
    return flat


def _decode_field(proto: TensorProto, dtype: DType, lists: Lists) -> np.ndarray:
    """Decode listed values, of which there may be fewer than elements."""
    packed = lists.get(dtype.field)
    values = getattr(proto, dtype.field) if packed is None else unpack_list(dtype.field, packed)
    if dtype.numpy.kind == "c":
        parts = np.asarray(values, np.float32 if dtype.field == "scomplex_val" else np.float64)
        return parts[: len(parts) // 2 * 2].view(dtype.numpy)
    if dtype.field == "float8_val":
        return np.frombuffer(values, dtype.numpy)
    if dtype.field == "half_val":
        return np.asarray(values, np.int32).astype(np.uint16).view(dtype.numpy)
    if dtype is STRING:
        flat = np.empty(len(values), object)
        for start in range(0, len(values), _SLICE):
            flat[start : start + _SLICE] = values[start : start + _SLICE]
        return flat
    if dtype.field == "int_val":
        return np.asarray(values, np.int32).astype(dtype.numpy, copy=False)
    return np.asarray(values, dtype.numpy)


def _fill(values: np.ndarray, dtype: DType, count: int) -> np.ndarray:
    """Fill up to one element per entry of the shape: the last value is repeated."""
    if len(values) == count:
        return values
    if len(values) > count:
        return values[:count]
    last: Any = values[-1] if len(values) else (b"" if dtype is STRING else 0)
    size, most = dtype.numpy.itemsize, _MAX_FILLED
    if dtype is STRING:
        size, most = _STRING_OVERHEAD + len(last), _MAX_FILLED_STRINGS
    if (count - len(values)) * size > most:
        raise TensorLimitError(
            f"{len(values)} values for a tensor of {count} elements; the last value is repeated "
            f"up to {most >> 20} MiB only"
        )
    filled = np.empty(count, dtype.numpy)
    filled[: len(values)] = values
    filled[len(values) :] = last
    return filled


def encode_tensor(array: np.ndarray, content: bool = False) -> TensorProto:
    """Encode an array as a TensorProto.

    Args:
        array: Array of any shape; strings as bytes or str of any NumPy kind.
        content: Whether to write raw bytes in `tensor_content` instead of one entry per element in
            a typed list. Strings have a typed list only.

    Raises:
        InvalidArgument: The array's type has no TensorFlow counterpart.
    """
    proto = TensorProto()
    fill_tensor(proto, array, content)
    return proto


def fill_tensor(proto: TensorProto, array: np.ndarray, content: bool = False) -> None:
    """Fill an empty TensorProto, such as a part of another message; see `encode_tensor`."""
    dtype = by_numpy(array.dtype)
    proto.dtype = dtype.number  # type: ignore[assignment]
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    if dtype is STRING:
        strings = array if array.dtype == object else string_array(array)
        try:
            proto.string_val.extend(strings.ravel().tolist())
        except TypeError:
            del proto.string_val[:]
            proto.string_val.extend(string_array(array).ravel().tolist())
    elif content:
        proto.tensor_content = array.astype(dtype.numpy, copy=False).tobytes()
    elif dtype.field in _RAW_FIELDS and array.size > _MAX_SINGLE_ELEMENTS:
        wire = array.astype(dtype.numpy.newbyteorder("<"), copy=False).tobytes()
        tag = write_varint(_RAW_FIELDS[dtype.field] << 3 | 2)
        proto.MergeFromString(tag + write_varint(len(wire)) + wire)
    elif dtype.numpy.kind == "c":
        parts = array.ravel().astype(dtype.numpy).view(dtype.numpy.type(0).real.dtype)
        getattr(proto, dtype.field).extend(parts.tolist())
    elif dtype.field == "float8_val":
        proto.float8_val = array.tobytes()
    else:
        if dtype.field == "half_val":
            array = np.ascontiguousarray(array, dtype.numpy).view(np.uint16)
        getattr(proto, dtype.field).extend(array.ravel().tolist())


def decode_input(proto: Input) -> list[bytes]:
    """Decode the serialized tf.Examples of a Classify or Regress request.

    A shared context is prepended to every example: concatenated messages merge.

    Raises:
        InvalidArgument: The repeated contexts would be out of proportion to the request.
    """
    if proto.HasField("example_list_with_context"):
        listed = proto.example_list_with_context
        context = listed.context.SerializeToString()
        if len(context) * len(listed.examples) > _MAX_CONTEXTS:
            raise InvalidArgument(
                f"a context of {len(context)} bytes for {len(listed.examples)} examples; it is "
                f"repeated up to {_MAX_CONTEXTS >> 20} MiB only"
            )
        return [context + example.SerializeToString() for example in listed.examples]
    return [example.SerializeToString() for example in proto.example_list.examples]


def decode_inputs(
    request: PredictRequest, lists: Mapping[str, Lists] | None = None
) -> dict[str, np.ndarray]:
    """Decode the arrays of a Predict request by input name.

    Args:
        request: The message.
        lists: Lists of numbers that were taken out of the inputs before, by input name.

    Raises:
        TensorLimitError: A tensor that TF Serving might take, but this server does not.
        InvalidArgument: A tensor does not parse; the message is TF Serving's.
    """
    inputs = {}
    for alias, proto in request.inputs.items():
        try:
            inputs[alias] = decode_tensor(proto, lists.get(alias) if lists else None)
        except TensorLimitError as error:
            raise TensorLimitError(f"tensor parsing error: {alias}: {error}") from None
        except InvalidArgument as error:
            raise InvalidArgument(f"tensor parsing error: {alias}") from error
    return inputs
