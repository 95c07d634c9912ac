"""Long documents, read in pieces, give the values and errors of the slow reader."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gru_serving.codecs import json_inputs
from gru_serving.codecs.json_inputs import decode_inputs
from gru_serving.codecs.rapidjson import parser as json_long
from gru_serving.codecs.rapidjson import reader as json_reader
from gru_serving.codecs.rapidjson.parser import Document, LongList, LongReader
from gru_serving.codecs.rapidjson.reader import MAX_DEPTH, Reader
from gru_serving.errors import InvalidArgument
from tests.serving.codecs.signatures import signature


@pytest.fixture(scope="module", autouse=True)
def tiny_pieces():
    """Pieces of 16 bytes, so that even short texts have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_long, "PIECE", 16)
        patch.setattr(json_reader, "PIECE", 16)
        patch.setattr(json_inputs, "_PART", 4)
        yield


def plain(value):
    if isinstance(value, list | LongList):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def outcome(read):
    try:
        return repr(plain(read()))
    except InvalidArgument as error:
        return f"error: {error}"


NUMBERS = ["0", "-1", "0.5", "1e5", "12345678901234567890123", "NaN", "-Infinity"]
STRINGS = ['""', '"\\\\"', '"\\""', '"[,]{}"', '"é☃"', '"\\u0041\\\\\\""']
LONG_STRINGS = ['"' + "x" * 40 + '"', '"' + "\\n" * 20 + '"']
LEAVES = st.sampled_from([*NUMBERS, "null", "true", "false", *STRINGS, *LONG_STRINGS])
BLANKS = st.sampled_from(["", " ", "\n  "])


def joined(parts, opening, closing):
    return st.tuples(st.lists(parts, max_size=6), BLANKS).map(
        lambda drawn: opening + drawn[1] + ("," + drawn[1]).join(drawn[0]) + drawn[1] + closing
    )


TEXTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        joined(inner, "[", "]"),
        joined(
            st.tuples(st.sampled_from(['"a"', '"b"', '"long name of it"']), BLANKS, inner).map(
                lambda drawn: f"{drawn[0]}{drawn[1]}:{drawn[2]}"
            ),
            "{",
            "}",
        ),
    ),
    max_leaves=40,
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_what_the_slow_reader_reads(text):
    body = text.encode()
    assert outcome(LongReader(body).read) == outcome(Reader(body).read)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(TEXTS, st.data())
def test_errors_of_the_slow_reader(text, data):
    body = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(body)))
        kind = data.draw(st.sampled_from(["cut", "put", "take"]))
        if kind == "cut":
            del body[at:]
        elif kind == "put":
            body[at:at] = data.draw(
                st.sampled_from([b",", b"]", b"}", b"[", b"{", b'"', b"\\", b":"])
            )
        else:
            del body[at : at + 1]
    body = bytes(body)
    assert outcome(LongReader(body).read) == outcome(Reader(body).read)


def test_a_bytearray_is_not_copied():
    body = bytearray(b'{"a": [' + b"1, " * 40 + b"2]}")
    assert plain(LongReader(body).read()) == {"a": [1] * 40 + [2]}


@pytest.mark.parametrize("opening", ["[", '{"a":', "[1, ", '[{"a":1},{"some longer name":'])
@pytest.mark.parametrize("more", [0, 1])
def test_depth(opening, more):
    each = opening.count("[") + opening.count("{") - opening.count("}")
    count = MAX_DEPTH // each + more
    body = (opening * count).encode()
    expected = outcome(Reader(body).read)
    assert ("deeper" in expected) == (count * each > MAX_DEPTH)
    assert outcome(LongReader(body).read) == expected


def test_numbers_are_kept_as_arrays():
    numbers = [[i, -i] for i in range(100)]
    value = LongReader(repr(numbers).encode()).read()
    arrays = list(value.pieces())
    assert len(arrays) > 10
    assert all(isinstance(array, np.ndarray) and array.dtype.itemsize == 1 for array in arrays)
    assert np.concatenate(arrays).tolist() == numbers
    assert value[57] == [57, -57]
    assert value[-1] == [99, -99]


def inputs_of(read, body, dtype, strict):
    document = Document(read(body).read(), b"true" in body)
    try:
        found, _ = decode_inputs(document, signature(x=dtype), strict=strict)
    except InvalidArgument as error:
        return str(error)
    return str(found["x"].dtype), found["x"].tolist()


@pytest.mark.parametrize("dtype", ["float", "uint8", "bool", "string"])
@pytest.mark.parametrize("last", ["7", "300", "2.5", "1e39", "true", '"g"', "[7]", '{"x": 3}'])
def test_inputs_are_those_of_a_short_document(last, dtype):
    """Whatever the last value is, of which the pieces before show nothing."""
    first = {"bool": "false", "string": '"a"'}.get(dtype, "1")
    values = ", ".join([first] * 20 + [last])
    rows = ", ".join(f'{{"x": {value}}}' for value in [first] * 20 + [last])
    for listed in (values, f"[{values}]", f"[{values}], [{values}]", rows):
        for key, strict in itertools.product(["instances", "inputs"], [True, False]):
            body = f'{{"{key}": [{listed}]}}'.encode()
            expected = inputs_of(Reader, body, dtype, strict)
            assert inputs_of(LongReader, body, dtype, strict) == expected


def test_members_without_end(monkeypatch):
    monkeypatch.setattr(json_long, "MOST_MEMBERS", 50)
    text = "{" + ",".join(f'"{i}":{i}' for i in range(50)) + "}"
    assert len(LongReader(text.encode()).read()) == 50
    with pytest.raises(InvalidArgument, match="more than 50 members"):
        LongReader((text[:-1] + ',"a":1}').encode()).read()
