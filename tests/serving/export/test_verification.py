"""Golden requests asked again, and what is said of answers that differ."""

import json
import shutil

import numpy as np
import pytest

from gru_serving.commands.verify import main as verify
from gru_serving.engine.golden import (
    GOLDEN,
    VerificationError,
    WrongAnswerError,
    difference,
    local_engine,
    read_golden,
    replay,
)
from gru_serving.engine.predictor import Predictor


@pytest.mark.slow
def test_verify_says_what_differs(exports, tmp_path, capsys):
    version = exports.version("both")
    assert verify([str(version)]) == 0
    assert "64 rows" in capsys.readouterr().out
    shutil.copytree(version, tmp_path / "1")
    golden = json.loads((version / GOLDEN).read_text("utf-8"))
    golden[2]["outputs"]["label"][1] = "neutral"
    (tmp_path / "1" / GOLDEN).write_text(json.dumps(golden), "utf-8")
    assert verify([str(tmp_path / "1")]) == 1
    said = capsys.readouterr().err
    assert "request 2 (serving_default), output 'label', row 1: expected b'neutral'" in said
    (tmp_path / "1" / GOLDEN).unlink()
    assert verify([str(tmp_path / "1")]) == 2
    assert "golden.json: cannot be read" in capsys.readouterr().err
    assert verify([str(tmp_path / "nix")]) == 2
    assert "expected the directory of a version" in capsys.readouterr().err


def test_debug_shows_where_verification_failed(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(VerificationError, match=r"golden\.json: cannot be read"):
        verify(["--debug", str(tmp_path)])


@pytest.mark.slow
def test_replay_sees_shapes_missing_outputs_and_nan(exports):
    golden = read_golden(exports.version("both"))
    right = local_engine(Predictor(exports.version("both")))

    def altered(change):
        def ask(request):
            answers = dict(right(request))
            change(answers)
            return answers

        return ask

    replay(golden, altered(dict.copy))
    for change, words in [
        (lambda a: a.pop("scores"), "missing"),
        (lambda a: a.update(scores=a["scores"][:, :1]), "expected shape"),
        (lambda a: a.update(scores=a["scores"] * np.nan), "expected array"),
    ]:
        with pytest.raises(WrongAnswerError, match=words):
            replay(golden, altered(change))


def test_differences_are_relative_to_large_numbers_alone():
    small = difference(np.array([0.5, -0.25]), np.array([0.5, -0.375], np.float32))
    np.testing.assert_array_equal(small, [0, 0.125])
    large = difference(np.array([400.0, 0.5]), np.array([402.0, 0.5]))
    np.testing.assert_array_equal(large, [2 / 400, 0])
