"""Arrays in, JSON answers out, and what clients read from them."""

import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gru_serving.codecs import json_inputs
from gru_serving.codecs import json_predict as rest_codec
from gru_serving.codecs.rapidjson import writer as json_writer
from gru_serving.codecs.rapidjson.parser import parse
from gru_serving.errors import Code, InvalidArgument, ServingError
from tests.serving.codecs.signatures import signature


def encode_outputs(outputs, row):
    return json_writer.rows(outputs) if row else json_writer.columns(outputs)


def test_row_answer():
    outputs = {"y": np.float32([[1, 2.5], [1e-7, 1e10]])}
    assert encode_outputs(outputs, True) == (
        b'{\n    "predictions": [[1.0, 2.5], [1e-07, 1e+10]\n    ]\n}'
    )


def test_row_answer_of_several_outputs():
    outputs = {"n": np.int32([7, 8]), "s_bytes": np.array([b"a", b"\xff"], object)}
    text = encode_outputs(outputs, True)
    assert json.loads(text) == {
        "predictions": [
            {"n": 7, "s_bytes": {"b64": "YQ=="}},
            {"n": 8, "s_bytes": {"b64": "/w=="}},
        ]
    }


def test_column_answer():
    one = {"y": np.array([[True], [False]])}
    assert json.loads(encode_outputs(one, False)) == {"outputs": [[True], [False]]}
    two = {"a": np.int64(5), "b": np.array(["x"], object)}
    assert json.loads(encode_outputs(two, False)) == {"outputs": {"a": 5, "b": ["x"]}}


def test_empty_batches():
    outputs = {"y": np.zeros((0, 3), np.float32)}
    assert json.loads(encode_outputs(outputs, True)) == {"predictions": []}
    outputs = {"y": np.zeros((2, 0, 3), np.float32)}
    assert json.loads(encode_outputs(outputs, True)) == {"predictions": [[], []]}
    assert json.loads(encode_outputs(outputs, False)) == {"outputs": [[], []]}
    # There are no elements, hence none that JSON cannot express.
    outputs = {"y": np.zeros((2, 0), np.complex64)}
    assert json.loads(encode_outputs(outputs, True)) == {"predictions": [[], []]}


def test_text_goes_out_as_utf_8_with_capitals_in_escapes():
    outputs = {"é": np.array(["☃\x1f\\u001f"], object), "a": np.int64([1])}
    for row in (True, False):
        text = encode_outputs(outputs, row).decode()
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
        encode_outputs(outputs, True)
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


@settings(suppress_health_check=[HealthCheck.too_slow])  # of a machine that is busy
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_float32_digits_read_back(bits):
    values = np.array(bits, np.uint32).view(np.float32)
    values = values[~np.isnan(values)]
    texts = json_writer.decimal_tokens(values.tolist(), np.dtype(np.float32))
    with np.errstate(over="ignore"):
        back = np.array([float(text) for text in texts], np.float64).astype(np.float32)
    assert back.tobytes() == values.tobytes()
    assert all("." in t or "e" in t or "Inf" in t for t in texts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_digits_of_a_number_do_not_depend_on_how_many_there_are(dtype):
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2**64, 500, np.uint64).view(dtype)
    limits = np.finfo(dtype)
    some = [0, -0.0, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal, np.inf,
            -np.inf, np.nan]  # fmt: skip
    rounded = np.round(rng.normal(0, 1000, 200), 3)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.concatenate([bits, some, rounded]).astype(dtype).tolist()
    together = json_writer.decimal_tokens(values, np.dtype(dtype))
    alone = [json_writer.decimal_tokens([one], np.dtype(dtype))[0] for one in values]
    assert together == alone
    assert json_writer.decimal_tokens([], np.dtype(dtype)) == []


def test_error_answer():
    assert rest_codec.encode_error(ServingError('a "b"\n☃', Code.NOT_FOUND)) == (
        404,
        '{\n    "error": "a \\"b\\"\\n☃"\n}'.encode(),
    )


# The first of each is what the client reads.
STATUS = {
    200: ["OK"],
    400: ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"],
    401: ["UNAUTHENTICATED"],
    403: ["PERMISSION_DENIED"],
    404: ["NOT_FOUND"],
    409: ["ABORTED", "ALREADY_EXISTS"],
    429: ["RESOURCE_EXHAUSTED"],
    499: ["CANCELLED"],
    500: ["INTERNAL", "UNKNOWN", "DATA_LOSS"],
    501: ["UNIMPLEMENTED"],
    503: ["UNAVAILABLE"],
    504: ["DEADLINE_EXCEEDED"],
}


@pytest.mark.parametrize("code", Code)
def test_status_of_every_code(code):
    (status,) = (status for status, codes in STATUS.items() if code.name in codes)
    sent, body = rest_codec.encode_error(ServingError("text", code))
    assert sent == status
    if code is not Code.OK:
        error = rest_codec.decode_error(status, body)
        assert (error.code.name, error.message) == (STATUS[status][0], "text")


def test_client_request_reads_back():
    known = signature(x="float", s="string")
    inputs = {
        "x": np.float32([[1 / 3, np.inf], [np.nan, -1]]),
        "s": np.array([b"a", b"\xff\x00"], object),
    }
    body = rest_codec.encode_request(inputs, known, "name")
    assert struct.pack("<f", 1 / 3) == inputs["x"][0, 0].tobytes()
    parsed = parse(body)
    assert json_inputs.signature_name(parsed) == "name"
    back, row = json_inputs.decode_inputs(parsed, known)
    assert not row
    np.testing.assert_array_equal(back["x"], inputs["x"])
    assert back["s"].tolist() == inputs["s"].tolist()


def test_client_request_of_a_type_without_json():
    with pytest.raises(InvalidArgument, match=r"input x: JSON has no form for float16; .*gRPC"):
        rest_codec.encode_request({"x": np.float16([1])}, signature(x="half"))


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
    read = rest_codec.decode_outputs(encode_outputs(outputs, False), known)
    assert read.keys() == outputs.keys()
    for name, array in outputs.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


def test_one_output_may_stand_bare_or_under_its_name():
    for value in ("[1.5]", '{"y": [1.5]}'):
        read = rest_codec.decode_outputs(f'{{"outputs": {value}}}'.encode(), signature(y="float"))
        np.testing.assert_array_equal(read["y"], np.float32([1.5]))


def test_json_nested_too_deeply_for_python_is_none():
    with pytest.raises(ValueError, match="nested too deeply"):
        rest_codec.read_json("[" * 200_000)


@pytest.mark.parametrize("body", [b"", b"no json", b'{"predictions": [1]}', b'{"outputs":{"z":1}}'])
def test_client_refuses_other_answers(body):
    with pytest.raises(ServingError):
        rest_codec.decode_outputs(body, signature(x="float", y="float"))
