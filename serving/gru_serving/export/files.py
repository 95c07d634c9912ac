"""The files that an export puts beside a SavedModel: graphs of ONNX, golden and warmup requests.

Graphs share their weights: large ones stand once in `weights.bin`, which the runtime maps into
memory.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from gru_serving.codecs.example import encode_input, example_values
from gru_serving.engine.golden import VerificationError, local_engine, read_golden
from gru_serving.engine.golden import replay as replay_golden
from gru_serving.engine.onnx.manifest import FOLDER, GraphCall, Manifest, read_signatures
from gru_serving.engine.onnx.session import OnnxSession
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.warmup import predict_record
from gru_serving.errors import ServingError
from gru_serving.protos.prediction_log_pb2 import PredictionLog
from gru_training.onnx.signatures import OnnxModel
from gru_training.servable import Request
from gru_training.words.text_reader import Tokenizer
from gru_training.words.tokens_file import TOKENS_FILE
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary

WEIGHTS = "weights.bin"
_LEAST_BYTES = 1024
_ALIGNMENT = 4096
_FUZZED_TEXTS = 3000


def write_onnx(version: Path, model: OnnxModel) -> Manifest:
    """Write the graphs into a version that has its SavedModel and its golden requests.

    A signature whose graph does not answer its golden requests as the Keras model does, or whose
    texts are split otherwise than by TensorFlow, is left to TensorFlow, and so said.

    Args:
        version: The version's directory.
        model: Model of the task.

    Returns:
        What was written.
    """
    folder = version / FOLDER
    write_graphs(folder, model.graphs)
    for name, text in model.texts.items():
        (folder / name).write_text(text, "utf-8", newline="\n")
    calls = {
        name: GraphCall(
            f"{signature.graph}.onnx" if signature.graph else None,
            signature.outputs,
            signature.steps,
            signature.rows_per_run,
        )
        for name, signature in model.signatures.items()
    }
    manifest = Manifest(calls, model.left)
    reasons: dict[str, str] = {}
    if TOKENS_FILE in model.texts and (reason := _texts_differ(folder / TOKENS_FILE)):
        reasons = {name: reason for name, call in calls.items() if _reads_texts(call)}
    manifest = _without(manifest, reasons)
    manifest = _without(manifest, _wrong_answers(version, manifest))
    manifest.write(folder)
    return manifest


def write_graphs(folder: Path, graphs: Mapping[str, Any]) -> None:
    """Write graphs of ONNX (`ModelProto` by name) into a new folder."""
    folder.mkdir(parents=True)
    with (folder / WEIGHTS).open("wb") as file:
        weights = _Weights(file)
        for name, graph in graphs.items():
            weights.take_from(graph)
            (folder / f"{name}.onnx").write_bytes(graph.SerializeToString())
    if not (folder / WEIGHTS).stat().st_size:
        (folder / WEIGHTS).unlink()


def _reads_texts(call: GraphCall) -> bool:
    return any(step["do"] == "tokenize" for step in call.steps)


def _without(manifest: Manifest, reasons: Mapping[str, str]) -> Manifest:
    kept = {name: call for name, call in manifest.signatures.items() if name not in reasons}
    return replace(manifest, signatures=kept, left={**manifest.left, **reasons})


class _Weights:
    """A file of arrays, each of which stands in it once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._places: dict[bytes, int] = {}

    def take_from(self, graph: Any) -> None:
        """Move the large weights of a `ModelProto` into the file."""
        for tensor in graph.graph.initializer:
            content = tensor.raw_data
            if len(content) < _LEAST_BYTES:
                continue
            key = hashlib.sha256(content).digest()
            if key not in self._places:
                self._file.write(bytes(-self._file.tell() % _ALIGNMENT))
                self._places[key] = self._file.tell()
                self._file.write(content)
            tensor.ClearField("raw_data")
            tensor.data_location = tensor.EXTERNAL
            place = {
                "location": WEIGHTS,
                "offset": str(self._places[key]),
                "length": str(len(content)),
            }
            for entry, value in place.items():
                tensor.external_data.add(key=entry, value=value)


def _wrong_answers(version: Path, manifest: Manifest) -> dict[str, str]:
    """Find signatures that are not answered as by the Keras model: reasons by name."""
    golden = read_golden(version)
    signatures = read_signatures(version, ("serve",))
    assert signatures is not None
    wrong: dict[str, str] = {}
    for name, call in manifest.signatures.items():
        asked = [request for request in golden if request["signature_name"] == name]
        try:
            session = OnnxSession(version, Manifest({name: call}), signatures)
            replay_golden(asked, local_engine(Predictor(session)))
        except (ServingError, VerificationError) as error:
            wrong[name] = str(error)
    return wrong


