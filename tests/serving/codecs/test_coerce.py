"""What users pass as inputs: what becomes of it, and what is refused instead of being changed."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.codecs.coerce import coerce
from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.errors import InvalidArgument


def signature(*types, defaults=()):
    """Inputs a, b, ... of these types, given as TensorFlow's type numbers."""
    inputs = {
        name: TensorInfo(f"{name}:0", tf.as_dtype(dtype).as_datatype_enum, None)
        for name, dtype in zip("abc", types, strict=False)
    }
    return Signature(inputs, {}, defaults=dict.fromkeys(defaults, np.zeros(1)))


def converted(value, dtype):
    return coerce(value, signature(dtype))["a"]


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1, 2], "float32", np.float32([1, 2])),
        ([[0.5], [1e300]], "float32", np.float32([[0.5], [np.inf]])),
        (np.array([1.5, -2.0], ">f8"), "float64", np.array([1.5, -2.0])),
        ([1.5], "bfloat16", np.array([1.5], ml_dtypes.bfloat16)),
        ([3], "bfloat16", np.array([3], ml_dtypes.bfloat16)),
        ([1.5, 2], "complex64", np.complex64([1.5, 2])),
        ([1j], "complex64", np.complex64([1j])),
        (np.int64([-128, 127]), "int8", np.int8([-128, 127])),
        (np.uint64([2**63 - 1]), "int64", np.int64([2**63 - 1])),
        ([0, 2**64 - 1], "uint64", np.uint64([0, 2**64 - 1])),
        ([True, False], "bool", np.array([True, False])),
        ([], "int32", np.int32([])),
        ([], "bool", np.array([], bool)),
        ([[]], "complex64", np.zeros((1, 0), "c8")),
    ],
)
def test_numbers(value, dtype, expected):
    got = converted(value, dtype)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("value", "dtype", "said"),
    [
        ([1.0], "int32", "expected int32; got float64"),
        ([1.0], "uint8", "expected uint8; got float64"),
        ([1j], "float64", "expected double; got complex128"),
        ([1j], "int64", "expected int64; got complex128"),
        ([1j], "bfloat16", "expected bfloat16; got complex128"),
        ([True], "int32", "expected int32; got bool"),
        ([True], "float32", "expected float; got bool"),
        ([1], "bool", "expected bool; got int64"),
        (["1"], "float32", "expected float; got <U1"),
        ([2**70], "int64", f"got values from {2**70} to {2**70}"),
        ([-1, 2**64 - 1], "uint64", f"got values from -1 to {2**64 - 1}"),
        ([0.5, 2**64 - 1], "uint64", "expected uint64; got float64"),
        (np.array([1], object), "int64", "expected int64; got object"),
        ([-1, 5], "uint8", "expected uint8, 0 to 255; got values from -1 to 5"),
        ([0, 256], "uint8", "expected uint8, 0 to 255; got values from 0 to 256"),
        (np.uint64([2**63]), "int64", "got values from 9223372036854775808 to 9223372036854775808"),
        ([5.0], "string", "expected text; got float64"),
        ([[1], [2, 3]], "float32", "expected rows of equal length; got ragged lists"),
        ([["a"], ["b", "c"]], "string", "expected rows of equal length; got ragged lists"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "float32", "without a mask; got some"),
    ],
)
def test_what_would_change_is_refused(value, dtype, said):
    with pytest.raises(InvalidArgument, match=r"^input a: ") as caught:
        converted(value, dtype)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["très", b"\xff\x00"], ["très".encode(), b"\xff\x00"]),
        ([b"a\x00", b"\x00\x00"], [b"a\x00", b"\x00\x00"]),
        ("alone", b"alone"),
        (np.array([["a", "bc"]]), [[b"a", b"bc"]]),
        (np.array(["x", b"y\x00"], object), [b"x", b"y\x00"]),
        ([], []),
    ],
)
def test_text(value, expected):
    got = converted(value, "string")
    assert got.dtype == object
    assert got.tolist() == expected


def test_names():
    two = signature("float32", "int32")
    assert list(coerce({"b": [1], "a": [2]}, two)) == ["b", "a"]
    for wrong in ({"a": [1]}, {"a": [1], "b": [1], "c": [1]}, {}):
        with pytest.raises(InvalidArgument, match=r"expected the keys \['a', 'b'\]; got"):
            coerce(wrong, two)
    with pytest.raises(InvalidArgument, match=r"with the keys \['a', 'b'\]; got list"):
        coerce([1], two)
    optional = signature("float32", "int32", defaults=("b",))
    assert list(coerce({"a": [1]}, optional)) == ["a"]
    assert list(coerce({"a": [1], "b": [2]}, optional)) == ["a", "b"]
    with pytest.raises(InvalidArgument, match="got \\['b'\\]"):
        coerce({"b": [1]}, optional)
