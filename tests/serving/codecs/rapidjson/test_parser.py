"""JSON in; the value or the exact error text out, with RapidJSON's offsets."""

import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gru_serving.codecs.rapidjson.parser import Document, debug_text, parse
from gru_serving.codecs.rapidjson.reader import Reader
from gru_serving.errors import InvalidArgument


def read(body):
    return parse(body if isinstance(body, bytes) else body.encode()).value


VALUES = [
    ('{"a":1}', {"a": 1}),
    (' \t\r\n{"a" : [1 , 2.5e1 ,-3] } trailing garbage', {"a": [1, 25.0, -3]}),
    ('{"a":1,"a":2,"a":3}', {"a": 1}),
    ('{"x":{"k":1,"k":2}}', {"x": {"k": 1}}),
    ('{"a":[NaN,Infinity,-Infinity,Inf,-Inf]}', None),
    (
        '{"a":[],"b":{},"c":null,"d":true,"e":false}',
        {"a": [], "b": {}, "c": None, "d": True, "e": False},
    ),
    ('{"a":"\\u00e9\\n\\ud83d\\ude00 ☃"}', {"a": "é\n😀 ☃"}),
    ('{"a":18446744073709551615,"b":-9223372036854775808}', {"a": 2**64 - 1, "b": -(2**63)}),
    ('{"a":1e308,"b":-0,"c":0.0}', {"a": 1e308, "b": 0, "c": 0.0}),
    ("\ufeff{}", {}),
    # Beyond double range, but with exponents that RapidJSON accepts.
    ('{"a":1.8e308,"b":-9.9e308,"c":[1000e306]}', {"a": math.inf, "b": -math.inf, "c": [math.inf]}),
    ('{"a":0.1e309,"b":1e-999,"c":1E+0000000308}', {"a": 1e308, "b": 0.0, "c": 1e308}),
    ('{"a":' + "1" * 309 + "}", {"a": float("1" * 309)}),
    ('{"a":1e-' + "9" * 5000 + "}", {"a": 0.0}),
    # It keeps 17 of the nines after the point, which exponents of up to 308 + 17 make up for.
    ('{"a":9.' + "9" * 30 + "e325}", {"a": math.inf}),
    # Beyond 64 bits, a number is a float.
    ('{"a":18446744073709551616,"b":-9223372036854775809}', {"a": 2.0**64, "b": -(2.0**63)}),
    ('{"a":1,"b":12345678901234567890123,"a":2}', {"a": 1, "b": 12345678901234567890123.0}),
    ('{"a":"\\ud800\\udc00\\udbff\\udfff"}', {"a": "\U00010000\U0010ffff"}),
    ('{"a":"\\ud7ff\\ue000"}', {"a": "\ud7ff\ue000"}),
]


@pytest.mark.parametrize(("body", "expected"), VALUES)
def test_values(body, expected):
    value = read(body)
    assert str(Reader(body.encode()).read()) == str(value)
    if expected is None:
        assert math.isnan(value["a"][0])
        assert value["a"][1:] == [math.inf, -math.inf, math.inf, -math.inf]
    else:
        assert value == expected


ERRORS = [
    ("", "The document is empty"),
    ("   ", "The document is empty. at offset: 3"),
    ("]", "The document is empty. at offset: 0"),
    ("nul", "Invalid value. at offset: 3"),
    ("nope", "Invalid value. at offset: 1"),
    ("{", "Missing a name for object member. at offset: 1"),
    ('{"a":1,}', "Missing a name for object member. at offset: 7"),
    ('{"a"}', "Missing a colon after a name of object member. at offset: 4"),
    ('{"a":}', "Invalid value. at offset: 5"),
    ('{"a":1', "Missing a comma or '}' after an object member. at offset: 6"),
    ('{"a":1 "b"', "Missing a comma or '}' after an object member. at offset: 7"),
    ('{"a":[1 2]}', "Missing a comma or ']' after an array element. at offset: 8"),
    ('{"a":[1', "Missing a comma or ']' after an array element. at offset: 7"),
    ('{"a":[1,]}', "Invalid value. at offset: 8"),
    ('{"a":', "Invalid value. at offset: 5"),
    ('{"a":1e5.}', "Missing a comma or '}' after an object member. at offset: 8"),
    ('{"a":[,1]}', "Invalid value. at offset: 6"),
    ('{"a":[01]}', "Missing a comma or ']' after an array element. at offset: 7"),
    ('{"a":-x}', "Invalid value. at offset: 6"),
    ('{"a":Infinite}', "Invalid value. at offset: 12"),
    ('{"a":-Nan}', "Invalid value. at offset: 8"),
    ('{"a":tru}', "Invalid value. at offset: 8"),
    ('{"a":1.}', "Miss fraction part in number. at offset: 7"),
    ('{"a":1e}', "Miss exponent in number. at offset: 7"),
    ('{"a":1e+}', "Miss exponent in number. at offset: 8"),
    ('{"a":' + "7" * 400 + "}", "Number too big to be stored in double. at offset: 5"),
    ('{"a":18' + "0" * 307 + "}", "Number too big to be stored in double. at offset: 5"),
    ('{"a":1e309}', "Number too big to be stored in double. at offset: 5"),
    ('{"a":-0e309}', "Number too big to be stored in double. at offset: 5"),
    ('{"a":0.5e310}', "Number too big to be stored in double. at offset: 5"),
    # It keeps 17 digits of 0.100…01.
    ('{"a":0.1' + "0" * 30 + "1e326}", "Number too big to be stored in double. at offset: 5"),
    ('{"a":9.' + "9" * 30 + "e326}", "Number too big to be stored in double. at offset: 5"),
    ('{"a":1e' + "9" * 5000 + "}", "Number too big to be stored in double. at offset: 5"),
    ('{"a":"x', "Missing a closing quotation mark in string. at offset: 7"),
    ('{"a":"x\ny"}', "Invalid escape character in string. at offset: 7"),
    ('{"a":"\\q"}', "Invalid escape character in string. at offset: 6"),
    ('{"a":"\\u12g4"}', "Incorrect hex digit after \\u escape in string. at offset: 6"),
    ('{"a":"x\\ud800"}', "The surrogate pair in string is invalid. at offset: 7"),
    ('{"a":"\\ud800\\u0041"}', "The surrogate pair in string is invalid. at offset: 6"),
]


