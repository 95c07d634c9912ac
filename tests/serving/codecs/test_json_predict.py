"""JSON requests in, arrays or exact error texts out; arrays in, JSON answers out."""

import base64
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from serving.codecs import json_inputs
from serving.codecs import json_predict as rest_codec
from serving.codecs.dtypes import DTYPES
from serving.codecs.json_tensor import decode_base64
from serving.codecs.rapidjson import writer as json_writer
from serving.codecs.signature import Signature, TensorInfo
from serving.errors import Code, InvalidArgument, ServingError, Unimplemented

NUMBER = {dtype.name: dtype.number for dtype in DTYPES}


def signature(**inputs):
    infos = {name: TensorInfo(f"{name}:0", NUMBER[dtype], None) for name, dtype in inputs.items()}
    return Signature(infos, infos)


def decode(text, **inputs):
    body = json_inputs.parse_predict(text if isinstance(text, bytes) else text.encode())
    return json_inputs.decode_inputs(body, signature(**inputs))


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
        ('{"instances": [200, -1, 2147483647]}', "int8", np.int8([-56, -1, -1])),
        ('{"instances": [65537]}', "int16", np.int16([1])),
        ('{"instances": [256]}', "uint8", np.uint8([0])),
        ('{"instances": [18446744073709551615, 0]}', "uint64", np.uint64([2**64 - 1, 0])),
        ('{"instances": [-9223372036854775808]}', "int64", np.int64([-(2**63)])),
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


def test_signature_name():
    assert json_inputs.parse_predict(b'{"signature_name":"s"}').signature_name == "s"
    assert json_inputs.parse_predict(b"{}").signature_name == ""


PRETTY = '{\n    "instances": [\n        %s\n    ]\n}'
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
        ('{"instances":[2147483648]}', {"x": "int8"},
         ROW % (0, "JSON Value: 2147483648 Type: Number is not of expected type: int8")),
        ('{"instances":[-1]}', {"x": "uint32"},
         ROW % (0, "JSON Value: -1 Type: Number is not of expected type: uint32")),
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


def test_deep_nesting_is_refused_not_crashed():
    with pytest.raises(ServingError):
        decode('{"instances": ' + "[" * 100_000 + "1" + "]" * 100_000 + "}", x="float")


@pytest.mark.parametrize("dtype", ["float", "int64", "string"])
def test_more_dimensions_than_an_array_can_have(dtype):
    value = '"a"' if dtype == "string" else "1"
    with pytest.raises(InvalidArgument, match=r"^a tensor of 70 dimensions; expected at most "):
        decode('{"inputs": ' + "[" * 70 + value + "]" * 70 + "}", x=dtype)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.int32, np.int64, np.bool_]),
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
        elements={"allow_nan": False},
    )
)
def test_fast_path_and_walk_agree(array):
    name = {"f": "float", "i": array.dtype.name, "b": "bool"}[array.dtype.kind]
    text = json.dumps({"instances": array.tolist()})
    fast, _ = decode(text, x=name)
    # One boolean anywhere sends all numbers down the slow path.
    slow, _ = decode(text[:-1] + ', "ignored": true}', x=name)
    np.testing.assert_array_equal(fast["x"], array)
    np.testing.assert_array_equal(slow["x"], array)
    assert fast["x"].dtype == slow["x"].dtype == array.dtype


def test_row_answer():
    outputs = {"y": np.float32([[1, 2.5], [1e-7, 1e10]])}
    assert rest_codec.encode_outputs(outputs, True) == (
        b'{\n    "predictions": [[1.0, 2.5], [1e-07, 1e+10]\n    ]\n}'
    )


def test_row_answer_of_several_outputs():
    outputs = {"n": np.int32([7, 8]), "s_bytes": np.array([b"a", b"\xff"], object)}
    text = rest_codec.encode_outputs(outputs, True)
    assert json.loads(text) == {
        "predictions": [
            {"n": 7, "s_bytes": {"b64": "YQ=="}},
            {"n": 8, "s_bytes": {"b64": "/w=="}},
        ]
    }


def test_column_answer():
    one = {"y": np.array([[True], [False]])}
    assert json.loads(rest_codec.encode_outputs(one, False)) == {"outputs": [[True], [False]]}
    two = {"a": np.int64(5), "b": np.array(["x"], object)}
    assert json.loads(rest_codec.encode_outputs(two, False)) == {"outputs": {"a": 5, "b": ["x"]}}


def test_empty_batches():
    outputs = {"y": np.zeros((0, 3), np.float32)}
    assert json.loads(rest_codec.encode_outputs(outputs, True)) == {"predictions": []}
    outputs = {"y": np.zeros((2, 0, 3), np.float32)}
    assert json.loads(rest_codec.encode_outputs(outputs, True)) == {"predictions": [[], []]}
    assert json.loads(rest_codec.encode_outputs(outputs, False)) == {"outputs": [[], []]}
    # There are no elements, hence none that JSON cannot express.
    outputs = {"y": np.zeros((2, 0), np.complex64)}
    assert json.loads(rest_codec.encode_outputs(outputs, True)) == {"predictions": [[], []]}


