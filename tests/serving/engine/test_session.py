"""The adapter to TensorFlow's private session call: the call exists and does what it is for."""

import ctypes
import inspect
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.engine import session
from gru_serving.engine.session import GraphSession, SessionOptions
from gru_serving.errors import (
    Code,
    DeadlineExceeded,
    InvalidArgument,
    NotFound,
    ServingError,
    without_node_names,
)


@pytest.fixture(scope="module")
def affine(models):
    opened = GraphSession(models / "affine" / "1", options=SessionOptions(1, 1))
    yield opened
    opened.close()


def handles(opened, signature="serving_default"):
    proto = opened.signatures.signature_def[signature]
    inputs = {alias: opened.tensor(info.name) for alias, info in proto.inputs.items()}
    return inputs, {alias: opened.tensor(info.name) for alias, info in proto.outputs.items()}


def test_private_names_exist():
    assert list(inspect.signature(tf.compat.v1.Session._call_tf_sessionrun).parameters) == [
        "self",
        "options",
        "feed_dict",
        "fetch_list",
        "target_list",
        "run_metadata",
    ]
    assert not inspect.signature(tf.compat.v1.Session._extend_graph).parameters.keys() - {"self"}
    with tf.Graph().as_default():
        assert callable(tf.compat.v1.placeholder(tf.float32)._as_tf_output)
    assert callable(session.pywrap_tf_session.TF_NewBufferFromString)
    assert callable(session.pywrap_tf_session.TF_DeleteBuffer)


def test_same_numbers_as_the_loaded_function(affine, models):
    loaded = tf.saved_model.load(str(models / "affine" / "1"))
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(7, 3)).astype("f4"), rng.normal(size=(7, 1)).astype("f4")
    expected = loaded.signatures["serving_default"](x=tf.constant(x), b=tf.constant(b))
    inputs, outputs = handles(affine)
    (y,) = affine.run({inputs["x"]: x, inputs["b"]: b}, [outputs["y"]])
    np.testing.assert_array_equal(y, expected["y"].numpy())


def test_dtype_is_not_cast(affine):
    inputs, outputs = handles(affine)
    feeds = {inputs["x"]: np.ones((1, 3), np.float64), inputs["b"]: np.ones((1, 1), np.float32)}
    with pytest.raises(InvalidArgument, match=r"^Expects arg\[\d\] to be float but double is"):
        affine.run(feeds, [outputs["y"]])


def test_error_text_with_bytes_that_are_no_text(models):
    opened = GraphSession(models / "half_plus_two" / "1")
    inputs, outputs = handles(opened, "regress_x_to_y")
    with pytest.raises(InvalidArgument):
        opened.run({inputs["inputs"]: np.array([b"\xff\xfe\xfd"], object)}, [outputs["outputs"]])
    opened.close()


def test_unknown_tensor(affine):
    with pytest.raises(NotFound, match="Tensor nix:0"):
        affine.tensor("nix")


TAGS = "Could not find meta graph def matching supplied tags: {{ {} }}. To inspect available "
CUT = (Code.OUT_OF_RANGE, "Read less bytes than requested")
CORRUPT = (Code.DATA_LOSS, "Can't parse FILE as FORM proto")
LOST = (Code.NOT_FOUND, "Could not find SavedModel .pb or .pbtxt at supplied export directory path")
EMPTY = (Code.NOT_FOUND, TAGS.format("serve"))


@pytest.fixture(scope="module")
def cplusplus():
    """cplusplus(directory, tags) -> code and text from the loader that TF Serving uses."""
    (path,) = Path(tf.sysconfig.get_lib()).glob("libtensorflow_cc.so.*")
    library = ctypes.CDLL(str(path))
    for name in ("TF_NewStatus", "TF_NewGraph", "TF_NewSessionOptions"):
        getattr(library, name).restype = ctypes.c_void_p
    library.TF_Message.restype = ctypes.c_char_p

    def load(directory, tags):
        status = ctypes.c_void_p(library.TF_NewStatus())
        graph = ctypes.c_void_p(library.TF_NewGraph())
        options = ctypes.c_void_p(library.TF_NewSessionOptions())
        names = (ctypes.c_char_p * len(tags))(*(tag.encode() for tag in tags))
        library.TF_LoadSessionFromSavedModel(
            options, None, str(directory).encode(), names, len(tags), graph, None, status
        )
        return Code(library.TF_GetCode(status)), library.TF_Message(status).decode()

    return load


