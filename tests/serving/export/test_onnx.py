"""An export without TensorFlow, beside TensorFlow's answers to the same requests."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.codecs.tensor_proto import decode_input
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version
from gru_serving.errors import ServingError
from gru_serving.preprocessing.description import FOLDER, Description
from tests.serving.preprocessing.drawn import texts as drawn


def opened(version, runtime):
    found = open_version(version, LoadOptions(runtime=runtime))
    return Predictor(found.session, runtime=found.runtime)


@pytest.fixture(scope="module", params=["one", "both"])
def pair(request, exports):
    """The same version in both runtimes."""
    version = exports.version(request.param)
    predictors = opened(version, "tensorflow"), opened(version, "onnx")
    yield predictors
    for predictor in predictors:
        predictor.close()


def compare(pair, inputs, signature, **options):
    """Both answers, which must be one; the answer."""
    wanted, got = (predictor.predict(inputs, signature, **options) for predictor in pair)
    assert list(wanted) == list(got)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype, name
        if array.dtype == object:
            np.testing.assert_array_equal(got[name], array)
        else:
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-5, err_msg=name)
    return got


def strings(*texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def test_everything_is_in_graphs(exports):
    for name, streams in (("one", True), ("both", False)):
        described = Description.read(exports.version(name))
        assert described.left == {}
        assert described.signatures.keys() == {
            *("serving_default", "classify", "gates", "attribution"),
            *(("step",) if streams else ()),
        }
        card = exports.version(name) / "assets.extra" / "model_card.json"
        assert json.loads(card.read_text())["onnx"]["left_to_tensorflow"] == described.left


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.lists(drawn, min_size=1, max_size=60))
def test_any_texts_are_answered_alike(pair, data):
    compare(pair, {"text": strings(*data)}, "serving_default")


@pytest.mark.slow_cases
def test_gates_are_shown_alike(pair):
    texts = ["漢don’t &amp; <b>".encode(), b"\xff.", b"", b"Not bad , not good .", b"a"]
    answer = compare(pair, {"text": strings(*texts)}, "gates")
    assert answer["tokens"].shape == answer["scores"].shape[:2]
    compare(pair, {"text": strings(*texts)}, "gates", output_filter=["tokens"])
    compare(pair, {"text": strings(b"")}, "gates")


@pytest.mark.slow_cases
def test_attributions_are_alike(pair):
    texts = ["漢don’t &amp; <b>".encode(), b"\xff.", b"", b"Not bad , not good .", b"a"]
    for label in (b"", b"negative"):
        asked = {"text": strings(*texts), "label": strings(*[label] * len(texts))}
        answer = compare(pair, asked, "attribution")
        assert answer["tokens"].shape == answer["attribution"].shape
        assert not label or set(answer["label"]) == {label}


def test_steps_are_taken_alike(pair):
    if "step" not in pair[0].signatures:
        pytest.skip("a model in both directions does not stream")
    size = pair[0].signatures["step"].inputs["state"].shape[1]
    state = np.zeros((3, size), np.float32)
    for tokens in ((b"not", b"a", b""), (b"", b"very good .", b"\xff"), (b"x", b"", b"bad")):
        state = compare(pair, {"token": strings(*tokens), "state": state}, "step")["state"]
    assert state.any()


def test_no_rows(pair):
    answer = compare(pair, {"text": strings()}, "serving_default")
    assert len(answer["scores"]) == 0


def test_outputs_in_the_order_asked_for(pair):
    answer = compare(
        pair,
        {"text": strings(b"good", b"bad")},
        "serving_default",
        output_filter=["scores", "label"],
    )
    assert list(answer) == ["scores", "label"]


def serialized(**feature):
    return decode_input(encode_input(example_values([feature])))[0]


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("signature", "inputs"),
    [
        ("serving_default", {"text": strings(b"a").reshape(1, 1)}),
        ("serving_default", {"text": strings(b"a").reshape(())}),
        ("serving_default", {"text": np.float32([1])}),
        ("gates", {"text": strings(b"a").reshape(1, 1)}),
        ("attribution", {"text": strings(b"a", b"b"), "label": strings(b"", b"bug")}),
        ("attribution", {"text": strings(b"a", b"b"), "label": strings(b"")}),
        ("attribution", {"text": strings(b"a"), "label": strings(b"").reshape(1, 1)}),
        ("classify", {"inputs": strings(serialized(text="a")).reshape(1, 1)}),
        ("classify", {"inputs": strings(serialized(text="a"), serialized(other="a"))}),
        ("classify", {"inputs": strings(serialized(text="a"), serialized(text=1))}),
        ("classify", {"inputs": strings(serialized(text=1.5))}),
        ("classify", {"inputs": strings(serialized(text=["a", "b"]))}),
        ("classify", {"inputs": strings(b"\xff no example")}),
        ("classify", {"inputs": strings(b"")}),
    ],
)
def test_refusals_have_tensorflows_words(pair, signature, inputs):
    said = []
    for predictor in pair:
        with pytest.raises(ServingError) as refused:
            predictor.predict(inputs, signature)
        said.append(refused.value.status)
    assert said[0] == said[1]


def test_a_version_without_its_graphs_is_not_whole(exports, tmp_path):
    """The digests cover the graphs: an altered one is not loaded."""
    listed = json.loads((exports.version("one") / "assets.extra" / "digests.json").read_text())
    assert str(FOLDER / "answer.onnx") in listed["files"]
    assert str(FOLDER / "weights.bin") in listed["files"]


def test_no_tensorflow_in_the_process(exports):
    script = (
        "import sys; from pathlib import Path; from gru_serving.engine.version_loader import "
        "VersionLoader; p = VersionLoader()(Path(sys.argv[1])); "
        "print(p.runtime, sorted({'tensorflow', 'keras', 'onnx'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script, str(exports.version("one"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "onnx []"
