"""The examples of docs/converting.md run as they are, one after the other."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "converting.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`:UserWarning")
def test_examples_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    assert len(EXAMPLES) == 4
    for example in EXAMPLES:
        exec(compile(example, PAGE.name, "exec"), names)
    sizes = re.findall(r"\[.*\]", capsys.readouterr().out)
    assert sizes == ["[32, 32]", "[32]"]
    assert len(names["small"]) < len(names["content"])
    assert {"model.onnx", "model.tflite", "small.tflite", "int8.keras"} <= {
        path.name for path in tmp_path.iterdir()
    }
