"""TensorFlow Lite files beside or instead of a graph."""

import shutil
import threading

import flatbuffers
import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import flexbuffers
from tensorflow.lite.python import schema_py_generated as schema

from serving.codecs.signature import CLASSIFY_METHOD, PREDICT_METHOD, REGRESS_METHOD
from serving.engine.examples import Task, classify, infer, regress
from serving.engine.load_options import LoadOptions
from serving.engine.predictor import Predictor
from serving.engine.tflite.session import MODEL_FILE, TfliteSession
from serving.engine.tflite.signatures import read_metadata
from serving.engine.version_loader import VersionLoader
from serving.errors import Code, FailedPrecondition, Internal, InvalidArgument, ServingError
from serving.protos.meta_graph_pb2 import SignatureDef
from tests.serving.saved_models import Affine


def convert(function, *specs, custom_ops=False):
    """A file without any signatures."""
    concrete = tf.function(function, input_signature=specs).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = custom_ops
    return converter.convert()


def edit(model, entry=None, rename=None, buffer=None):
    """A file with that `signature_defs_metadata`, or with other names for its tensors."""
    edited = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(model), 0))
    for tensor in edited.subgraphs[0].tensors:
        tensor.name = (rename or {}).get(tensor.name.decode(), tensor.name)
    if entry is not None:
        stored, metadata = schema.BufferT(), schema.MetadataT()
        stored.data = list(entry)
        metadata.name = "signature_defs_metadata"
        metadata.buffer = len(edited.buffers) if buffer is None else buffer
        edited.buffers.append(stored)
        edited.metadata = [*(edited.metadata or []), metadata]
    builder = flatbuffers.Builder()
    builder.Finish(edited.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def flexbuffer_map(entries):
    """As TensorFlow's tools write it: the values are strings of any bytes."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in sorted(entries.items()):
            builder.Key(key)
            # `String` accepts only text.
            builder._WriteBlob(value, append_zero=True, type_=flexbuffers.Type.STRING)
    return bytes(builder.Finish())


def signature_def(inputs, outputs, method=PREDICT_METHOD):
    proto = SignatureDef(method_name=method)
    for infos, names in ((proto.inputs, inputs), (proto.outputs, outputs)):
        for alias, name in names.items():
            infos[alias].name = name
    return proto


def with_signatures(model, **signatures):
    entries = {key: proto.SerializeToString() for key, proto in signatures.items()}
    return edit(model, flexbuffer_map(entries))


@pytest.fixture
def load(tmp_path):
    """Loads the bytes of a file."""

    def predictor(model):
        (tmp_path / MODEL_FILE).write_bytes(model)
        return Predictor(TfliteSession(tmp_path / MODEL_FILE))

    return predictor


@pytest.fixture(scope="module")
def two_heads():
    """x (B, 2) and w (1,) give x + 10 and 2 w, in tensors `x`, `w`, `Identity`, `Identity_1`."""
    return convert(
        lambda x, w: (x + 10.0, 2.0 * w),
        tf.TensorSpec([None, 2], tf.float32, "x"),
        tf.TensorSpec([1], tf.float32, "w"),
    )


@pytest.fixture(scope="module")
def good_or_bad():
    """Texts `inputs` (B,) give scores (B, 2) and a value (B,), as `Identity` and `Identity_1`."""

    def judge(texts):
        good = tf.cast(tf.equal(texts, b"good"), tf.float32)
        return tf.stack([good, 1.0 - good], -1), 3.0 * good

    return convert(judge, tf.TensorSpec([None], tf.string, "inputs"))


@pytest.fixture(scope="module")
def version(models, tmp_path_factory):
    """The affine graph, and beside it a TFLite file that answers a thousand times as much."""
    directory = shutil.copytree(models / "affine" / "1", tmp_path_factory.mktemp("tflite") / "1")
    module = Affine(1000.0)
    saved = tmp_path_factory.mktemp("saved")
    tf.saved_model.save(module, str(saved), signatures=module.serve)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved))
    (directory / MODEL_FILE).write_bytes(converter.convert())
    return directory


@pytest.fixture(scope="module")
def lite(version):
    predictor = Predictor(TfliteSession(version / MODEL_FILE, 2))
    yield predictor
    predictor.close()


def inputs(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(rows, 3)).astype("f4"),
        "b": rng.normal(size=(rows, 1)).astype("f4"),
    }


KERNEL = 1000 * np.float32([[1, 2], [3, 4], [5, 6]])


def test_signatures_of_the_file(lite):
    assert list(lite.signatures) == ["serving_default"]
    signature = lite.signatures["serving_default"]
    assert {alias: (info.dtype, info.shape) for alias, info in signature.inputs.items()} == {
        "b": (1, (-1, 1)),
        "x": (1, (-1, 3)),
    }
    assert sorted(signature.outputs) == ["doubled", "y"]
    assert signature.method_name == "tensorflow/serving/predict"


@pytest.mark.parametrize("rows", [1, 5, 2])
def test_answers_for_any_number_of_rows(lite, rows):
    asked = inputs(rows, rows)
    answer = lite.predict(asked)
    np.testing.assert_allclose(answer["y"], asked["x"] @ KERNEL + asked["b"], rtol=1e-5)
    np.testing.assert_array_equal(answer["doubled"], 2 * asked["x"])
    assert list(lite.predict(asked, output_filter=["y"])) == ["y"]


def test_errors(lite):
    with pytest.raises(FailedPrecondition, match='"nix" not found'):
        lite.predict({}, "nix")
    with pytest.raises(InvalidArgument, match=r"Expects arg\[\d\] to be float but double"):
        lite.predict({name: array.astype("f8") for name, array in inputs(1).items()})
    with pytest.raises(ServingError):
        lite.predict({"x": np.ones((1, 4), "f4"), "b": np.ones((1, 1), "f4")})
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


@pytest.mark.parametrize("rank", [0, 1, 3, 5, 9, 64])
def test_inputs_of_another_rank_are_refused(lite, rank):
    """Nine dimensions used to end the process."""
    asked = {**inputs(2), "x": np.ones([1] * rank, "f4")}
    with pytest.raises(InvalidArgument, match=f"to have 2 dimensions but {rank} are provided"):
        lite.predict(asked)
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


def test_dimensions_beyond_32_bits_are_refused(lite):
    """Errors of a tensor without elements; they used not to be ServingErrors."""
    asked = {**inputs(2), "x": np.ones([0, 2**31], "f4")}
    with pytest.raises(InvalidArgument, match=r"at most 2147483647 but its shape is \[0, 2147483"):
        lite.predict(asked)
    assert lite.predict(inputs(1))["y"].shape == (1, 2)


def test_threads_share_the_interpreters(lite):
    wrong = []

    def work(seed):
        for rows in (1, 3, 2):
            asked = inputs(rows, seed)
            answer = lite.predict(asked)
            if not np.allclose(answer["y"], asked["x"] @ KERNEL + asked["b"], rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / MODEL_FILE).write_bytes(b"nonsense" * 10)
    with pytest.raises(InvalidArgument, match="Cannot build Interpreter"):
        TfliteSession(tmp_path / MODEL_FILE)


def test_a_file_without_signatures(load):
    model = convert(lambda x: x + 1.0, tf.TensorSpec([None, 2], tf.float32, "x"))
    predictor = load(edit(model, rename={"x": "x:0", "Identity": "y:7"}))
    signature = predictor.signatures["serving_default"]
    assert {alias: info.name for alias, info in signature.inputs.items()} == {"x": "x:0"}
    assert {alias: info.name for alias, info in signature.outputs.items()} == {"y": "y:7"}
    for rows in (3, 1):
        x = np.ones((rows, 2), "f4")
        np.testing.assert_array_equal(predictor.predict({"x": x})["y"], x + 1)


def test_aliases_that_would_be_the_same_keep_their_numbers(load, two_heads):
    predictor = load(edit(two_heads, rename={"x": "in:0", "w": "in:1", "Identity": "y:0"}))
    signature = predictor.signatures["serving_default"]
    assert sorted(signature.inputs) == ["in:0", "in:1"]
    assert sorted(signature.outputs) == ["Identity_1", "y"]
    answer = predictor.predict({"in:0": np.float32([[1, 2]]), "in:1": np.float32([3])})
    np.testing.assert_array_equal(answer["y"], [[11, 12]])
    np.testing.assert_array_equal(answer["Identity_1"], [6])


def test_two_tensors_of_one_name(load, two_heads):
    with pytest.raises(ServingError, match=r"^Input tensor name: x has multiple indices$") as error:
        load(edit(two_heads, rename={"w": "x"}))
    assert error.value.code is Code.ALREADY_EXISTS


def test_signatures_of_the_metadata(load, two_heads):
    """Kept as stored, except for the `:0` behind names that early converters did not write."""
    both = signature_def({"a": "x:0", "b": "w"}, {"sum": "Identity:0", "product": "Identity_1"})
    both.inputs["a"].dtype = 1
    both.inputs["a"].tensor_shape.dim.add(size=-1)
    both.outputs["sum"].tensor_shape.unknown_rank = True
    odd = signature_def({"a": "x"}, {"sum": "Identity"}, "some/method")
    predictor = load(with_signatures(two_heads, serving_default=both, odd=odd))
    both.inputs["a"].name, both.outputs["sum"].name = "x", "Identity"
    assert dict(predictor.signature_defs.signature_def) == {"serving_default": both, "odd": odd}
    for rows in (3, 1):
        x, w = np.full((rows, 2), rows, "f4"), np.float32([rows])
        answer = predictor.predict({"a": x, "b": w})
        np.testing.assert_array_equal(answer["sum"], x + 10)
        np.testing.assert_array_equal(answer["product"], 2 * w)


def test_metadata_goes_before_native_signatures(load, version):
    file = (version / MODEL_FILE).read_bytes()
    (native,) = TfliteSession(version / MODEL_FILE).signatures.signature_def.values()
    tensors = {alias: native.inputs[alias].name for alias in native.inputs}
    stored = signature_def(tensors, {"answer": native.outputs["y"].name})
    predictor = load(with_signatures(file, stored=stored))
    assert list(predictor.signatures) == ["stored"]
    with pytest.raises(Internal, match=r"^Failed to run interpreter\."):
        predictor.predict({**inputs(1), "x": np.ones((1, 4), "f4")}, "stored")
    asked = inputs(2)
    answer = predictor.predict(asked, "stored")["answer"]
    np.testing.assert_allclose(answer, asked["x"] @ KERNEL + asked["b"], rtol=1e-5)


def test_metadata_without_signatures_counts_as_none(load, two_heads):
    assert sorted(load(with_signatures(two_heads)).signatures["serving_default"].inputs) == [
        "w",
        "x",
    ]


def test_tensors_that_differ_after_the_colon(load, two_heads):
    model = edit(two_heads, rename={"x": "in:0", "w": "in:1"})
    stored = signature_def({"x": "in:0", "w": "in:1"}, {"y": "Identity", "z": "Identity_1"})
    predictor = load(with_signatures(model, serving_default=stored))
    answer = predictor.predict({"x": np.float32([[1, 2]]), "w": np.float32([3])})
    np.testing.assert_array_equal(answer["y"], [[11, 12]])
    np.testing.assert_array_equal(answer["z"], [6])


def test_names_of_tensors_may_have_a_number(load, two_heads):
    predictor = load(two_heads)
    answer = predictor.run({"x:0": np.float32([[1, 2]])}, ["Identity:0"])
    np.testing.assert_array_equal(answer["Identity:0"], [[11, 12]])
    with pytest.raises(ServingError, match="nix"):
        predictor.run({"nix": np.float32([1])}, ["Identity"])
    with pytest.raises(InvalidArgument, match=r"Missing TFLite tensor: Identity$"):
        predictor.run({"Identity": np.float32([1])}, ["x"])


def test_inputs_that_a_signature_leaves_out_are_zero(load, two_heads):
    whole = signature_def({"x": "x", "w": "w"}, {"z": "Identity_1"})
    part = signature_def({"x": "x"}, {"y": "Identity", "z": "Identity_1"})
    predictor = load(with_signatures(two_heads, whole=whole, part=part))
    x = np.ones((3, 2), "f4")
    assert predictor.predict({"x": x, "w": np.float32([4])}, "whole")["z"] == 8
    answer = predictor.predict({"x": x}, "part")
    np.testing.assert_array_equal(answer["y"], x + 10)
    assert answer["z"] == 0


def test_classify_regress_and_predict(load, good_or_bad):
    texts = {"inputs": "inputs:0"}
    model = with_signatures(
        good_or_bad,
        classify=signature_def(texts, {"scores": "Identity"}, CLASSIFY_METHOD),
        regress=signature_def(texts, {"outputs": "Identity_1"}, REGRESS_METHOD),
        predict=signature_def(texts, {"scores": "Identity", "value": "Identity_1"}),
    )
    predictor = load(model)
    asked = [b"good", b"b\0d", b"good\0"]
    scores, values = [[1, 0], [0, 1], [0, 1]], [3, 0, 0]
    np.testing.assert_array_equal(classify(predictor, "classify", asked).scores, scores)
    np.testing.assert_array_equal(regress(predictor, "regress", asked), values)
    tasks = [Task("m", "classify", CLASSIFY_METHOD), Task("m", "regress", REGRESS_METHOD)]
    classified, regressed = infer(predictor, tasks, asked)
    np.testing.assert_array_equal(classified.scores, scores)
    np.testing.assert_array_equal(regressed, values)
    for name, alias, expected in (
        ("predict", "value", values),
        ("classify", "scores", scores),
        ("regress", "outputs", values),
    ):
        answer = predictor.predict({"inputs": np.array(asked, object)}, name)
        np.testing.assert_array_equal(answer[alias], expected)
    predictor.check_method_names = True
    assert predictor.predict({"inputs": np.array(asked, object)}, "classify")
    with pytest.raises(ServingError, match="method_name"):
        regress(predictor, "classify", asked)


def test_strings_in_a_shape_that_comes_with_them(load):
    model = convert(
        tf.reshape,
        tf.TensorSpec([None], tf.string, "list"),
        tf.TensorSpec([None], tf.int32, "shape"),
    )
    stored = signature_def({"texts": "list:0", "shape": "shape:0"}, {"table": "Identity:0"})
    predictor = load(with_signatures(model, serving_default=stored))
    texts = np.array([b"a", b"", b"c\0", b"\xff"], object)
    answer = predictor.predict({"texts": texts, "shape": np.int32([2, 2])})
    assert answer["table"].tolist() == [[b"a", b""], [b"c\0", b"\xff"]]


GOOD_ENTRY = flexbuffer_map({"a": b"", "b": signature_def({"x": "x"}, {}).SerializeToString()})
INVALID = "^Invalid SignatureDefs found in TfLite model: "


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (b"", "Error reading signature def map: buffer \\d+ is empty"),
        (b"\0", "Error reading signature def map: buffer is too small"),
        (b"nonsense", "Error reading signature def map: "),
        (bytes(flexbuffers.Dumps([1, 2])), "Error reading signature def map: it is not a map"),
        (bytes(flexbuffers.Dumps({"a": 1})), "Error reading signature def map: a is not a string"),
        (GOOD_ENTRY[1:], ""),
        (flexbuffer_map({"a": b"\xff"}), "Cannot parse signature def found in flatbuffer.$"),
    ],
    ids=["empty", "short", "nonsense", "list", "number", "cut", "no_signature_def"],
)
def test_broken_metadata(load, two_heads, entry, message):
    with pytest.raises(InvalidArgument, match=INVALID + message):
        load(edit(two_heads, entry))


def test_metadata_in_a_buffer_that_is_missing(load, two_heads):
    with pytest.raises(InvalidArgument, match=f"{INVALID}Error reading.* no buffer 999"):
        load(edit(two_heads, GOOD_ENTRY, buffer=999))


def test_damaged_metadata_ends_in_no_other_error(tmp_path, two_heads):
    rng = np.random.default_rng(0)
    file = edit(two_heads, GOOD_ENTRY)
    start = file.index(GOOD_ENTRY)
    refused = 0
    for _ in range(500):
        damaged = bytearray(file)
        for at in rng.integers(len(GOOD_ENTRY), size=rng.integers(1, 4)):
            damaged[start + at] = rng.integers(256)
        (tmp_path / MODEL_FILE).write_bytes(damaged)
        try:
            read_metadata(tmp_path / MODEL_FILE)
        except InvalidArgument:
            refused += 1
    assert 0 < refused < 500


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (
            signature_def({"a": "nix:0"}, {}),
            "Unknown tensor 'nix:0'.\n\tSignature input a references an unknown tensor",
        ),
        (
            signature_def({"a": "x"}, {"b": "x"}),  # an input tensor is not an output
            "Unknown tensor 'x'.\n\tSignature output b references an unknown tensor",
        ),
    ],
)
def test_metadata_that_names_no_tensor_of_the_file(load, two_heads, signature, message):
    with pytest.raises(ServingError) as error:
        load(with_signatures(two_heads, serving_default=signature))
    assert (error.value.code, error.value.message) == (Code.INTERNAL, message)


def test_custom_operations_are_refused(load):
    features = {"x": tf.io.FixedLenFeature([1], tf.float32)}
    model = convert(
        lambda examples: tf.io.parse_example(examples, features)["x"],
        tf.TensorSpec([None], tf.string, "examples"),
        custom_ops=True,
    )
    with pytest.raises(InvalidArgument, match=r"Cannot build Interpreter.*ParseExample"):
        load(model)


def test_preference(version, models):
    ones = {"x": np.ones((1, 3), "f4"), "b": np.zeros((1, 1), "f4")}
    for prefer, directory, expected in (
        (True, version, 9000),
        (False, version, 9),
        (True, models / "affine" / "1", 9),
    ):
        predictor = VersionLoader(LoadOptions(prefer_tflite=prefer))(directory)
        assert predictor.predict(ones)["y"][0, 0] == expected
        predictor.close()
