"""TensorProto against TensorFlow's own make_tensor_proto and make_ndarray."""

import ml_dtypes
import numpy as np
import pytest

from gru_serving.codecs.dtypes import DTYPES, by_numpy
from gru_serving.codecs.tensor_proto import decode_input, decode_tensor, encode_tensor
from gru_serving.errors import InvalidArgument
from gru_serving.protos.input_pb2 import Input
from gru_serving.protos.tensor_pb2 import TensorProto

NUMERIC = [dtype for dtype in DTYPES if dtype.name != "string"]


def sample(dtype, shape):
    rng = np.random.default_rng(3)
    if dtype.numpy == np.bool_:
        return rng.random(shape) < 0.5
    values = rng.normal(size=shape) * 40
    if dtype.numpy.kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return (
        np.abs(values).astype(dtype.numpy)
        if dtype.numpy.kind == "u"
        else values.astype(dtype.numpy)
    )


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 0, 3), (8, 9)])
@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: d.name)
def test_tensorflow_reads_what_we_write(dtype, content, shape):
    import tensorflow as tf

    array = sample(dtype, shape)
    ours = encode_tensor(array, content)
    back = tf.io.parse_tensor(ours.SerializeToString(), tf.as_dtype(array.dtype)).numpy()
    assert back.shape == shape
    assert np.asarray(back).tobytes() == array.tobytes()
    again = decode_tensor(ours)
    assert again.shape == shape
    assert again.dtype == dtype.numpy
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: d.name)
def test_we_read_what_tensorflow_writes(dtype):
    import tensorflow as tf

    array = sample(dtype, (2, 3))
    theirs = tf.make_tensor_proto(array)
    assert decode_tensor(TensorProto.FromString(theirs.SerializeToString())).tobytes() == (
        array.tobytes()
    )


def test_typed_list_holds_one_entry_per_element():
    proto = encode_tensor(np.float32([[1, 1], [1, 1]]))
    assert list(proto.float_val) == [1, 1, 1, 1]
    assert not proto.tensor_content
    assert [dim.size for dim in proto.tensor_shape.dim] == [2, 2]


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"a", b"\x00\xff\x00", b""], object),
        np.array([["x", "☃"]]),
        np.array(["mixed", b"kinds"], object),
        np.array([b"fixed", b"w"]),
    ],
)
def test_strings(array):
    import tensorflow as tf

    proto = encode_tensor(array)
    expected = [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()]
    assert decode_tensor(proto).ravel().tolist() == expected
    assert decode_tensor(proto).shape == array.shape
    theirs = tf.io.parse_tensor(proto.SerializeToString(), tf.string).numpy()
    assert theirs.ravel().tolist() == expected


def test_strings_in_tensor_content():
    # Lengths as varints, then the bytes; b"a" * 200 needs two bytes for its length.
    proto = TensorProto(dtype=7, tensor_content=b"\xc8\x01\x02" + b"a" * 200 + b"\x00b")
    proto.tensor_shape.dim.add(size=2)
    assert decode_tensor(proto).tolist() == [b"a" * 200, b"\x00b"]


@pytest.mark.parametrize(
    ("values", "size", "expected"),
    [([5.0], 3, [5, 5, 5]), ([1.0, 2.0], 4, [1, 2, 2, 2]), ([], 2, [0, 0]), ([1.0, 2.0], 1, [1])],
)
def test_last_value_stands_for_the_rest(values, size, expected):
    import tensorflow as tf

    proto = TensorProto(dtype=1, float_val=values)
    proto.tensor_shape.dim.add(size=size)
    assert decode_tensor(proto).tolist() == expected
    theirs = tf.io.parse_tensor(proto.SerializeToString(), tf.float32)
    assert theirs.numpy().tolist() == expected


def broken(**fields):
    sizes = fields.pop("sizes", [2])
    proto = TensorProto(**fields)
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    return proto


@pytest.mark.parametrize(
    "proto",
    [
        broken(dtype=0),
        broken(dtype=20),
        broken(dtype=1, tensor_content=b"123"),
        broken(dtype=1, sizes=[-1], float_val=[1]),
        broken(dtype=7, tensor_content=b"\x05\x05ab"),
        broken(dtype=7, tensor_content=b"\xff"),
        broken(dtype=1, sizes=[1] * 200, float_val=[1]),
        TensorProto(dtype=1, tensor_shape={"unknown_rank": True}),
    ],
)
def test_broken_tensors_are_refused(proto):
    with pytest.raises(InvalidArgument):
        decode_tensor(proto)


def test_byte_order_and_layout():
    for dtype in (">f4", ">f2", ">i4", ">c16"):
        for shape in ((2, 3), (9, 8)):
            array = np.arange(np.prod(shape)).astype(dtype).reshape(shape).T
            for content in (False, True):
                np.testing.assert_array_equal(decode_tensor(encode_tensor(array, content)), array)


def test_type_without_counterpart():
    with pytest.raises(InvalidArgument, match="datetime64"):
        encode_tensor(np.array(["2020-01-01"], "M8[D]"))


def test_dtype_table_is_tensorflows():
    import tensorflow as tf

    for dtype in DTYPES:
        theirs = tf.as_dtype(dtype.number)
        assert theirs.as_numpy_dtype == dtype.numpy or dtype.name == "string"
        assert theirs.name == {"float": "float32", "double": "float64", "half": "float16"}.get(
            dtype.name, dtype.name
        )
        assert by_numpy(dtype.numpy) is dtype
    assert by_numpy(np.dtype(ml_dtypes.bfloat16)).number == tf.bfloat16.as_datatype_enum


def test_context_merges_into_every_example():
    import tensorflow as tf

    proto = Input()
    listed = proto.example_list_with_context
    listed.context.features.feature["c"].float_list.value.append(1)
    for i in range(2):
        listed.examples.add().features.feature["x"].int64_list.value.append(i)
    merged = [tf.train.Example.FromString(one) for one in decode_input(proto)]
    assert [sorted(example.features.feature) for example in merged] == [["c", "x"], ["c", "x"]]
    assert merged[1].features.feature["x"].int64_list.value == [1]
