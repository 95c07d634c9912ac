"""What commands print about servers that lie: one line, and nothing that a terminal obeys."""

import json
import math

import numpy as np
import pytest

from gru_serving.__main__ import main
from gru_serving.client.results import Explanation
from gru_serving.commands.explanations import picture
from tests.serving.commands.lying_server import (
    CLASSES,
    EVIL,
    FLOAT,
    GOOD,
    INPUTS,
    INT,
    RAW,
    Liar,
    metadata,
    tensor,
)
from tests.serving.strange_servers import web

COMMANDS = {
    "predict": (["predict"], "serving_default"),
    "stream": (["stream"], "step"),
    "explain": (["explain"], "gates"),
}


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


DEEP = b'{"outputs":' + b"[" * 100_000
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
    "NaN": lambda value: _each(value, math.nan),
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


def test_text_of_any_length(command):
    liar = Liar(metadata=metadata(), predict={
        "outputs": {**GOOD["serving_default"], "label": ["x" * 3_000_000]}
    })  # fmt: skip
    status, printed, _ = command(liar, "predict")
    assert status == 0
    assert len(printed) < 200_000


def _strings(value):
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _strings(part)]


def test_letters_that_no_font_has_are_told_without_warnings(tmp_path):
    gates = np.full((1, 1, 1, 2), 0.5)
    for token, lacking in (("a", False), ("\U0010fffd", True)):
        explanation = Explanation((token,), gates, gates, gates, np.ones((1, 1)))
        assert picture(explanation, ["good"], tmp_path / "gates.png") == lacking
