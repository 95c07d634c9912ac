"""Classify and Regress accept whatever Predict accepts, over both transports."""

import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.errors import InvalidArgument

HALF = "half/plus:two"
POSITIVE, NEGATIVE = 0.7310586, 0.26894143


@pytest.fixture(params=["rest", "grpc"])
def client(request, server):
    with connect(getattr(server, request.param)) as client:
        yield client


@pytest.mark.parametrize(
    "value",
    [
        3.0,
        [3.0],
        (3.0,),
        np.float32(3),
        np.float64(3),
        np.float16(3),
        np.array(3, np.float32),
        np.array([3], np.float64),
        [np.float32(3)],
    ],
    ids=repr,
)
def test_numbers(client, value):
    """0.5 x + 2, the model's formula."""
    assert client.regress([{"x": value}], HALF, signature="regress_x_to_y") == [3.5]
    assert client.classify([{"x": value}], HALF, signature="classify_x_to_y") == [[("", 3.5)]]


def test_numbers_arrive_as_exactly_as_they_are(client):
    numbers = np.random.default_rng(0).normal(size=50).astype(np.float32)
    got = client.regress([{"x": one} for one in numbers], HALF, signature="regress_x_to_y")
    expected = np.float32(0.5) * numbers + np.float32(2)
    np.testing.assert_array_equal(np.float32(got), expected)


@pytest.mark.parametrize(
    "value",
    [
        "good",
        b"good",
        ["good"],
        [b"good"],
        np.array("good"),
        np.array([b"good"]),
        np.array([b"good"], object),
        np.array(["good"], object),
        np.str_("good"),
        np.bytes_(b"good"),
        {"b64": "Z29vZA=="},
    ],
    ids=repr,
)
def test_texts(client, value):
    [score] = client.regress([{"text": value}], "text", signature="regress")
    assert score == pytest.approx(POSITIVE, abs=1e-6)
    [row] = client.classify([{"text": value}], "text", signature="classify")
    assert row == [
        ("negative", pytest.approx(NEGATIVE, abs=1e-6)),
        ("positive", pytest.approx(POSITIVE, abs=1e-6)),
    ]


def test_bytes_that_are_no_text(client):
    [row] = client.classify([{"text": b"good \xff\xfe"}], "text", signature="classify")
    assert row[1][1] == pytest.approx(POSITIVE, abs=1e-6)


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ([{"x": None}], "feature 'x'; got NoneType: None"),
        ([{"x": {"set"}}], "feature 'x'; got set: {'set'}"),
        ([{"x": [[1.0]]}], r"feature 'x'; got list: \[1.0\]"),
        ([{"x": 1j}], "feature 'x'; got complex: 1j"),
        ([{"x": np.ones((1, 1))}], r"feature 'x': .* got an array of shape \(1, 1\)"),
        ([{1: 1.0}], "names of features to be text; got int: 1"),
        ([1.0], "a mapping from feature names to values; got float: 1.0"),
        ({"x": 1.0}, "one mapping per example; got dict"),
        (5, "one mapping per example; got int: 5"),
    ],
)
def test_what_no_example_can_hold_is_refused_before_it_is_sent(client, examples, said):
    for ask in (client.classify, client.regress):
        with pytest.raises(InvalidArgument, match=said):
            ask(examples, "nobody has this model")
