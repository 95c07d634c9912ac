"""JSON requests in, arrays or exact error texts out."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gru_serving.codecs import json_inputs
from gru_serving.codecs.json_inputs import decode_base64
from gru_serving.codecs.rapidjson.parser import parse
from gru_serving.errors import Code, InvalidArgument, ServingError, Unimplemented
from tests.serving.codecs.signatures import signature


def decode(text, strict=False, **inputs):
    document = parse(text if isinstance(text, bytes) else text.encode())
    name = json_inputs.signature_name(document)
    return json_inputs.decode_inputs(document, signature(**inputs), name, strict)


@given(
    st.sampled_from(["int8", "uint8", "int16", "int32"]),
    st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=5),
    st.sampled_from(['{{"instances": {}}}', '{{"inputs": {}}}', '{{"inputs": {{"x": {}}}}}']),
)
def test_integers_beyond_the_type_wrap_or_are_refused(dtype, values, form):
    """Modulo 2 to the power of the bits, as C++ casts; strictly, only what fits is taken."""
    text = form.format(json.dumps(values))
    array = decode(text, x=dtype)[0]["x"]
    bits = 8 * array.itemsize
    assert [(int(got) - value) % (1 << bits) for got, value in zip(array, values, strict=True)] == [
        0
    ] * len(values)
    limits = np.iinfo(dtype)
    if all(limits.min <= value <= limits.max for value in values):
        assert decode(text, strict=True, x=dtype)[0]["x"].tolist() == values
    else:
        with pytest.raises(InvalidArgument, match=f"is not of expected type: {dtype}"):
            decode(text, strict=True, x=dtype)


def test_strict_integers_hold_for_rows_of_objects():
    rows = '{"instances": [{"x": 1, "y": 2}, {"x": 300, "y": 2}]}'
    assert decode(rows, x="uint8", y="uint8")[0]["x"].tolist() == [1, 44]
    with pytest.raises(InvalidArgument, match=r"element: 1 key: x .* of expected type: uint8"):
        decode(rows, strict=True, x="uint8", y="uint8")


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ('{"instances": [1, 2.5, -3]}', "float", np.float32([1, 2.5, -3])),
        ('{"instances": [[1],[2]]}', "double", np.float64([[1], [2]])),
        ('{"instances": [[],[]]}', "int32", np.zeros((2, 0), np.int32)),
        ('{"instances": [1e39, -1e39, 1e-50]}', "float", np.float32([np.inf, -np.inf, 0])),
        ('{"instances": [NaN, Inf, -Infinity]}', "float", np.float32([np.nan, np.inf, -np.inf])),
        ('{"instances": [16777217]}', "float", np.float32([16777216])),
        ('{"instances": [18446744073709551616]}', "double", np.float64([2.0**64])),
        ('{"instances": [true, false], "x": 1}', "bool", np.array([True, False])),
        ('{"instances": [{"x": 1}, {"x": 2}]}', "float", np.float32([1, 2])),
        (
            '{"instances": ["a", {"b64": "YgA"}, {"b64": "Yg=="}]}',
            "string",
            np.array([b"a", b"b\x00", b"b"], object),
        ),
        ('{"instances": [["a"], ["☃"]]}', "string", np.array([[b"a"], ["☃".encode()]], object)),
        ('{"inputs": 3}', "float", np.float32(3)),
        ('{"inputs": [[1, 2]]}', "int64", np.int64([[1, 2]])),
        ('{"inputs": {"x": [1]}}', "float", np.float32([1])),
        ('{"inputs": {"x": [1], "extra": [true]}}', "float", np.float32([1])),
        ('{"inputs": {"b64": "YQ=="}}', "string", np.array(b"a", object)),
        ('{"inputs": "text"}', "string", np.array(b"text", object)),
        ('{"instances": [1, 2], "flag": true}', "float", np.float32([1, 2])),
    ],
)
def test_one_input(text, dtype, expected):
    inputs, row = decode(text, x=dtype)
    assert row == ("instances" in text)
    assert inputs["x"].dtype == expected.dtype
    assert inputs["x"].shape == expected.shape
    np.testing.assert_array_equal(inputs["x"], expected)


def test_two_inputs_in_rows():
    inputs, _ = decode(
        '{"instances":[{"a":[1,2],"b":"u"},{"b":"v","a":[3,4]}]}', a="float", b="string"
    )
    np.testing.assert_array_equal(inputs["a"], np.float32([[1, 2], [3, 4]]))
    assert inputs["b"].tolist() == [b"u", b"v"]


ROW = "Failed to process element: %d of 'instances' list. Error: INVALID_ARGUMENT: %s"
KEY = "Failed to process element: %d key: %s of 'instances' list. Error: INVALID_ARGUMENT: %s"


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        ('{"signature_name": 3}', {}, 'JSON Value: {\n    "signature_name": 3\n} not formatted '
         "correctly. 'signature_name' key must be a string value."),
        ("{}", {}, "Missing 'inputs' or 'instances' key"),
        ('{"inputs":1,"instances":[1]}', {}, 'JSON Value: {\n    "inputs": 1,\n    "instances": [\n'
         "        1\n    ]\n} Not formatted correctly expecting only one of 'inputs' or "
         "'instances' keys to exist "),
        ('{"instances":{}}', {}, 'JSON Value: {\n    "instances": {}\n} Expecting '
         "'instances' to be an list/array"),
        ('{"instances":[]}', {}, "JSON Value: {\n    \"instances\": []\n} No values in "
         "'instances' array"),
        ('{"instances":[1]}', {"a": "float", "b": "float"},
         "instances is a plain list, but expecting list of objects as multiple input tensors "
         "required as per tensorinfo_map"),
        ('{"inputs":[1]}', {"a": "float", "b": "float"},
         "inputs is a plain value/list, but expecting an object as multiple input tensors "
         "required as per tensorinfo_map"),
        ('{"inputs":{"a":1}}', {"a": "float", "b": "float"},
         "Missing named input: b in 'inputs' object."),
        ('{"instances":[{"x":1},2]}', {}, "Expecting object but got list at item 1 of input list"),
        ('{"instances":[1,{"x":2}]}', {},
         "Expecting value/list but got object at item 1 of input list"),
        ('{"instances":[{"x":1},{"y":2}]}', {},
         KEY % (1, "y", "JSON object: does not have named input: y")),
        ('{"instances":[{"a":1}]}', {"b": "float", "a": "float"},
         "Failed to process element: 0 of 'instances' list. JSON object: {\n    \"a\": 1\n} keys "
         "must be equal to: a,b"),
        ('{"instances":[[1,2],[3]]}', {}, ROW % (1, "Expecting tensor size: 2 but got: 1")),
        ('{"instances":[[1,2],[[3,4]]]}', {},
         ROW % (1, "Expecting shape [2] but got: [1,2]")),
        ('{"instances":["a"]}', {},
         ROW % (0, 'JSON Value: "a" Type: String is not of expected type: float')),
        ('{"instances":[1,null]}', {},
         ROW % (1, "JSON Value: null Type: Null is not of expected type: float")),
        ('{"instances":[1,true]}', {},
         ROW % (1, "JSON Value: true Type: True is not of expected type: float")),
        ('{"instances":[{"b64":"YQ=="}]}', {},
         ROW % (0, 'JSON Value: {\n    "b64": "YQ=="\n} Type: Object is not of expected type: '
                   "float")),
        ('{"instances":[2.0]}', {"x": "int32"},
         ROW % (0, "JSON Value: 2.0 Type: Number is not of expected type: int32")),
        ('{"instances":[1]}', {"x": "bool"},
         ROW % (0, "JSON Value: 1 Type: Number is not of expected type: bool")),
        ('{"instances":[1]}', {"x": "string"},
         ROW % (0, "JSON Value: 1 Type: Number is not of expected type: string")),
        ('{"instances":[[1,[2]]]}', {},
         ROW % (0, "Encountered list at unexpected level: 1 expected < 1")),
        ('{"instances":[[[1],2]]}', {},
         ROW % (0, "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: "
                   "2")),
        ('{"instances":[[[1],[2,3]]]}', {},
         ROW % (0, "Encountered list at unexpected size: 2 at level: 1 expected size: 1")),
        ('{"instances":[{"b64":"!"}]}', {"x": "string"}, ROW % (0, "Unable to base64 decode")),
        ('{"instances":["a", {"b64":1}]}', {"x": "string"},
         "Expecting value/list but got object at item 1 of input list"),
        ('{"inputs":["a", {"b64":1}]}', {"x": "string"},
         'JSON Value: {\n    "b64": 1\n} not formatted correctly for base64 data'),
        ('{"instances":[{"x":"a"}]}', {},
         KEY % (0, "x", 'JSON Value: "a" Type: String is not of expected type: float')),
    ],
)  # fmt: skip
def test_errors(text, inputs, message):
    with pytest.raises(ServingError) as caught:
        decode(text, **(inputs or {"x": "float"}))
    assert str(caught.value) == message
    assert caught.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"),
    [
        ("int64", -(2**63), 2**63 - 1),
        ("int32", -(2**31), 2**31 - 1),
        ("int16", -(2**31), 2**31 - 1),
        ("uint8", -(2**31), 2**31 - 1),
        ("uint32", 0, 2**32 - 1),
        ("uint64", 0, 2**64 - 1),
    ],
)
@pytest.mark.parametrize("more", ["", ', "ignored": true'])
def test_integers_have_the_range_of_their_type(dtype, lowest, highest, more):
    inputs, _ = decode(f'{{"inputs": [{lowest}, {highest}]{more}}}', x=dtype)
    width = np.iinfo(dtype).bits
    assert [int(v) % 2**width for v in inputs["x"]] == [lowest % 2**width, highest % 2**width]
    for beyond in (lowest - 1, highest + 1):
        with pytest.raises(InvalidArgument, match=f"is not of expected type: {dtype}$"):
            decode(f'{{"inputs": [0, {beyond}]{more}}}', x=dtype)


def test_booleans_beside_numbers():
    inputs, _ = decode('{"instances": [{"b":true,"x":1}, {"x":2,"b":false}]}', b="bool", x="float")
    assert inputs["b"].dtype == np.bool_
    assert inputs["b"].tolist() == [True, False]
    assert inputs["x"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("start", "name"), [("", "DEFAULT"), ('"signature_name":"s", ', "s")])
def test_signature_without_inputs(start, name):
    with pytest.raises(ServingError, match=f"^Failed to get input map for signature: {name}$"):
        decode(f'{{{start}"inputs": 1}}')


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("", b""), ("YQ", b"a"), ("YQ==", b"a"), ("YWI", b"ab"), ("YWI=", b"ab"), ("YWJj", b"abc"),
        (base64.encodebytes(bytes(range(200))).decode(), bytes(range(200))),
        (" Y\tQ\r\n=\v=\f", b"a"), ("YQ..", b"a"), ("YQ.=", b"a"),
        ("=", None), ("==", None), ("YQ=", None), ("YQ===", None), ("YWJj=", None), ("Y", None),
        ("YQ==YQ", None), ("Y-_=", None), ("Y\u00a0Q", None), ("\u0660A==", None),
    ],
)  # fmt: skip
def test_base64_as_abseil_reads_it(text, raw):
    value = {"b64": text}
    if raw is not None:
        assert decode_base64(value) == raw
        return
    with pytest.raises(InvalidArgument, match="Unable to base64 decode"):
        decode_base64(value)


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "uint16", "complex64"])
def test_types_without_json(dtype):
    with pytest.raises(Unimplemented) as caught:
        decode('{"inputs": [1.5]}', x=dtype)
    assert str(caught.value) == f"Conversion of JSON Value: 1.5 to type: {dtype}"


@pytest.mark.parametrize("dtype", ["float", "int64", "string"])
def test_more_dimensions_than_an_array_can_have(dtype):
    value = '"a"' if dtype == "string" else "1"
    with pytest.raises(InvalidArgument, match=r"^a tensor of 70 dimensions; expected at most "):
        decode('{"inputs": ' + "[" * 70 + value + "]" * 70 + "}", x=dtype)