def _texts_differ(path: Path) -> str:
    """Describe how texts are split otherwise than by TensorFlow; empty if they are not."""
    tokens = Tokenizer.read(path)
    rules = json.loads(path.read_text("utf-8"))
    texts = list(fuzzed_texts(_FUZZED_TEXTS))
    words = Vocabulary(("any",))
    split = TextPreprocessor(words, 1, rules["cleaned"], rules["reading"]).split
    wanted = split(tf.constant(texts)).to_list()
    for text, expected in zip(texts, wanted, strict=True):
        found = [token.encode() for token in tokens(text)]
        if found != expected:
            return f"the text {text!r} is split into {found}, and by TensorFlow into {expected}"
    return ""


_SCRIPTS = (
    *((0x20, 0x7F), (0, 0x20), (0x80, 0x250), (0x370, 0x600), (0x2000, 0x2070)),
    *((0x300, 0x370), (0x3000, 0x3100), (0x4E00, 0x4F00), (0x10400, 0x10480), (0, 0x110000)),
)
_PARTS = (
    "n't", "'s", "'LL", "’re", "don't", "<br>", "<BR />", "<br\t\n/>", "...", "Σ", "ΑΣ", "İ",
    " ", "\u00a0", "\u3000", "\u0345", "漢", "カ", "\ufeff", "e\u0301", "_", "3.14", "n'té",
    "<!--", "-->", "<script", "</Script\n>", "<\u017ftyle ", "<b class='x'>", "</P>", "<", ">",
    "&amp;", "&nbsp;", "&#xA0;", "&euro;", "&AUML;", "&auml", "&lt", ";", "http://", "WWW.",
    "www.example.org", "/a?b=ü", "\v", "#", "ﬁ", "Ａ", "½", "o\u031b\u0300", "\u0303", "한", "ᄒ",
    "ᅡ", "ราคา", "\u200b", "\u200d", "👍🏽", "\u00ad", "=\U000c91c0",
)  # fmt: skip


def fuzzed_texts(count: int, seed: int = 0) -> Iterator[bytes]:
    """Texts in which what a tokenizer may take wrongly is frequent; some are no UTF-8."""
    draw = random.Random(seed)
    for number in range(count):
        parts = []
        for _ in range(draw.randrange(1, 30)):
            if draw.random() < 0.3:
                parts.append(draw.choice(_PARTS))
            else:
                low, high = draw.choice(_SCRIPTS)
                point = draw.randrange(low, high)
                parts.append("" if 0xD800 <= point < 0xE000 else chr(point))
        text = "".join(parts).encode()
        if number % 5 == 0 and text:  # bytes lost and altered
            place = draw.randrange(len(text))
            text = text[:place] + bytes([draw.randrange(256)]) + text[place + 1 :]
        yield text


def golden_request(request: Request) -> dict[str, Any]:
    """The request with its answer, as `gru_serving.engine.golden` reads it."""
    sent: dict[str, Any] = {"inputs": _json(request.inputs)}
    if request.method != "predict":
        sent = {"examples": _examples(request)}
    return {
        "method": request.method,
        "signature_name": request.signature,
        **sent,
        "outputs": _json(request.outputs),
    }


def warmup_record(request: Request) -> PredictionLog:
    """The request as a server replays it before a version goes live."""
    if request.method == "predict":
        return predict_record(request.inputs, request.signature)
    log = PredictionLog()
    log_of_method = log.classify_log if request.method == "classify" else log.regress_log
    log_of_method.request.model_spec.signature_name = request.signature
    log_of_method.request.input.CopyFrom(encode_input(example_values(_examples(request))))
    return log


def _examples(request: Request) -> list[dict[str, Any]]:
    """The rows of a request, each by feature name."""
    features = _json(request.inputs)
    return [dict(zip(features, row, strict=True)) for row in zip(*features.values(), strict=True)]


def _json(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    return {name: _plain(np.asarray(array)) for name, array in arrays.items()}


def _plain(array: np.ndarray[Any, Any]) -> Any:
    """Nested lists; of float32 the shortest decimals that give the same number, texts as str."""
    if array.dtype == np.float32:
        return array.astype("U16").astype(np.float64).tolist()
    if array.dtype.kind == "O":
        texts = np.array([text.decode() for text in array.ravel()], object)
        return texts.reshape(array.shape).tolist()
    return array.tolist()
