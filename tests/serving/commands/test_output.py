"""What commands print about servers that lie: one line, and nothing that a terminal obeys."""

import json

import numpy as np
import pytest

from serving.__main__ import main
from serving.codecs.tensor_proto import encode_tensor
from serving.commands.terminal.safe_text import safe_json, safe_text, share_bar
from serving.protos.get_model_metadata_pb2 import GetModelMetadataResponse, SignatureDefMap
from serving.protos.predict_pb2 import PredictResponse
from serving.protos.tensor_pb2 import TensorProto
from tests.serving.commands.lying_server import (
    EVIL,
    FLOAT,
    GOLDEN,
    GOOD,
    INPUTS,
    INT,
    RAW,
    Liar,
    metadata,
    tensor,
)
from tests.serving.strange_servers import bytes_over_grpc, web

COMMANDS = {
    "predict": (["predict"], "serving_default"),
    "stream": (["stream"], "step"),
    "explain": (["explain"], "gates"),
}
CLASSES = {"results": [[["bad", 0.1], ["good", 0.9]]]}


@pytest.fixture
def command(capsys):
    """command(liar, "predict", "--output", "json") -> (status, stdout, stderr)."""

    def run(liar, name, *arguments):
        with web(200, liar, "application/json") as (_, url):
            status = main([*COMMANDS[name][0], "--url", url, "--model", "m", *arguments, "a b"])
        printed = capsys.readouterr()
        for text in (printed.out, printed.err):
            assert not RAW.search(text), repr(text)
            assert "Traceback" not in text
        return status, printed.out, printed.err

    return run


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("output", ["table", "json"])
def test_good_answers(command, name, output):
    form = ["--output", output if name != "explain" or output == "json" else "map"]
    liar = Liar(metadata=metadata(), predict={"outputs": GOOD[COMMANDS[name][1]]},
                classify=CLASSES)  # fmt: skip
    status, printed, complained = command(liar, name, *form)
    assert (status, complained) == (0, "")
    assert "good" in printed or name == "explain"


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("output", ["table", "json"])
def test_escapes_of_a_server_are_shown_not_obeyed(command, name, output):
    form = ["--output", output if name != "explain" or output == "json" else "map"]
    answer = dict(GOOD[COMMANDS[name][1]])
    key = "tokens" if name == "explain" else "label"
    answer[key] = [[EVIL, "b"]] if name == "explain" else [EVIL]
    classes = {"results": [[[EVIL, 0.1], ["good", 0.9]]]}
    liar = Liar(metadata=metadata(), predict={"outputs": answer}, classify=classes)
    status, printed, _ = command(liar, name, *form)
    assert status == 0
    if output == "json" and name != "stream":
        assert EVIL in _strings(json.loads(printed))
    else:
        assert "\\u001b" in printed
    if name == "predict":
        assert "[red]x" in printed.replace("\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_errors_of_a_server_are_one_line(command, name):
    status, printed, complained = command(Liar(metadata={"error": EVIL}), name)
    assert status != 0
    assert printed == ""
    assert complained.count("\n") == 1


NAN, DEEP = float("nan"), b'{"outputs":' + b"[" * 100_000
BROKEN = {
    "nothing": {},
    "no outputs": {"outputs": {}},
    "a number": {"outputs": 7},
    "null": {"outputs": None},
    "deep": DEEP,
    "deep and closed": b'{"outputs":' + b"[" * 100_000 + b"1" + b"]" * 100_000 + b"}",
    "text": b"hello",
    "empty": b"",
    "a list": b"[]",
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("name", COMMANDS)
def test_answers_of_another_form(command, name, kind):
    liar = Liar(metadata=metadata(), predict=BROKEN[kind], classify=CLASSES)
    status, printed, complained = command(liar, name)
    assert status in (1, 2, 3)
    assert (printed, complained.count("\n")) == ("", 1)


WRONG = {
    "missing": None,
    "too many rows": lambda value: value * 3,
    "no rows": lambda _: [],
    "a scalar": lambda _: 1.5,
    "nested": lambda value: [value],
    "texts": lambda _: ["x"],
    "NaN": lambda value: _each(value, NAN),
    "infinite": lambda value: _each(value, float("-inf")),
    "huge": lambda value: _each(value, 1e300),
}


def _each(value, number):
    if isinstance(value, list):
        return [_each(one, number) for one in value]
    return value if isinstance(value, str) else number


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", COMMANDS)
def test_outputs_of_another_form(command, name, kind):
    """Each output in turn: any number is shown, everything else gives one line of error."""
    good = GOOD[COMMANDS[name][1]]
    for output in good:
        answer = dict(good)
        if WRONG[kind] is None:
            del answer[output]
        else:
            answer[output] = WRONG[kind](good[output])
        for form in ("json", "map" if name == "explain" else "table"):
            body = json.dumps({"outputs": answer}).encode()
            liar = Liar(metadata=metadata(), predict=body, classify=CLASSES)
            status, printed, complained = command(liar, name, "--output", form)
            assert status in (0, 1, 2, 3)
            assert (status == 0) == (complained == ""), complained
            assert complained.count("\n") == (status != 0)
            assert printed or status


@pytest.mark.parametrize(
    "results",
    [[], [[]], [[["a", 1]]], [[["a", 1], ["b", 2], ["c", 3]]], [[["a", 1], ["b", 2]]] * 2],
)
def test_other_classes(command, results):
    liar = Liar(metadata=metadata(), predict={"outputs": GOOD["gates"]},
                classify={"results": results})  # fmt: skip
    status, printed, complained = command(liar, "explain")
    assert (status, printed, complained.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("size", [0, -1, 2**40, 2**62])
def test_states_of_any_size(command, size):
    inputs = {"step": {**INPUTS["step"], "state": tensor(FLOAT, -1, size)}}
    status, printed, complained = command(Liar(metadata=metadata(inputs)), "stream")
    assert (status, printed, complained.count("\n")) == (2, "", 1)
    assert "expected one input beside 'state'" in complained


def test_names_of_a_server(command):
    """Names of inputs, outputs and signatures come from the server, too."""
    name = "[red]\x1b[2J\u202e"
    liar = Liar(
        metadata=metadata(outputs={"serving_default": {name: tensor(FLOAT, -1)}}),
        predict={"outputs": {name: [1.0]}},
    )
    status, printed, _ = command(liar, "predict")
    assert status == 0
    assert "[red]\\u001b[2J" in printed
    status, printed, complained = command(
        Liar(metadata=metadata({"serving_default": {name: tensor(INT, -1)}})), "predict"
    )
    assert status == 2
    assert "[red]\\u001b[2J\\u202e" in complained


def over_grpc(outputs):
    """The server of a classifier that answers with these tensors, by name of the output."""
    signatures = SignatureDefMap()
    default = signatures.signature_def["serving_default"]
    default.inputs["text"].dtype = 7
    default.inputs["text"].tensor_shape.dim.add(size=-1)
    for name in GOOD["serving_default"]:
        default.outputs[name].dtype = 7 if name == "label" else 1
    metadata = GetModelMetadataResponse()
    metadata.model_spec.version.value = 1
    metadata.metadata["signature_def"].Pack(signatures)
    response = PredictResponse()
    for name, proto in outputs.items():
        response.outputs[name].CopyFrom(proto)
    return {
        "GetModelMetadata": metadata.SerializeToString(),
        "Predict": response.SerializeToString(),
    }


def proto(dtype, *dims, **fields):
    made = TensorProto(dtype=dtype, **fields)
    made.tensor_shape.SetInParent()
    for size in dims:
        made.tensor_shape.dim.add(size=size)
    return made


FINE = {name: encode_tensor(np.array(value, object if name == "label" else np.float32))
        for name, value in GOOD["serving_default"].items()}  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({}, "no output 'label'"),
        ({"label": FINE["scores"]}, None),
        ({"label": proto(7, 1, string_val=[EVIL.encode()])}, None),
        ({"label": proto(7, 1, string_val=[b"\xff\xfe\x1b"])}, None),
        ({"scores": proto(99, 1)}, "the server's answer"),
        ({"scores": proto(1, -5)}, "negative size"),
        ({"scores": proto(1, 2**40, float_val=[1])}, "the server's answer"),
        ({"scores": proto(1, *[2] * 70, float_val=[1])}, "the server's answer"),
        ({"scores": proto(1, 3, tensor_content=b"12345")}, "the server's answer"),
        ({"probability": proto(1, 0)}, None),
        ({"probability": proto(9, 2, int64_val=[2**62, -1])}, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("output", ["table", "json"])
def test_answers_over_grpc(capsys, outputs, said, output):
    answer = over_grpc({**FINE, **outputs} if outputs else {})
    with bytes_over_grpc(answer) as url:
        status = main(["predict", "--url", url, "--model", "m", "--output", output, "text"])
    printed, complained = capsys.readouterr()
    assert (status == 0) == (said is None)
    assert not RAW.search(printed + complained)
    assert "Traceback" not in complained
    assert complained.count("\n") == (said is not None)
    assert said is None or said in complained


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    ("predicted", "classes", "wanted"),
    [
        (GOOD["serving_default"], CLASSES, 0),
        ({**GOOD["serving_default"], "label": [EVIL]}, CLASSES, 1),
        ({**GOOD["serving_default"], "label": ["x" * 1_000_000]}, CLASSES, 1),
        ({**GOOD["serving_default"], "scores": [[NAN, NAN]]}, CLASSES, 1),
        ({**GOOD["serving_default"], "scores": [0.1]}, CLASSES, 1),
        ({**GOOD["serving_default"], "scores": [["a", "b"]]}, CLASSES, 3),
        ({"label": ["good"]}, CLASSES, 3),
        (GOOD["serving_default"], {"results": [[["bad", 0.1]], []]}, 3),
        (GOOD["serving_default"], {"results": [[["bad", 0.1], ["\ud800", 0.9]]]}, 3),
        (GOOD["serving_default"], {"results": [[["bad", 0.1], [EVIL, 0.9]]]}, 1),
        (GOOD["serving_default"], {"error": EVIL}, 3),
    ],
)  # fmt: skip
def test_verify(tmp_path, capsys, predicted, classes, wanted, form):
    version = tmp_path / "m" / "1"
    (version / "assets.extra").mkdir(parents=True)
    (version / "saved_model.pb").touch()
    (version / "assets.extra" / "golden.json").write_text(json.dumps(GOLDEN))
    predict = json.dumps({"outputs": predicted}).encode()
    with web(200, Liar(metadata=metadata(), predict=predict, classify=classes),
             "application/json") as (_, url):  # fmt: skip
        status = main(["verify", str(version), "--url", url, *form])
    printed, complained = capsys.readouterr()
    assert status == wanted, complained
    assert not RAW.search(printed + complained)
    assert complained.count("\n") == (wanted != 0)
    if form:
        assert json.loads(printed)["status"] == wanted


def test_text_of_any_length(command):
    liar = Liar(metadata=metadata(), predict={
        "outputs": {**GOOD["serving_default"], "label": ["x" * 3_000_000]}
    })  # fmt: skip
    status, printed, _ = command(liar, "predict")
    assert status == 0
    assert len(printed) < 200_000


def test_every_character():
    """All of Unicode: what is left is printed, and JSON stays the same."""
    for start in range(0, 0x110000, 0x1000):
        text = "".join(map(chr, range(start, start + 0x1000)))
        assert not RAW.search(safe_text(text).replace("\n", "")), hex(start)
        assert "\n" not in safe_text(text)
        if not 0xD000 <= start < 0xE000:
            raw = json.dumps(text, ensure_ascii=False)
            assert json.loads(safe_json(raw)) == text
            safe_text(text).encode()
    assert safe_text("שלום 你好 é 👩\u200d👩 a\u00a0b") == "שלום 你好 é 👩\u200d👩 a\u00a0b"
    assert safe_text("ab" * 9, 4) == "abab... (18 characters)"


@pytest.mark.parametrize(("share", "blocks"), [(0.5, 5), (7, 10), (-1, 0), (NAN, 0), (1e300, 10)])
def test_bars(share, blocks):
    assert share_bar(share, 10) == "█" * blocks


def _strings(value):
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _strings(part)]
