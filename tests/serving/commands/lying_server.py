"""A server that lies: what it may answer to each command."""

import json
import re

EVIL = "a\x1b[2J\x1b]0;owned\x07\x9b31m\r\n\tb\u202egnp.exe\u2066[red]x[/red]\x00\x7f"
# Must not reach a terminal: control characters and direction marks; lines end in "\n".
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def tensor(dtype, *dims):
    return {"dtype": dtype, "tensor_shape": {"dim": [{"size": str(d)} for d in dims]}}


STRING, FLOAT, INT = "DT_STRING", "DT_FLOAT", "DT_INT32"
OUTPUTS = {
    "serving_default": {"label": tensor(STRING, -1), "probability": tensor(FLOAT, -1),
                        "scores": tensor(FLOAT, -1, 2)},
    "step": {"label": tensor(STRING, -1), "probability": tensor(FLOAT, -1),
             "scores": tensor(FLOAT, -1, 2), "state": tensor(FLOAT, -1, 4)},
    "gates": {"tokens": tensor(STRING, -1, -1), "scores": tensor(FLOAT, -1, -1, 2),
              **{name: tensor(FLOAT, -1, -1, 1, 1, 4)
                 for name in ("update_gate", "reset_gate", "state")}},
}  # fmt: skip
INPUTS = {
    "serving_default": {"text": tensor(STRING, -1)},
    "step": {"token": tensor(STRING, -1), "state": tensor(FLOAT, -1, 4)},
    "gates": {"text": tensor(STRING, -1)},
}


def metadata(inputs=None, outputs=None):
    inputs, outputs = {**INPUTS, **(inputs or {})}, {**OUTPUTS, **(outputs or {})}
    signatures = {
        name: {"inputs": inputs[name], "outputs": outputs[name], "method_name": "m"}
        for name in inputs
    }
    return {
        "model_spec": {"name": "m", "version": "1"},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


class Liar:
    """Answers by the last part of the path."""

    def __init__(self, **answers):
        self.answers = answers

    def __call__(self, path):
        kind = path.rpartition(":")[2] if ":" in path else path.rpartition("/")[2]
        answer = self.answers.get(kind, {"error": "no"})
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


GATE = [[[[[0.5] * 4]], [[[0.5] * 4]]]]
GOOD = {
    "serving_default": {"label": ["good"], "probability": [0.9], "scores": [[0.1, 0.9]]},
    "step": {"label": ["good"], "probability": [0.9], "scores": [[0.1, 0.9]],
             "state": [[0.1] * 4]},
    "gates": {"tokens": [["a", "b"]], "scores": [[[0.5, 0.5], [0.1, 0.9]]],
              "update_gate": GATE, "reset_gate": GATE, "state": GATE},
}  # fmt: skip

GOLDEN = [
    {"method": "predict", "signature_name": "serving_default", "inputs": {"text": ["a b"]},
     "outputs": GOOD["serving_default"]},
    {"method": "classify", "signature_name": "classify", "examples": [{"text": "a"}],
     "outputs": {"classes": [["bad", "good"]], "scores": [[0.1, 0.9]]}},
]  # fmt: skip
CLASSES = {"results": [[["bad", 0.1], ["good", 0.9]]]}
