"""SavedModels of every origin: TF1 and TF2, text and binary, with and without extras."""

import importlib.util
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from gru_serving.engine.predictor import Predictor
from gru_serving.errors import FailedPrecondition, InvalidArgument, NotFound, ServingError
from tests.serving.servers import answered_and_imported
from tests.serving.text_op_model import save_with_text_op

v1 = tf.compat.v1


def info(**tensors):
    return {name: v1.saved_model.build_tensor_info(tensor) for name, tensor in tensors.items()}


def save_v1(directory, build, tags=("serve",), as_text=False, **extras):
    """A TF1 SavedModel; build(session) -> (signatures, more arguments of the builder)."""
    builder = v1.saved_model.Builder(str(directory))
    with tf.Graph().as_default(), v1.Session() as session:
        signatures, more = build(session)
        builder.add_meta_graph_and_variables(
            session, list(tags), signature_def_map=signatures, **more, **extras
        )
    builder.save(as_text=as_text)
    return directory


def signature(inputs, outputs, method="tensorflow/serving/predict"):
    return v1.saved_model.build_signature_def(info(**inputs), info(**outputs), method)


def frozen(_):
    x = v1.placeholder(tf.float32, [None, 2], "x")
    y = tf.matmul(x, tf.constant([[1.0], [10.0]]))
    return {"serving_default": signature({"x": x}, {"y": y})}, {}


@pytest.fixture
def opened():
    made = []

    def make(directory, **options):
        made.append(Predictor(Path(directory), **options))
        return made[-1]

    yield make
    for predictor in made:
        predictor.close()


X = {"x": np.float32([[1, 2]])}


def test_two_inputs_of_one_tensor_are_refused(tmp_path, opened):
    def build(_):
        x = v1.placeholder(tf.float32, [None], "x")
        return {"serving_default": signature({"a": x, "b": x}, {"y": 2 * x})}, {}

    predictor = opened(save_v1(tmp_path / "1", build))
    with pytest.raises(InvalidArgument, match=r'^Endpoint "x:0" fed more than once\.$'):
        predictor.predict({"a": np.ones(1, np.float32), "b": np.zeros(1, np.float32)})


@pytest.mark.parametrize("as_text", [False, True])
def test_frozen_graph_binary_and_text(tmp_path, opened, as_text):
    directory = save_v1(tmp_path / "1", frozen, as_text=as_text)
    name = "saved_model.pbtxt" if as_text else "saved_model.pb"
    assert (directory / name).is_file()
    assert opened(directory).predict(X)["y"] == 21


def lookup(session, tmp_path):
    vocabulary = tmp_path / "vocabulary.txt"
    vocabulary.write_text("no\nyes\nmaybe\n")
    asset = tf.constant(str(vocabulary), name="asset")
    v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        -1,
    )  # fmt: skip
    word = v1.placeholder(tf.string, [None], "word")
    signatures = {"serving_default": signature({"word": word}, {"id": table.lookup(word)})}
    session.run(v1.tables_initializer())
    return signatures, {"assets_collection": v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)}


@pytest.mark.parametrize("kind", ["legacy_init_op", "main_op"])
def test_table_from_an_asset_file(tmp_path, opened, kind):
    def build(session):
        signatures, more = lookup(session, tmp_path)
        initializer = v1.tables_initializer()
        if kind == "main_op":
            return signatures, {**more, "main_op": initializer}
        v1.add_to_collection("legacy_init_op", initializer)
        return signatures, more

    directory = save_v1(tmp_path / "1", build)
    (tmp_path / "vocabulary.txt").unlink()
    predictor = opened(directory)
    answer = predictor.predict({"word": np.array([b"yes", b"maybe", b"?"], object)})
    assert answer["id"].tolist() == [1, 2, -1]


def test_variables_set_by_the_main_op(tmp_path, opened):
    def build(session):
        x = v1.placeholder(tf.float32, [None, 2], "x")
        bias = v1.get_variable("bias", initializer=0.0)
        session.run(v1.global_variables_initializer())
        return {"serving_default": signature({"x": x}, {"y": x + bias})}, {
            "main_op": v1.assign(bias, 5.0).op
        }

    assert opened(save_v1(tmp_path / "1", build)).predict(X)["y"].tolist() == [[6, 7]]


def test_several_meta_graphs(tmp_path, opened):
    def graph(factor):
        x = v1.placeholder(tf.float32, [None, 2], "x")
        weight = v1.get_variable("w", initializer=3.0)
        return {"serving_default": signature({"x": x}, {"y": factor * weight * x})}

    builder = v1.saved_model.Builder(str(tmp_path / "1"))
    with tf.Graph().as_default(), v1.Session() as session:
        signatures = graph(1.0)
        session.run(v1.global_variables_initializer())
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
    with tf.Graph().as_default():
        builder.add_meta_graph(["serve", "big"], graph(100.0))
    builder.save()
    assert opened(tmp_path / "1").predict(X)["y"].tolist() == [[3, 6]]
    big = opened(tmp_path / "1", tags=("serve", "big"))
    assert big.predict(X)["y"].tolist() == [[300, 600]]
    # The set of tags counts, not their order.
    assert opened(tmp_path / "1", tags=("big", "serve")).predict(X)["y"][0, 0] == 300
    with pytest.raises(NotFound, match=r"supplied tags: \{ big \}"):
        opened(tmp_path / "1", tags=("big",))