def refused(cplusplus, directory, tags=("serve",)):
    """How a SavedModel is refused, here and by TensorFlow's C++."""
    with pytest.raises(ServingError) as caught:
        GraphSession(directory, tags=tags)
    here = caught.value.code, str(caught.value)
    code, message = cplusplus(directory, tags)
    assert here == (code, without_node_names(message))
    return here


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (None, *LOST),
        (b"", *EMPTY),
        (b"\x00garbage", *CORRUPT),
        (b"this is no saved model at all " * 200, *CORRUPT),
        (b"\xff" * 5000, *CORRUPT),
        (b"\x08", *CUT),
        (b"\x08\x01", *EMPTY),
        (b"\x08\x01\x12\xff", *CUT),
        (b"\x08\x01\x12\x05\x0a", *CUT),
        (b"\x08\x01\x25\x05", *CUT),
        (b"\x08\x01\x00", *CORRUPT),
    ],
)
def test_binary_files_that_are_no_saved_model(tmp_path, cplusplus, content, code, text):
    file = tmp_path / "saved_model.pb"
    if content is not None:
        file.write_bytes(content)
    found = refused(cplusplus, tmp_path)
    assert found[0] == code
    assert found[1].startswith(text.replace("FILE", str(file)).replace("FORM", "binary"))


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (b"", *EMPTY),
        (b"garbage {", *CUT),
        (b"garbage { " * 2000, *CORRUPT),
        (b"meta_graphs {\n  meta_info_def {\n    tags: ", *CUT),
        (b'saved_model_schema_version: "x"\n', *CORRUPT),
        (b"\xff\xfe\x00", *CORRUPT),
    ],
)
def test_text_files_that_are_no_saved_model(tmp_path, cplusplus, content, code, text):
    file = tmp_path / "saved_model.pbtxt"
    file.write_bytes(content)
    found = refused(cplusplus, tmp_path)
    assert found[0] == code
    assert found[1].startswith(text.replace("FILE", str(file)).replace("FORM", "text"))


@pytest.mark.parametrize("kept", [0.02, 0.5, 0.999])
def test_a_copy_of_a_saved_model_that_is_cut(tmp_path, models, cplusplus, kept):
    whole = (models / "affine" / "1" / "saved_model.pb").read_bytes()
    (tmp_path / "saved_model.pb").write_bytes(whole[: int(kept * len(whole))])
    assert refused(cplusplus, tmp_path) == CUT


@pytest.mark.parametrize(
    ("tags", "shown"),
    [(("gpu",), "gpu"), (("serve", "gpu"), "gpu serve"), (("serve", "a", "b", "a"), "b a serve")],
)
def test_tags_that_no_graph_has(models, cplusplus, tags, shown):
    code, text = refused(cplusplus, models / "half_plus_two" / "1", tags)
    assert code == Code.NOT_FOUND
    assert text.startswith(TAGS.format(shown))


@pytest.mark.parametrize(
    ("file", "content", "code", "text"),
    [
        ("variables.data-00000-of-00001", b"", *CUT),
        ("variables.data-00000-of-00001", None, Code.NOT_FOUND, "No such file or directory"),
        ("variables.index", b"\x00" * 200, Code.DATA_LOSS, "not an sstable"),
    ],
)
def test_broken_variables(tmp_path, models, cplusplus, file, content, code, text):
    """TensorFlow's own words, without those that its Python code puts before them."""
    copy = shutil.copytree(models / "affine" / "1", tmp_path / "1")
    path = copy / "variables" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    found = refused(cplusplus, copy)
    assert found[0] == code
    assert text in found[1]
    assert "RestoreV2" not in found[1]


def test_variables_that_are_not_there(tmp_path, models):
    """TensorFlow's C++ loads them all the same, and fails at each request."""
    copy = shutil.copytree(models / "affine" / "1", tmp_path / "1")
    shutil.rmtree(copy / "variables")
    with pytest.raises(InvalidArgument, match="not a valid checkpoint"):
        GraphSession(copy)


def test_closed_session_refuses(models):
    opened = GraphSession(models / "affine" / "1")
    inputs, outputs = handles(opened)
    opened.close()
    feeds = {inputs["x"]: np.ones((1, 3), "f4"), inputs["b"]: np.ones((1, 1), "f4")}
    with pytest.raises(ServingError, match="closed"):
        opened.run(feeds, [outputs["y"]])


@pytest.mark.parametrize("frugal", [False, True])
@pytest.mark.parametrize("rows", [1, 40])
def test_many_at_once_in_pools_of_their_own(models, frugal, rows):
    """More calls at once than there are pools: every caller gets its own answers."""
    session = GraphSession(models / "affine" / "1", options=SessionOptions(frugal=frugal))
    inputs, outputs = handles(session)

    def call(n):
        x, b = np.full((rows, 3), n, np.float32), np.zeros((rows, 1), np.float32)
        feeds = {inputs["x"]: x, inputs["b"]: b}
        return session.run(feeds, [outputs["y"]], timeout_ms=20_000 * (n % 2))[0]

    with ThreadPoolExecutor(40) as threads:
        answers = list(threads.map(call, range(200)))
    for n, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, np.full((rows, 2), [9 * n, 12 * n], np.float32))
    session.close()


@pytest.mark.parametrize("frugal", [False, True])
def test_deadlines_hold_in_every_pool(models, frugal):
    session = GraphSession(models / "affine" / "1", options=SessionOptions(frugal=frugal))
    inputs, outputs = handles(session, "spin")
    for _ in range(3):
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"^Timed out waiting for notification"):
            session.run({inputs["steps"]: np.int64(10**12)}, [outputs["x"]], timeout_ms=200)
        assert time.monotonic() - started < 60
        (x,) = session.run({inputs["steps"]: np.int64(3)}, [outputs["x"]], timeout_ms=10_000)
        assert x.shape == ()
    session.close()