def test_text_goes_out_as_utf_8_with_capitals_in_escapes():
    outputs = {"é": np.array(["☃\x1f\\u001f"], object), "a": np.int64([1])}
    for row in (True, False):
        text = rest_codec.encode_outputs(outputs, row).decode()
        assert '"é": ' in text
        assert '"☃\\u001F\\\\u001f"' in text


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"y": np.float32(1)}, "Tensor name: y has no shape information "),
        ({"a": np.zeros(2), "b": np.zeros(3)},
         "Tensor name: b has inconsistent batch size: 3 expecting: 2"),
        ({"y": np.zeros(1, np.float16)}, "Failed to write JSON value for tensor type: half"),
        ({"y": np.zeros(1, np.uint16)}, "Failed to write JSON value for tensor type: uint16"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_written(outputs, message):
    with pytest.raises(ServingError) as caught:
        rest_codec.encode_outputs(outputs, True)
    assert str(caught.value) == message
    assert caught.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"), (0.1, "0.1"), (-0.0, "-0.0"), (1 / 3, "0.333333343"), (1e6, "1e+06"),
        (9000000.0, "9e+06"), (123456.0, "123456.0"), (16777216.0, "16777216.0"),
        (3e-5, "3e-05"), (float("nan"), "NaN"), (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"), (3.4028234663852886e38, "3.40282347e+38"),
    ],
)  # fmt: skip
def test_digits_of_float32(value, text):
    assert json_writer.tokens("y", np.float32([value])) == [text]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "0.33333333333333331"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (2.0**53, "9007199254740992.0"),
    ],
)
def test_digits_of_float64(value, text):
    assert json_writer.tokens("y", np.float64([value])) == [text]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_float32_digits_read_back(bits):
    values = np.array(bits, np.uint32).view(np.float32)
    values = values[~np.isnan(values)]
    texts = json_writer.decimal_tokens(values.tolist(), np.dtype(np.float32))
    with np.errstate(over="ignore"):
        back = np.array([float(text) for text in texts], np.float64).astype(np.float32)
    assert back.tobytes() == values.tobytes()
    assert all("." in t or "e" in t or "Inf" in t for t in texts)


def test_error_answer():
    assert rest_codec.encode_error(ServingError('a "b"\n☃', Code.NOT_FOUND)) == (
        404,
        '{\n    "error": "a \\"b\\"\\n☃"\n}'.encode(),
    )


STATUS = {
    200: {"OK"},
    400: {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"},
    401: {"UNAUTHENTICATED"},
    403: {"PERMISSION_DENIED"},
    404: {"NOT_FOUND"},
    409: {"ALREADY_EXISTS", "ABORTED"},
    429: {"RESOURCE_EXHAUSTED"},
    499: {"CANCELLED"},
    500: {"UNKNOWN", "INTERNAL", "DATA_LOSS"},
    501: {"UNIMPLEMENTED"},
    503: {"UNAVAILABLE"},
    504: {"DEADLINE_EXCEEDED"},
}


@pytest.mark.parametrize("code", Code)
def test_status_of_every_code(code):
    (status,) = (status for status, codes in STATUS.items() if code.name in codes)
    assert rest_codec.encode_error(ServingError("text", code))[0] == status
    if code is not Code.OK:
        # The client recognises an error by its class.
        assert rest_codec.decode_error(status, b'{"error": "text"}').code.name in STATUS[status]


@pytest.mark.parametrize("row", [True, False])
def test_no_outputs_have_no_answer(row):
    with pytest.raises(InvalidArgument, match=r"^Cannot convert empty tensor map to JSON$"):
        rest_codec.encode_outputs({}, row)


@pytest.mark.parametrize(
    "code",
    [
        Code.INVALID_ARGUMENT,
        Code.NOT_FOUND,
        Code.UNAVAILABLE,
        Code.DEADLINE_EXCEEDED,
        Code.UNIMPLEMENTED,
    ],
)
def test_errors_keep_their_code_on_the_way_to_the_client(code):
    status, body = rest_codec.encode_error(ServingError("text", code))
    error = rest_codec.decode_error(status, body)
    assert (error.code, error.message) == (code, "text")


def test_client_request_reads_back():
    known = signature(x="float", s="string")
    inputs = {
        "x": np.float32([[1 / 3, np.inf], [np.nan, -1]]),
        "s": np.array([b"a", b"\xff\x00"], object),
    }
    body = rest_codec.encode_request(inputs, known, "name")
    assert struct.pack("<f", 1 / 3) == inputs["x"][0, 0].tobytes()
    parsed = json_inputs.parse_predict(body)
    assert parsed.signature_name == "name"
    back, row = json_inputs.decode_inputs(parsed, known)
    assert not row
    np.testing.assert_array_equal(back["x"], inputs["x"])
    assert back["s"].tolist() == inputs["s"].tolist()


@pytest.mark.parametrize("names", [["x"], ["s_bytes"], ["b"], ["x", "s_bytes", "b"]])
def test_client_reads_column_answers(names):
    known = signature(
        **{name: {"x": "float", "s_bytes": "string", "b": "bool"}[name] for name in names}
    )
    every = {
        "x": np.float32([[1 / 3, np.inf], [np.nan, -1]]),
        "s_bytes": np.array([b"a", b"\xff\x00"], object),
        "b": np.array([[True], [False]]),
    }
    outputs = {name: every[name] for name in names}
    read = rest_codec.decode_outputs(rest_codec.encode_outputs(outputs, False), known)
    assert read.keys() == outputs.keys()
    for name, array in outputs.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


def test_one_output_may_stand_bare_or_under_its_name():
    for value in ("[1.5]", '{"y": [1.5]}'):
        read = rest_codec.decode_outputs(f'{{"outputs": {value}}}'.encode(), signature(y="float"))
        np.testing.assert_array_equal(read["y"], np.float32([1.5]))


@pytest.mark.parametrize("body", [b"", b"no json", b'{"predictions": [1]}', b'{"outputs":{"z":1}}'])
def test_client_refuses_other_answers(body):
    with pytest.raises(ServingError):
        rest_codec.decode_outputs(body, signature(x="float", y="float"))
