"""Every shape that comes in passes the same check; sessions survive all that passes."""

import shutil

import numpy as np
import pytest

from gru_serving.codecs.coerce import coerce
from gru_serving.codecs.dtypes import (
    DTYPES,
    STRING,
    TensorLimitError,
    check_array,
    check_rank,
    count_elements,
)
from gru_serving.codecs.signature import Signature
from gru_serving.engine.golden import local_engine
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.warmup import load_warm, predict_record, write_records
from gru_serving.errors import InvalidArgument
from tests.serving.saved_models import save_grow

FLOAT = next(dtype for dtype in DTYPES if dtype.name == "float")


@pytest.fixture(scope="module")
def grow(tmp_path_factory):
    directory = tmp_path_factory.mktemp("grow") / "1"
    save_grow(directory)
    return directory


@pytest.fixture(scope="module")
def growing(grow):
    predictor = Predictor(grow)
    yield predictor
    predictor.close()


def nested(depth, value):
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_most_dimensions(dtype):
    most = 32 if dtype is STRING else 64
    for rank in (0, 1, most):
        check_rank(rank, dtype)
    for rank in (most + 1, 254):
        with pytest.raises(TensorLimitError, match=f"at most {most} of type {dtype.name}"):
            check_rank(rank, dtype)
    with pytest.raises(InvalidArgument, match="a tensor of 255 dimensions; expected at most 254"):
        check_rank(255, dtype)


def test_arrays_of_text_count_as_strings():
    for dtype in (object, "S1", "U1"):
        check_array(np.zeros([1] * 32, dtype))
        with pytest.raises(TensorLimitError):
            check_array(np.zeros([1] * 33, dtype))
    check_array(np.zeros([1] * 64))


@pytest.mark.parametrize(
    ("sizes", "count"),
    [((), 1), ((0,), 0), ((3, 4), 12), ((2**60,), 2**60), ((2**59, 0, 2), 0)],
)
def test_number_of_elements(sizes, count):
    assert count_elements(sizes, FLOAT) == count


@pytest.mark.parametrize("sizes", [(2**61,), (2**31, 2**31), (0, 2**61), (2**40,) * 10**6, (-1,)])
def test_no_such_number_of_elements(sizes):
    with pytest.raises(InvalidArgument, match=r"^a tensor "):
        count_elements(sizes, FLOAT)


def test_sizes_are_not_looked_at_beyond_the_first_that_is_too_much():
    seen = iter([2**62] * 1000)
    with pytest.raises(InvalidArgument):
        count_elements(seen, FLOAT)
    assert len(list(seen)) == 999


def test_warmup_records(grow, tmp_path):
    version = shutil.copytree(grow, tmp_path / "1")
    write_records(version, [predict_record({"x": np.full([1] * 33, b"x", object)}, "strings")])
    with pytest.raises(InvalidArgument, match="33 dimensions; expected at most 32 of type string"):
        load_warm(version)


def test_golden_requests(growing):
    request = {"signature_name": "strings", "inputs": {"x": nested(33, "a")}, "outputs": {}}
    with pytest.raises(InvalidArgument, match="input x: a tensor of 33 dimensions"):
        local_engine(growing)(request)


def test_defaults_of_a_signature(growing):
    # As decoded from a SavedModel whose signature has such a default.
    signature = growing.signatures["strings"]
    default = {"x": np.full([1] * 33, b"x", object)}
    changed = Signature(signature.inputs, signature.outputs, signature.method_name, default)
    growing.signatures["strings"] = changed
    try:
        with pytest.raises(InvalidArgument, match="33 dimensions"):
            growing.predict({}, "strings")
    finally:
        growing.signatures["strings"] = signature


def test_what_clients_send(growing):
    with pytest.raises(InvalidArgument, match="input x: a tensor of 33 dimensions"):
        coerce(np.full([1] * 33, "x", object), growing.signatures["strings"])


@pytest.mark.parametrize(("rank", "shape"), [(0, (1,)), (1, (1, 1)), (31, (1,) * 32)])
def test_strings_come_back_in_their_shape(growing, rank, shape):
    outputs = growing.predict({"x": np.full([1] * rank, b"ab", object)}, "strings")
    assert outputs["y"].shape == shape
    assert outputs["y"].ravel().tolist() == [b"ab"]
    assert outputs["length"].shape == shape[1:]


def test_no_strings_come_back_in_their_shape(growing):
    outputs = growing.predict({"x": np.empty((2, 0, 3), object)}, "strings")
    assert outputs["y"].shape == (2, 0, 3, 1)


@pytest.mark.parametrize(
    ("signature", "rank", "value"),
    [("strings", 32, b"x"), ("declared", 32, b"x"), ("shown", 33, 1.5), ("numbers", 64, 1.5)],
)
def test_answers_of_too_many_dimensions_are_refused(growing, signature, rank, value):
    kind = object if isinstance(value, bytes) else np.float32
    with pytest.raises(InvalidArgument):
        growing.predict({"x": np.full([1] * rank, value, kind)}, signature)


def test_inputs_of_the_declared_shape_are_run_as_ever(growing, models):
    """Flattened ones make TensorFlow optimize the graph again, which costs time and memory."""
    text = Predictor(models / "text" / "1")
    session = text._session
    handle = session.tensor(text.signatures["serving_default"].inputs["text"].name)
    assert not session._flat.choose({handle: np.empty(3, object)})
    assert session._flat.choose({handle: np.empty((3, 1), object)})
    text.close()
    unknown = growing._session.tensor(growing.signatures["strings"].inputs["x"].name)
    assert growing._session._flat.choose({unknown: np.empty(3, object)})