def test_training_graph_is_not_served_by_mistake(tmp_path, opened):
    directory = save_v1(tmp_path / "1", frozen, tags=("train",))
    with pytest.raises(NotFound, match=r"supplied tags: \{ serve \}"):
        opened(directory)
    assert opened(directory, tags=("train",)).predict(X)["y"] == 21


def test_keras_export(tmp_path, opened):
    rng = np.random.default_rng(0)
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    h = keras.layers.Embedding(7, 4, mask_zero=True)(tokens)
    model = keras.Model(tokens, keras.layers.Dense(2, name="scores")(keras.layers.GRU(5)(h)))
    model.export(str(tmp_path / "1"), verbose=False)
    predictor = opened(tmp_path / "1")
    assert "serving_default" in predictor.signatures
    (name,) = predictor.signatures["serving_default"].inputs
    (output,) = predictor.signatures["serving_default"].outputs
    x = rng.integers(0, 7, (3, 6)).astype(np.int32)
    expected = model(x).numpy()
    np.testing.assert_allclose(predictor.predict({name: x})[output], expected, atol=1e-6)


class Several(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="n")])
    def double(self, n):
        return {"n": 2 * n}

    @tf.function(input_signature=[])
    def constant(self):
        return {"answer": tf.constant([42])}


def test_no_serving_default_and_no_inputs(tmp_path, opened):
    module = Several()
    signatures = {"double": module.double, "constant": module.constant}
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=signatures)
    predictor = opened(tmp_path / "1")
    with pytest.raises(FailedPrecondition, match='"serving_default" not found'):
        predictor.predict({"n": np.array([1])})
    assert predictor.predict({"n": np.array([4])}, "double")["n"] == [8]
    assert predictor.predict({}, "constant")["answer"] == [42]


def test_no_signature_at_all(tmp_path, opened):
    tf.saved_model.save(tf.Module(), str(tmp_path / "1"))
    predictor = opened(tmp_path / "1")
    with pytest.raises(ServingError, match="not found"):
        predictor.predict({})


class Table(tf.Module):
    """An initialisation besides the asset's: a mutable table filled with values."""

    def __init__(self):
        super().__init__()
        keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(keys, values)
        self.table = tf.lookup.StaticHashTable(initializer, -1)
        self.weight = tf.Variable(tf.ones([3], tf.bfloat16))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
    def serve(self, word):
        return {"id": self.table.lookup(word), "weight": tf.cast(self.weight, tf.complex64)[:1]}


def test_table_and_odd_types(tmp_path, opened):
    module = Table()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.serve)
    answer = opened(tmp_path / "1").predict({"word": np.array([b"b", b"c"], object)})
    assert answer["id"].tolist() == [2, -1]
    assert answer["weight"].dtype == np.complex64


class Big(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.range(25_000_000, dtype=tf.float32))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="i")])
    def serve(self, i):
        return {"w": tf.gather(self.weight, i)}


def test_hundred_megabytes_of_variables(tmp_path, opened):
    module = Big()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.serve)
    size = sum(path.stat().st_size for path in (tmp_path / "1").rglob("*") if path.is_file())
    assert size > 100_000_000
    i = np.int32([0, 12_345_678, 24_999_999])
    answer = opened(tmp_path / "1").predict({"i": i})["w"]
    np.testing.assert_array_equal(answer, i.astype(np.float32))


needs_tensorflow_text = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_text") is None,
    reason="tensorflow-text is not installed (pip install 'keras-gru[text]')",
)


@needs_tensorflow_text
def test_tensorflow_text(tmp_path, opened):
    predictor = opened(save_with_text_op(tmp_path / "1", "TFText>Utf8Binarize"))
    # "a" is 0x61, "n" 0x6e: their four lowest bits, lowest first.
    bits = predictor.predict({"text": np.array([b"an", b"a"], object)})["bits"]
    assert bits.tolist() == [[1, 0, 0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.slow
@needs_tensorflow_text
def test_tensorflow_text_is_not_imported(tmp_path):
    """Importing it takes seconds, and imports Keras."""
    save_with_text_op(tmp_path / "m" / "1", "TFText>Utf8Binarize")
    answer, imported = answered_and_imported(tmp_path, "m", tmp_path / "m", {"text": ["a"]})
    assert answer["bits"][0, 0] == 1
    assert not {"keras", "keras.src", "tensorflow_text"} & imported


def test_without_tensorflow_text(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NotFound) as caught:
        opened(save_with_text_op(tmp_path / "1", "TFText>OfNoVersion"))
    assert str(caught.value).startswith("Op type not registered 'TFText>OfNoVersion' in binary")
    assert str(caught.value).endswith("pip install 'keras-gru[text]'")
