"""tf.Examples from Python's and NumPy's values, compared with TensorFlow's own message."""

import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.codecs.json_example import encode_examples, parse_examples
from gru_serving.errors import InvalidArgument


def read(proto):
    """Kind and values by feature name, as TensorFlow reads the only example."""
    [example] = proto.example_list.examples
    features = tf.train.Example.FromString(example.SerializeToString()).features.feature
    return {
        name: (feature.WhichOneof("kind"), list(getattr(feature, feature.WhichOneof("kind")).value))
        for name, feature in features.items()
    }


VALUES = {
    "text": ("grün", ("bytes_list", ["grün".encode()])),
    "bytes": (b"\xff\0", ("bytes_list", [b"\xff\0"])),
    "texts": (np.array(["a", "bc"]), ("bytes_list", [b"a", b"bc"])),
    "objects": (np.array([b"a\0", "b"], object), ("bytes_list", [b"a\0", b"b"])),
    "integer": (-7, ("int64_list", [-7])),
    "largest": (2**63 - 1, ("int64_list", [2**63 - 1])),
    "integers": (np.array([1, 2], np.uint8), ("int64_list", [1, 2])),
    "numpy integer": (np.int16(-3), ("int64_list", [-3])),
    "boolean": (True, ("int64_list", [1])),
    "booleans": (np.array([True, False]), ("int64_list", [1, 0])),
    "float": (0.1, ("float_list", [np.float32(0.1)])),
    "floats": (np.array([1, 2.5], np.float64), ("float_list", [1.0, 2.5])),
    "float32": (np.float32(0.1), ("float_list", [np.float32(0.1)])),
    "bfloat16": (np.array([1.5], ml_dtypes.bfloat16), ("float_list", [1.5])),
    "beyond float32": (1e300, ("float_list", [np.inf])),
    "beyond 64 bits": (2**64, ("float_list", [2.0**64])),
}


@pytest.mark.parametrize("name", VALUES)
def test_both_ways_to_the_server_make_the_same_example(name):
    value, expected = VALUES[name]
    values = example_values([{name: value}])
    assert read(encode_input(values)) == {name: expected}
    by_json, signature = parse_examples(encode_examples(values, "s"))
    assert read(by_json) == {name: expected}
    assert signature == "s"


def test_several_examples_and_features():
    rng = np.random.default_rng(1)
    rows = [{"x": rng.normal(size=n).astype(np.float32), "t": f"row {n}"} for n in (1, 4, 2)]
    proto = encode_input(example_values(rows))
    for row, example in zip(rows, proto.example_list.examples, strict=True):
        theirs = tf.io.parse_single_example(
            example.SerializeToString(),
            {
                "x": tf.io.FixedLenFeature(row["x"].shape, tf.float32),
                "t": tf.io.FixedLenFeature([], tf.string),
            },
        )
        np.testing.assert_array_equal(theirs["x"], row["x"])
        assert theirs["t"].numpy().decode() == row["t"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 0.5], "Unexpected element type in feature: x expecting type: int64"),
        ([0.5, "a"], "Unexpected element type in feature: x expecting type: float"),
        (2**63, "Feature: x has uint64_t element. Only int64_t is supported."),
        ({"b64": "!"}, "Unable to base64 decode"),
        ([1, {"b64": "!"}], "Unexpected element type in feature: x expecting type: int64"),
    ],
)
def test_refusals_are_those_of_the_server(value, said):
    values = example_values([{"x": value}])
    for call in (
        lambda: encode_input(values),
        lambda: parse_examples(encode_examples(values)),
        lambda: parse_examples(json.dumps({"examples": [{"x": value}]}).encode()),
    ):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.message == said


def test_integers_beyond_doubles_are_refused_by_name():
    with pytest.raises(InvalidArgument, match="feature 'x': got an integer beyond a double"):
        example_values([{"x": [1, -(10**400)]}])
