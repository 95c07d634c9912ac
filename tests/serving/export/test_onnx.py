"""The graphs of ONNX of an export, beside TensorFlow's answers to the same requests."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.codecs.tensor_proto import decode_input
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.onnx.manifest import FOLDER, Manifest
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version
from gru_serving.errors import ServingError
from gru_serving.export.files import fuzzed_texts
from gru_training.words.text_reader import Tokenizer
from gru_training.words.tokens_file import TOKENS_FILE, token_files
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary

TEXTS = 10_000


@pytest.fixture(scope="module", params=["plain", "cleaned", "spaced"])
def tokenizer(tmp_path_factory, request):
    """One as an export has it, and TensorFlow's."""
    cleaned = request.param != "plain"
    reading = "spaced" if request.param == "spaced" else "words"
    words = Vocabulary(["any"])
    path = tmp_path_factory.mktemp("tokens") / TOKENS_FILE
    path.write_text(token_files(words, cleaned, reading)[TOKENS_FILE], "utf-8")
    return Tokenizer.read(path), TextPreprocessor(words, 10, cleaned, reading).split


def same_tokens(tokenizer, texts):
    tokens, split = tokenizer
    wanted = split(tf.constant(texts)).to_list()
    for text, expected in zip(texts, wanted, strict=True):
        assert [token.encode() for token in tokens(text)] == expected, text


@pytest.mark.long
def test_every_character_is_read_as_by_tensorflow(tokenizer):
    """Alone between letters, so that what it does to them shows; all of Unicode, in rows of 64."""
    points = [point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    texts = [
        "".join(f"A{chr(point)}Σ b" for point in points[start : start + 64]).encode()
        for start in range(0, len(points), 64)
    ]
    same_tokens(tokenizer, texts)


def test_bytes_that_are_no_text(tokenizer):
    rng = np.random.default_rng(3)
    texts = [bytes(rng.integers(0, 256, rng.integers(0, 12)).tolist()) for _ in range(5000)]
    same_tokens(tokenizer, [*texts, b"", b"\x00", b"\xed\xa0\x80", b"a\x00Bn't", b"\xef\xbb\xbfA"])


def test_texts_as_people_have_them(tokenizer):
    texts = (
        "<p class='x'>3 &lt; 5 &amp;&nbsp;caf&eacute;</p><script>if (a<b) {}</script><br/>Ende",
        "<!-- a --> b <!-- c <STYLE>d</style > e --> f <script>g <!-- </script> h -->",
        "&amp;lt; &amp;amp;amp; &#39;s &auml", "a&Auml;ΟΔΟΣ&nbsp;b", "don&rsquo;t",
        "see HTTPS://shop.example.com/a/b?c=d#e or www.example.org/x, thanks http:// http://ü.de/ß",
        "ﬁne ＦＵＬＬ ½ Ａ\u030a 가\u11a8 Tru\u031bo\u031b\u0300ng \u0344 \u0958",
        "\vhttp://a\vb c", "👩\u200d💻👍🏽 ❤\ufe0f soft\u00adware zero\u200bwidth ราคา",
    )  # fmt: skip
    same_tokens(tokenizer, [text.encode() for text in texts])


def test_what_is_opened_and_never_closed_takes_one_pass(tokenizer):
    """As in RE2; the pattern `<!--.*?-->` would take Python minutes here."""
    tokens, _ = tokenizer
    started = time.perf_counter()
    tokens(b"<!--<script " * 50_000)
    assert time.perf_counter() - started < 5


def test_fuzzed_texts(tokenizer):
    same_tokens(tokenizer, list(fuzzed_texts(TEXTS, seed=5)))


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
        manifest = Manifest.read(exports.version(name))
        assert manifest.left.keys() == {"attribution"}  # gradients
        assert manifest.signatures.keys() == {
            *("serving_default", "classify", "gates"),
            *(("step",) if streams else ()),
        }
        card = exports.version(name) / "assets.extra" / "model_card.json"
        assert json.loads(card.read_text())["onnx"]["left_to_tensorflow"] == manifest.left


@pytest.mark.slow
def test_fuzzed_texts_are_answered_alike(pair):
    texts = list(fuzzed_texts(TEXTS, seed=6))
    for start in range(0, TEXTS, 1000):
        compare(pair, {"text": strings(*texts[start : start + 1000])}, "serving_default")


@pytest.mark.slow_cases
def test_gates_are_shown_alike(pair):
    texts = [*fuzzed_texts(6, seed=7), b"", b"Not bad , not good .", b"a"]
    answer = compare(pair, {"text": strings(*texts)}, "gates")
    assert answer["tokens"].shape == answer["scores"].shape[:2]
    compare(pair, {"text": strings(*texts)}, "gates", output_filter=["tokens"])
    compare(pair, {"text": strings(b"")}, "gates")


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
