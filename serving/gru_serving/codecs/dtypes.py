"""The one table of element types: DataType number, names, NumPy dtype, TensorProto field."""

from collections.abc import Iterable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from gru_serving.errors import InvalidArgument


@dataclass(frozen=True)
class DType:
    """One element type.

    Attributes:
        number: Value of `tensorflow.DataType`.
        name: TensorFlow's lower-case name, as in error texts.
        numpy: NumPy dtype; strings are `object` arrays of `bytes`.
        field: The TensorProto field that holds its values one by one.
    """

    number: int
    name: str
    numpy: np.dtype
    field: str

    @property
    def enum_name(self) -> str:
        """Name of the type in metadata, such as `DT_FLOAT`."""
        return f"DT_{self.name.upper()}"


DTYPES = tuple(
    DType(number, name, np.dtype(numpy), field)
    for number, name, numpy, field in (
        (1, "float", np.float32, "float_val"),
        (2, "double", np.float64, "double_val"),
        (3, "int32", np.int32, "int_val"),
        (4, "uint8", np.uint8, "int_val"),
        (5, "int16", np.int16, "int_val"),
        (6, "int8", np.int8, "int_val"),
        (7, "string", object, "string_val"),
        (8, "complex64", np.complex64, "scomplex_val"),
        (9, "int64", np.int64, "int64_val"),
        (10, "bool", np.bool_, "bool_val"),
        (14, "bfloat16", ml_dtypes.bfloat16, "half_val"),
        (17, "uint16", np.uint16, "int_val"),
        (18, "complex128", np.complex128, "dcomplex_val"),
        (19, "half", np.float16, "half_val"),
        (22, "uint32", np.uint32, "uint32_val"),
        (23, "uint64", np.uint64, "uint64_val"),
        (24, "float8_e5m2", ml_dtypes.float8_e5m2, "float8_val"),
        (25, "float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float8_val"),
    )
)
STRING = next(dtype for dtype in DTYPES if dtype.name == "string")

_BY_NUMBER = {dtype.number: dtype for dtype in DTYPES}
_BY_ENUM_NAME = {dtype.enum_name: dtype for dtype in DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}


def by_number(number: int) -> DType:
    """Find the element type with this DataType number.

    Raises:
        InvalidArgument: The number stands for no type that a tensor can have here.
    """
    try:
        return _BY_NUMBER[number]
    except KeyError:
        raise InvalidArgument(f"DataType {number} is not supported") from None


def by_enum_name(name: str) -> DType:
    """Find the element type with this DataType name, such as `DT_FLOAT`."""
    try:
        return _BY_ENUM_NAME[name]
    except KeyError:
        raise InvalidArgument(f"DataType {name} is not supported") from None


def by_numpy(dtype: np.dtype) -> DType:
    """Find the element type of an array.

    Every kind of string counts as `string`, in any byte order.
    """
    if dtype.kind in "OSUT":
        return STRING
    try:
        return _BY_NUMPY[dtype.newbyteorder("=")]
    except KeyError:
        raise InvalidArgument(f"NumPy dtype {dtype} has no TensorFlow counterpart") from None


def string_array(array: np.ndarray) -> np.ndarray:
    """Convert strings of any kind to an `object` array of `bytes`, with text in UTF-8.

    Raises:
        InvalidArgument: An element is neither str nor bytes, or is text that UTF-8 cannot hold.
    """
    flat = np.empty(array.size, object)
    for i, value in enumerate(array.ravel().tolist()):
        if isinstance(value, str):
            try:
                flat[i] = value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError as error:
                raise InvalidArgument(
                    f"a string tensor holds text in UTF-8; got {value[error.start]!r}, half of a "
                    f"surrogate pair, at character {error.start + 1} of {value!r:.80}"
                ) from None
        elif isinstance(value, bytes):
            flat[i] = value
        else:
            raise InvalidArgument(
                f"a string tensor holds str or bytes; got {type(value).__name__}: {value!r:.80}"
            )
    return flat.reshape(array.shape)


MAX_RANK = 254
"""Greatest number of dimensions of a tensor in TensorFlow."""
MAX_ARRAY_RANK = 64
"""Greatest number of dimensions of an array in NumPy."""
MAX_STRING_RANK = 32
"""Number of dimensions beyond which TensorFlow's conversion of string arrays crashes the
process.
"""

_MAX_BYTES = (1 << 63) - 1


class TensorLimitError(InvalidArgument):
    """A tensor that TensorFlow can represent, but that this server refuses."""


def check_rank(rank: int, dtype: DType) -> None:
    """Check that a tensor may have this many dimensions.

    Raises:
        TensorLimitError: TensorFlow allows the rank, but no array can hold it, or TensorFlow would
            crash.
        InvalidArgument: No tensor may have that many.
    """
    if rank <= MAX_STRING_RANK:
        return
    if rank > MAX_RANK:
        raise InvalidArgument(f"a tensor of {rank} dimensions; expected at most {MAX_RANK}")
    limit = MAX_STRING_RANK if dtype is STRING else MAX_ARRAY_RANK
    if rank > limit:
        raise TensorLimitError(
            f"a tensor of {rank} dimensions; expected at most {limit} of type {dtype.name}"
        )


def check_array(array: np.ndarray) -> None:
    """Check that an array for a model has no more dimensions than `check_rank` allows."""
    if array.ndim > MAX_STRING_RANK:
        check_rank(array.ndim, by_numpy(array.dtype))


def count_elements(sizes: Iterable[int], dtype: DType) -> int:
    """Count the elements of a tensor with these sizes.

    Stops at the first size that exceeds the limit.

    Raises:
        InvalidArgument: A size is negative, or those that are not zero make more bytes than 63
            bits can count.
    """
    most = _MAX_BYTES // dtype.numpy.itemsize
    count, empty = 1, False
    for size in sizes:
        if size < 0:
            raise InvalidArgument(f"a tensor with a dimension of negative size, {size}")
        if size == 0:
            empty = True
            continue
        count *= size
        if count > most:
            raise InvalidArgument("a tensor of more than 2^63 - 1 bytes")
    return 0 if empty else count
