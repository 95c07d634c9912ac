"""Conversion of JSON to NumPy arrays by TF Serving's rules, and of predict requests to inputs.

Lists of numbers are converted in one call. Only what this call refuses, or might convert
differently, is visited element by element, which gives the same result and the error texts.

Requests come in rows, `{"instances": [...]}`, one element per example, or in columns,
`{"inputs": ...}`, one tensor per input.
"""

import base64
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gru_serving.codecs.dtypes import DType, by_number, check_rank
from gru_serving.codecs.rapidjson.parser import Document, LongList, debug_text
from gru_serving.codecs.signature import Signature, sizes_text
from gru_serving.errors import InvalidArgument, ServingError, Unimplemented

_PART = 1 << 16
_INT32_DTYPES = ("int32", "int16", "int8", "uint8")
_BASE64 = re.compile(r"([A-Za-z0-9+/]*)([=.]*)")
_WHITESPACE_REMOVAL = dict.fromkeys(map(ord, " \t\n\v\f\r"))
_LIMITS = {
    **dict.fromkeys(_INT32_DTYPES, (-(1 << 31), (1 << 31) - 1)),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}


def _limits(name: str, strict: bool) -> tuple[int, int] | None:
    """Return the least and greatest integer of a type; None for types that are not integers."""
    if strict and name in _INT32_DTYPES:
        limits = np.iinfo(name)
        return int(limits.min), int(limits.max)
    return _LIMITS.get(name)


def fast_array(value: Any, dtype: int, has_booleans: bool, strict: bool) -> np.ndarray | None:
    """Convert a value or nested lists in one go.

    Args:
        value: Value that the JSON parser returned.
        dtype: DataType number of the input.
        has_booleans: Whether there may be booleans among the values.
        strict: Whether integers beyond the type do not fit, rather than wrap around.

    Returns:
        The array, or None where only the walk of `Tensor` can tell.
    """
    known = by_number(dtype)
    if isinstance(value, LongList):
        return _long_array(value, known, has_booleans, strict)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], LongList):
        array = _long_array(value[0], known, has_booleans, strict)
        return None if array is None else array[np.newaxis]
    if known.name == "string":
        return _fast_strings(value)
    if has_booleans and known.name != "bool":
        return None
    try:
        array = np.array(value)
    except (ValueError, OverflowError, RecursionError):
        return None
    return _typed(array, known, strict)


def _long_array(
    value: LongList, known: DType, has_booleans: bool, strict: bool
) -> np.ndarray | None:
    """Convert a long list piece by piece, like `fast_array`.

    None where only the element-wise conversion can tell.
    """
    whole: np.ndarray | None = None
    at = 0
    for piece in value.pieces():
        if isinstance(piece, np.ndarray):
            part = _typed(piece, known, strict)
        else:
            part = fast_array(piece, known.number, has_booleans, strict)
        if part is None:
            return None
        if whole is None:
            shape = (len(value), *part.shape[1:])
            if math.prod(shape) > value.text_bytes:  # so they cannot all be of that shape
                return None
            whole = np.empty(shape, part.dtype)
        elif part.shape[1:] != whole.shape[1:]:
            return None
        whole[at : at + len(part)] = part
        at += len(part)
    return whole


def _typed(array: np.ndarray, known: DType, strict: bool) -> np.ndarray | None:
    """Convert numbers or booleans that NumPy read to the type of an input.

    None if they do not fit.
    """
    if known.name in ("float", "double"):
        if array.dtype.kind not in "fiu":
            return None
        with np.errstate(over="ignore"):  # values too large become infinity
            return array.astype(np.float64).astype(known.numpy)
    if known.name == "bool":
        return array if array.dtype == np.bool_ else None
    limits = _limits(known.name, strict)
    if limits is None or array.dtype.kind not in "iu":
        # An empty list is float64 to NumPy and fits every type.
        return array.astype(known.numpy) if array.size == 0 and limits is not None else None
    low, high = limits
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        return None
    return array.astype(known.numpy)