@pytest.mark.parametrize(("body", "text"), ERRORS)
def test_parse_errors(body, text):
    with pytest.raises(InvalidArgument) as caught:
        read(body)
    assert str(caught.value) == f"JSON Parse error: {text}"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("[]", "[]"),
        ('[1,"x"]', '[\n    1,\n    "x"\n]'),
        ("3", "3"),
        ("0.1", "0.1"),
        # A number has as many digits as a float has, if a float can hold it.
        ("0.12345678912345678", "0.123456791"),
        ("1e-40", "9.99995e-41"),
        ("3e39", "3e+39"),
        ("2e10", "2e+10"),
        ('"s"', '"s"'),
        ("null", "null"),
        ("true", "true"),
        ("NaN", "NaN"),
    ],
)
def test_not_an_object(body, shown):
    with pytest.raises(InvalidArgument) as caught:
        read(body)
    assert str(caught.value) == f"JSON Value: {shown} Is not object"


@pytest.mark.parametrize("padding", [0, 2_000_000])
def test_nesting_has_a_limit_of_our_own(padding):
    """As deep as a request can need; text after the document does not count."""

    def nested(depth):
        return f'{{"deep":{"[" * depth}{"]" * depth},"a":{" " * padding}7}}'

    assert read(nested(256) + "[" * 1000)["a"] == 7
    for depth in (257, 1000, 500_000):
        with pytest.raises(InvalidArgument) as caught:
            read(nested(depth))
        assert str(caught.value) == "JSON Parse error: Nesting is deeper than 257. at offset: 264"


def test_what_is_wrong_before_it_is_too_deep_goes_first():
    for padding in ("", " " * 2_000_000):
        with pytest.raises(InvalidArgument, match=r"Invalid value\. at offset: 6"):
            read('{"a":[x' + "[" * 1000 + padding)


def test_bytes_that_are_no_text_survive():
    assert read(b'{"a":"\xff\xfe"}')["a"].encode("utf-8", "surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1e-5, 1.5e-6, 1e-7, -0.0], "[\n    0.00001,\n    0.0000015,\n    1e-7,\n    -0.0\n]"),
        ([1e20, 1.2345678901234566e17], "[\n    100000000000000000000.0,\n    "
         "123456789012345660.0\n]"),
        ([1e21, 1.5e-300], "[\n    1e21,\n    1.5e-300\n]"),
        (["\x1f\n\\u001f"], '[\n    "\\u001F\\n\\\\u001f"\n]'),
        ({"a": 1, "b": math.nan, "c": 2}, '{\n    "a": 1,\n    "b": '),
        ([-math.inf], "[\n    "),
    ],
)  # fmt: skip
def test_values_inside_others_are_shown_as_rapidjson_writes_them(value, shown):
    assert debug_text(value) == shown


def test_half_a_surrogate_pair_passes_as_bytes():
    """A lone low surrogate; RapidJSON 1.1.0 looks only for the other half of high ones."""
    value = read('{"a":"\\udc00"}')["a"]
    assert value.encode("utf-8", "surrogateescape") == b"\xed\xb0\x80"


def test_many_escapes_take_few_steps():
    """They took a step of Python each, which is seconds in a request of the size allowed."""
    text = '\n"\u00e9\U0001f600' * 30000
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1

    body = json.dumps({"instances": [text]}).encode()
    sys.setprofile(count)
    try:
        value = Reader(body).read()
    finally:
        sys.setprofile(None)
    assert value == {"instances": [text]}
    assert calls < 2000


def test_long_values_are_cut_in_messages():
    text = debug_text({"k": ["x" * 50] * 100})
    assert len(text) == 256
    assert text.startswith('{\n    "k": [\n        "xxx')


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), json_values), st.booleans())
def test_both_readers_agree_with_json(value, ascii_only):
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert parse(body).value == value
    assert Reader(body).read() == value


NUMBER_TEXTS = st.one_of(
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,4})?\Z"),
    st.integers().map(str),
    st.floats().map(json.dumps),
)


@given(
    st.recursive(
        NUMBER_TEXTS, lambda inner: st.lists(inner, max_size=4).map(lambda v: f"[{','.join(v)}]")
    )
)
def test_numbers_are_the_same_to_every_reader(text):
    """Bit for bit and type for type: 0 is not 0.0, and -0.0 is neither of them."""
    body = f'{{"instances": {text}}}'.encode()
    assert outcome(parse, body) == outcome(lambda body: Document(Reader(body).read(), False), body)


def outcome(read, body):
    try:
        return repr(read(body).value)
    except InvalidArgument as error:
        return error.message


@given(st.text(alphabet='{}[]":,.0123456789eE+-truefalsn \\u"Iy', max_size=24))
def test_no_object_is_read_otherwise(inside):
    body = f'{{"a": {inside}}}'.encode()
    assert outcome(parse, body) == outcome(lambda body: Document(Reader(body).read(), False), body)
