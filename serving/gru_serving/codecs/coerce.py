"""The conversion of inputs that users pass to arrays of the signature's types."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from gru_serving.codecs.dtypes import STRING, by_number, check_rank, string_array
from gru_serving.codecs.signature import Signature
from gru_serving.errors import InvalidArgument


def coerce(inputs: Mapping[str, Any] | Any, signature: Signature) -> dict[str, np.ndarray]:
    """Convert inputs to arrays of the signature's types.

    Args:
        inputs: Array-likes by name, or one array-like for a signature with one input.
        signature: Signature of the model.

    Raises:
        InvalidArgument: Names do not fit, or a value cannot be converted without loss of meaning.
    """
    expected = signature.inputs
    if not isinstance(inputs, Mapping):
        if len(expected) != 1:
            raise InvalidArgument(
                f"inputs: expected a mapping with the keys {sorted(expected)}; "
                f"got {type(inputs).__name__}"
            )
        inputs = {next(iter(expected)): inputs}
    missing = expected.keys() - inputs.keys() - signature.defaults.keys()
    extra = inputs.keys() - expected.keys()
    if missing or extra:
        raise InvalidArgument(
            f"inputs: expected the keys {sorted(expected)}; got {sorted(map(str, inputs))}"
        )
    return {name: _convert(name, value, expected[name].dtype) for name, value in inputs.items()}


def _convert(name: str, value: Any, number: int) -> np.ndarray:
    dtype = by_number(number)
    if np.ma.is_masked(value):
        raise InvalidArgument(
            f"input {name}: expected values without a mask; got some that are masked; give them a "
            "value with .filled(...)"
        )
    try:
        array = np.asarray(value)
    except UnicodeDecodeError:  # text and bytes mixed: NumPy takes bytes for ASCII
        array = np.array(value, dtype=object)
    except ValueError:
        raise InvalidArgument(
            f"input {name}: expected rows of equal length; got ragged lists"
        ) from None
    try:
        check_rank(array.ndim, dtype)
    except InvalidArgument as error:
        raise InvalidArgument(f"input {name}: {error}") from None
    if dtype is STRING:
        if array.size and array.dtype.kind not in "OSUT":
            raise InvalidArgument(f"input {name}: expected text; got {array.dtype}")
        # NumPy's byte strings have lost trailing NULs, so they are built from the values
        # themselves.
        source = array if isinstance(value, np.ndarray) else np.array(value, dtype=object)
        return string_array(source)
    if array.dtype == dtype.numpy:
        return array
    integers = array.dtype.kind in "iu"
    if dtype.numpy.kind in "iu" and array.dtype.kind in "fO" and not isinstance(value, np.ndarray):
        # NumPy converts integers from 2^63 on to floats if smaller ones stand beside them; Python's
        # integers are exact.
        exact = np.array(value, dtype=object)
        if all(isinstance(one, Integral) for one in exact.flat):
            array, integers = exact, True
    numbers = (integers or array.dtype.kind in "fc") and dtype.numpy.kind != "b"
    if array.size and not numbers:
        raise InvalidArgument(f"input {name}: expected {dtype.name}; got {array.dtype}")
    narrower = {"f": "iu", "c": "iufV"}.get(array.dtype.kind, "")
    if dtype.numpy.kind in narrower and array.size:
        raise InvalidArgument(f"input {name}: expected {dtype.name}; got {array.dtype}")
    if integers and dtype.numpy.kind in "iu" and array.size:
        limits = np.iinfo(dtype.numpy)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise InvalidArgument(
                f"input {name}: expected {dtype.name}, {limits.min} to {limits.max}; "
                f"got values from {low} to {high}"
            )
    with np.errstate(over="ignore"):
        return array.astype(dtype.numpy)