def _fast_strings(value: Any) -> np.ndarray | None:
    if not isinstance(value, list) or not all(type(item) is str for item in value):
        return None
    array = np.empty(len(value), object)
    array[:] = [item.encode("utf-8", "surrogateescape") for item in value]
    return array


class Tensor:
    """The elements of one input, collected from its JSON values.

    Args:
        dtype: DataType number of the input.
        strict: Whether to refuse integers beyond the type, rather than wrap them around.
    """

    def __init__(self, dtype: int, strict: bool = False) -> None:
        self._dtype = by_number(dtype)
        self._limits = _limits(self._dtype.name, strict)
        self._values: list[Any] = []
        # Many values are kept as arrays, which take a quarter of the memory of Python objects.
        self._parts: list[np.ndarray] = []
        self._count = 0

    def add(self, value: Any) -> tuple[tuple[int, ...], int]:
        """Append the elements of one JSON value.

        Returns:
            Shape and number of the elements added.

        Raises:
            InvalidArgument: The value is malformed, in which case the message is TF Serving's, or
                it has more dimensions than a tensor of the type can have.
            Unimplemented: JSON has no form for the type of the input.
        """
        shape = dense_shape(value)
        check_rank(len(shape), self._dtype)
        before = self._count
        self._fill(value, 0, shape)
        return shape, self._count - before

    def array(self, shape: Sequence[int]) -> np.ndarray:
        """Return the elements added so far as an array of that shape.

        Raises:
            InvalidArgument: The shape has more dimensions than a tensor of the type can have.
        """
        check_rank(len(shape), self._dtype)
        return np.concatenate([*self._parts, self._part()]).reshape(shape)

    def _part(self) -> np.ndarray:
        """Return the elements added since the last part."""
        name = self._dtype.name
        if name in _LIMITS:
            wide = np.uint64 if name == "uint64" else np.int64
            return np.array(self._values, wide).astype(self._dtype.numpy)
        if name in ("float", "double"):
            with np.errstate(over="ignore"):
                return np.array(self._values, np.float64).astype(self._dtype.numpy)
        array = np.empty(len(self._values), self._dtype.numpy)
        array[:] = self._values
        return array

    def _fill(self, value: Any, level: int, shape: tuple[int, ...]) -> None:
        rank = len(shape)
        if not isinstance(value, list | LongList):
            if level != rank:
                raise InvalidArgument(
                    f"JSON Value: {debug_text(value)} found at incorrect level: {level + 1} in "
                    f"the JSON DOM. Expected at level: {rank}"
                )
            self._values.append(self._element(value))
            self._count += 1
            if len(self._values) == _PART:
                self._parts.append(self._part())
                self._values = []
            return
        if level >= rank:
            raise InvalidArgument(
                f"Encountered list at unexpected level: {level} expected < {rank}"
            )
        if len(value) != shape[level]:
            raise InvalidArgument(
                f"Encountered list at unexpected size: {len(value)} at level: {level} "
                f"expected size: {shape[level]}"
            )
        for item in value:
            self._fill(item, level + 1, shape)

    def _element(self, value: Any) -> Any:
        name = self._dtype.name
        if isinstance(value, dict):
            if name != "string":
                raise self._type_error(value)
            return decode_base64(value)
        if name in ("float", "double"):
            if isinstance(value, int | float) and not isinstance(value, bool):
                try:
                    return float(value)
                except OverflowError:
                    raise InvalidArgument(
                        "JSON Parse error: Number too big to be stored in double."
                    ) from None
        elif self._limits is not None:
            low, high = self._limits
            if type(value) is int and low <= value <= high:
                return value
        elif name == "string":
            if isinstance(value, str):
                return value.encode("utf-8", "surrogateescape")
        elif name == "bool":
            if isinstance(value, bool):
                return value
        else:
            raise Unimplemented(f"Conversion of JSON Value: {debug_text(value)} to type: {name}")
        raise self._type_error(value)

    def _type_error(self, value: Any) -> InvalidArgument:
        return InvalidArgument(
            f"JSON Value: {debug_text(value)} Type: {type_name(value)} is not of expected type: "
            f"{self._dtype.name}"
        )


