"""docs/gru_architecture.md runs as it stands: the text's classes beside ours."""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "gru_architecture.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def printed(block, names):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(block, "gru_architecture.md", "exec"), names)
    return out.getvalue()


def needs_torch(block):
    return "torch" in block or "nn." in block or "theirs" in block


def test_our_side_of_the_page_runs():
    names = {"__name__": "__main__"}
    outputs = [printed(block, names) for block in BLOCKS if not needs_torch(block)]
    assert len(outputs) >= 8
    assert outputs[-1].split() == ["274176", "274944"]
    orthogonal, reset = outputs[-3].splitlines()
    assert float(orthogonal) < 1e-5
    assert reset == "[1. 1. 1. 1. 1. 1.]"


def test_both_sides_of_the_page_agree():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    names = {"__name__": "__main__"}
    differences = []
    for block in BLOCKS:
        out = printed(block, names)
        if "print(" in block and needs_torch(block) and "bias_hh_l0" not in block:
            differences.append(float(out))
        if "bias_hh_l0" in block and out:
            assert out.strip() == "[2.0, 2.0, 2.0, 2.0, 2.0, 2.0]"
    assert len(differences) == 6
    assert max(differences) < 1e-5