def dense_shape(value: Any) -> tuple[int, ...]:
    """Read the shape from the first element of each level."""
    shape = []
    while isinstance(value, list | LongList):
        shape.append(len(value))
        if not len(value):
            break
        value = value[0]
    return tuple(shape)


def type_name(value: Any) -> str:
    """Return RapidJSON's name for the type of a value."""
    if value is None:
        return "Null"
    if isinstance(value, bool):
        return str(value)
    for python, name in ((dict, "Object"), (list | LongList, "Array"), (str, "String")):
        if isinstance(value, python):
            return name
    return "Number"


def is_base64(value: Any) -> bool:
    """Tell whether a value is `{"b64": "..."}`: an object with this one key and a string."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def decode_base64(value: dict[str, Any]) -> bytes:
    """Decode `{"b64": "..."}` as Abseil does.

    White space is ignored. Padding is optional but must be correct if given; dots count as padding.

    Raises:
        InvalidArgument: The text is no base64; the message is TF Serving's.
    """
    if not is_base64(value):
        raise InvalidArgument(
            f"JSON Value: {debug_text(value)} not formatted correctly for base64 data"
        )
    parts = _BASE64.fullmatch(value["b64"].translate(_WHITESPACE_REMOVAL))
    if parts is not None:
        data, padding = parts.groups()
        missing = -len(data) % 4
        if missing < 3 and len(padding) in (0, missing):
            return base64.b64decode(data + "=" * missing)
    raise InvalidArgument("Unable to base64 decode")


def signature_name(document: Document) -> str:
    """Return the `signature_name` of a request; empty if it has none.

    Raises:
        InvalidArgument: The `signature_name` is not a string.
    """
    name = document.value.get("signature_name", "")
    if not isinstance(name, str):
        raise InvalidArgument(
            f"JSON Value: {debug_text(document.value)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return name


def decode_inputs(
    document: Document, signature: Signature, name: str = "", strict: bool = False
) -> tuple[dict[str, np.ndarray], bool]:
    """Decode the input tensors of a predict request.

    Args:
        document: The request.
        signature: Signature that it is for.
        name: Signature name, as in the request; empty for the default one.
        strict: Whether to refuse integers beyond the type of their input, rather than wrap them
            around.

    Returns:
        Arrays by input name; and whether the request is in row format, as the answer has to be.

    Raises:
        InvalidArgument: The request does not fit the signature; the message is TF Serving's.
        Unimplemented: An input of a type that JSON has no form for.
    """
    value = document.value
    if not signature.inputs:
        raise InvalidArgument(f"Failed to get input map for signature: {name or 'DEFAULT'}")
    if "instances" in value and "inputs" in value:
        raise InvalidArgument(
            f"JSON Value: {debug_text(value)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if "instances" in value:
        instances = value["instances"]
        if not isinstance(instances, list | LongList):
            raise InvalidArgument(
                f"JSON Value: {debug_text(value)} Expecting 'instances' to be an list/array"
            )
        if not instances:
            raise InvalidArgument(f"JSON Value: {debug_text(value)} No values in 'instances' array")
        return _rows(instances, signature, document.has_booleans, strict), True
    if "inputs" in value:
        return _columns(value["inputs"], signature, document.has_booleans, strict), False
    raise InvalidArgument("Missing 'inputs' or 'instances' key")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _rows(
    instances: Sequence[Any], signature: Signature, booleans: bool, strict: bool
) -> dict[str, np.ndarray]:
    inputs = signature.inputs
    if len(inputs) > 1 and not isinstance(instances[0], dict):
        raise InvalidArgument(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    if not _is_object(instances[0]):
        name = min(inputs)
        array = fast_array(instances, inputs[name].dtype, booleans, strict)
        if array is None:
            array = _walk_plain(instances, inputs[name].dtype, strict)
        return {name: array}
    done = _fast_objects(instances, signature, booleans, strict)
    return _walk_objects(instances, signature, strict) if done is None else done


def _fast_objects(
    instances: Sequence[Any], signature: Signature, booleans: bool, strict: bool
) -> dict[str, np.ndarray] | None:
    """Convert rows that are objects in one call.

    None where only the element-wise conversion can tell.
    """
    if isinstance(instances, LongList):
        parts = []
        for piece in instances.pieces():
            part = _fast_objects(list(piece), signature, booleans, strict)
            if part is None:
                return None
            parts.append(part)
        try:
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        except ValueError:  # rows of different shapes
            return None
    keys = signature.inputs.keys()
    if not all(isinstance(row, dict) and row.keys() == keys for row in instances):
        return None
    done = {}
    for name, info in signature.inputs.items():
        array = fast_array([row[name] for row in instances], info.dtype, booleans, strict)
        if array is None:
            return None
        done[name] = array
    return done


class _Batch:
    """One input of a request in row format: elements that must have the shape of the first."""

    def __init__(self, dtype: int, strict: bool) -> None:
        self._tensor = Tensor(dtype, strict)
        self._first: tuple[tuple[int, ...], int] | None = None

    def add(self, value: Any) -> None:
        shape, size = self._tensor.add(value)
        if self._first is None:
            self._first = shape, size
            return
        first_shape, first_size = self._first
        if size != first_size:
            raise InvalidArgument(f"Expecting tensor size: {first_size} but got: {size}")
        if shape != first_shape:
            raise InvalidArgument(
                f"Expecting shape {sizes_text(first_shape)} but got: {sizes_text(shape)}"
            )

    def array(self, count: int) -> np.ndarray:
        assert self._first is not None
        return self._tensor.array((count, *self._first[0]))


def _walk_plain(instances: Sequence[Any], dtype: int, strict: bool) -> np.ndarray:
    batch = _Batch(dtype, strict)
    for i, value in enumerate(instances):
        if _is_object(value):
            raise InvalidArgument(f"Expecting value/list but got object at item {i} of input list")
        try:
            batch.add(value)
        except ServingError as error:
            raise InvalidArgument(
                f"Failed to process element: {i} of 'instances' list. Error: {error.status}"
            ) from None
    return batch.array(len(instances))


def _walk_objects(
    instances: Sequence[Any], signature: Signature, strict: bool
) -> dict[str, np.ndarray]:
    batches = {name: _Batch(info.dtype, strict) for name, info in signature.inputs.items()}
    for i, row in enumerate(instances):
        if not _is_object(row):
            raise InvalidArgument(f"Expecting object but got list at item {i} of input list")
        for key, value in row.items():
            try:
                if key not in batches:
                    raise InvalidArgument(f"JSON object: does not have named input: {key}")
                batches[key].add(value)
            except ServingError as error:
                raise InvalidArgument(
                    f"Failed to process element: {i} key: {key} of 'instances' list. "
                    f"Error: {error.status}"
                ) from None
        if row.keys() != batches.keys():
            raise InvalidArgument(
                f"Failed to process element: {i} of 'instances' list. JSON object: "
                f"{debug_text(row)} keys must be equal to: {','.join(sorted(batches))}"
            )
    return {name: batch.array(len(instances)) for name, batch in batches.items()}


def _columns(
    value: Any, signature: Signature, booleans: bool, strict: bool
) -> dict[str, np.ndarray]:
    inputs = signature.inputs
    if not _is_object(value):
        if len(inputs) > 1:
            raise InvalidArgument(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        value = {next(iter(inputs)): value}
    arrays = {}
    for name, info in inputs.items():
        if name not in value:
            raise InvalidArgument(f"Missing named input: {name} in 'inputs' object.")
        array = fast_array(value[name], info.dtype, booleans, strict)
        if array is None:
            tensor = Tensor(info.dtype, strict)
            shape, _ = tensor.add(value[name])
            array = tensor.array(shape)
        arrays[name] = array
    return arrays
