"""The layer benchmark measures what it claims, rejects unequal contenders and reports correctly."""

import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from benchmarks.layer import __main__ as layer
from benchmarks.layer import rounds as layer_rounds
from benchmarks.layer.contest import Contest, Shape, contests, second_grid
from benchmarks.layer.equality import assert_equal, weights_for
from benchmarks.layer.memory import ENVIRONMENT
from benchmarks.layer.report import cells, grids, markdown
from benchmarks.layer.worker import UnequalError

TINY = Shape(3, 5, 2, 4)


@pytest.mark.long
def test_a_tiny_shape_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(layer_rounds, "_wait_for_quiet", lambda _: False)
    arguments = ["--only", "layer", "one-step", "launch", "--shape", str(TINY), "--rounds", "1"]
    assert layer.main([*arguments, "--out", str(tmp_path), "--markdown", str(tmp_path / "t")]) == 0

    results = json.loads((tmp_path / "layer.json").read_text())
    seen = {
        (one["measure"], one["contender"]): one
        for contest in results["contests"]
        for one in contest["times"]
    }
    wanted = {"Keras", "Keras jit", "keras_gru", "keras_gru jit"}
    for module, name in (("torch", "PyTorch"), ("flax", "Flax")):
        if importlib.util.find_spec(module):
            wanted.add(name)
        else:
            assert module in results["absent"][name]
    assert {name for measure, name in seen if measure == "training"} == wanted
    steppers = {"Keras", "Keras jit", "keras_gru", "keras_gru jit", "keras_gru layer"}
    assert {name for measure, name in seen if measure == "one step"} == steppers
    exports = {"Keras export", "keras_gru export"}
    launched = {"TensorFlow", "TensorFlow jit"}
    launched |= wanted & {"PyTorch"} | ({"JAX"} if "Flax" in wanted else set())
    assert {name for measure, name in seen if measure == "launch"} == launched
    assert {name for measure, name in seen if measure == "inference"} == wanted | exports
    assert all(min(one["seconds"]) > 0 for one in seen.values())
    others = [one["difference"] for key, one in seen.items() if key[1] != "Keras"]
    assert 0 < max(others) < 1e-4
    assert np.ptp(imread(tmp_path / "layer.png")) > 0.5
    assert (tmp_path / "layer.md").read_text() == (tmp_path / "t").read_text()
    assert "| 3,5,2,4 |" in (tmp_path / "t").read_text()


def test_weights_reach_the_rivals_in_their_layout():
    pytest.importorskip("torch")
    from benchmarks.layer import torch as layer_torch

    contest = Contest("layer", TINY)
    made = layer_torch.contenders(contest, weights_for("torch", contest))
    states = made["inference", "PyTorch"].result()
    kernel, recurrent_kernel, bias = (v.astype("float64") for v in contest.weights())
    x, h, u = contest.inputs().astype("float64"), np.zeros((TINY.batch, TINY.units)), TINY.units
    for t in range(TINY.steps):
        gx, gh = x[:, t] @ kernel + bias[0], h @ recurrent_kernel + bias[1]
        z, r = (1 / (1 + np.exp(-(gx + gh)[:, i * u : (i + 1) * u])) for i in range(2))
        g = np.tanh(gx[:, 2 * u :] + r * gh[:, 2 * u :])
        h = z * h + (1 - z) * g
        np.testing.assert_allclose(states[:, t], h, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [1.01, math.nan])
@pytest.mark.parametrize("at", [0, 1])
def test_what_is_unequal_is_refused(wrong, at):
    right = [np.arange(1.0, 7).reshape(2, 3), np.ones(4)]
    spoilt = [right[0].copy(), right[1].copy()]
    spoilt[at][-1] *= wrong
    keys = [("training", "Keras"), ("training", "other")]
    frameworks = dict.fromkeys(keys, "tensorflow")
    assert_equal(frameworks, dict(zip(keys, (right, right), strict=True)))
    for pair in ((right, spoilt), (spoilt, right)):
        with pytest.raises(UnequalError, match=r"other and Keras differ|finite values"):
            assert_equal(frameworks, dict(zip(keys, pair, strict=True)))
    with pytest.raises(UnequalError, match="of shape"):
        assert_equal(frameworks, dict(zip(keys, (right, [v[:1] for v in right]), strict=True)))
    zeros = [np.zeros(3)]
    with pytest.raises(UnequalError, match="not all zero"):
        assert_equal(frameworks, dict(zip(keys, (zeros, zeros), strict=True)))


class Clockwork:
    """A worker whose calls take given times, in this order."""

    def __init__(self, seconds):
        self._seconds = iter(seconds)

    def ask(self, request, key):
        assert request == "seconds"
        time.sleep(0.001)
        return next(self._seconds)


def rounds_of(monkeypatch, foreign, rounds):
    """Rounds of one pass each, while other processes use these shares of a core."""
    monkeypatch.setattr(layer_rounds, "_MOST_PASSES", 1)
    monkeypatch.setattr(layer_rounds, "_wait_for_quiet", lambda _: True)
    shares = iter(foreign)
    monkeypatch.setattr(layer_rounds.Watch, "foreign", lambda _: next(shares))
    worker = Clockwork(range(100))
    return layer_rounds.measure({("training", "Keras"): worker}, rounds, [])


def test_disturbed_rounds_are_done_again(monkeypatch):
    counted = rounds_of(monkeypatch, [0.0, 0.5, 0.05, 0.0], 3)
    assert counted.seconds["training", "Keras"] == [1, 3, 4]  # call 0: warm-up; 2: disturbed
    assert (counted.thrown_away, counted.disturbed) == (1, 0)


def test_the_least_disturbed_rounds_count_where_there_are_no_others(monkeypatch):
    counted = rounds_of(monkeypatch, [0.9, 0.3, 0.0, 0.2], 2)
    assert counted.seconds["training", "Keras"] == [3, 4]
    assert (counted.thrown_away, counted.disturbed) == (2, 1)


@pytest.mark.skipif(not layer_rounds.counts_foreign_time(), reason="no /proc/stat here")
def test_own_processor_time_is_not_foreign():
    started = time.perf_counter()
    ours, theirs = layer_rounds.Watch([os.getpid()]), layer_rounds.Watch([])
    until = time.process_time() + 0.5
    while time.process_time() < until:
        pass
    with_us, without_us = theirs.foreign(), ours.foreign()
    seconds = (with_us - without_us) * (time.perf_counter() - started)
    assert seconds == pytest.approx(0.5, abs=0.1)


PEAK = """
import numpy as np
from benchmarks.layer.memory import peak_bytes

kept = []

def call():
    if not kept:  # as an allocator keeps memory for the next call
        kept.append(np.ones(32 << 20, "uint8"))
        first_time = np.ones(300 << 20, "uint8")
        del first_time
    first = np.ones(48 << 20, "uint8")
    del first
    second = np.ones(16 << 20, "uint8")
    return second + np.ones(16 << 20, "uint8")

def start():
    loaded.append(np.ones(64 << 20, "uint8"))

loaded = []
earlier = np.ones(200 << 20, "uint8")
del earlier
print(peak_bytes(start, call))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no /proc/self/clear_refs")
def test_peak_memory_of_a_known_size():
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", PEAK], env=environment, capture_output=True, text=True, check=True
    )
    # What is kept, and three arrays of 16 MiB at once, like the first of 48 alone: 80 MiB, plus a
    # little for Python.
    assert 79 < int(done.stdout) / 2**20 < 82


def entry(measure, contender, seconds, against="Keras"):
    return {
        "measure": measure,
        "contender": contender,
        "against": against,
        "difference": 1e-7,
        "seconds": seconds,
    }


RESULTS = {
    "rounds": 3,
    "environment": {"cores": "2"},
    "absent": {"Flax": "No module named 'flax'"},
    "gemm": [1e9, 2e9],
    "memory": [{"shape": [1, 2, 3, 4], "Keras": 4 << 20, "keras_gru": 1 << 20}],
    "contests": [
        {
            "table": "layer",
            "grid": "main",
            "masked": False,
            "shape": shape,
            "thrown_away": 2,
            "disturbed": 1,
            "times": [
                entry("training", "Keras", [8.0, 9.0, 4.0], None),
                entry("training", "PyTorch", [6.0, 6.0, 6.0]),
                entry("training", "keras_gru", ours),
                entry("training", "keras_gru jit", [5.0, 5.0, 5.0]),
            ],
        }
        for shape, ours in (([1, 2, 3, 4], [4.0, 3.0, 2.0]), ([2, 2, 3, 4], [2.0, 1.0, 1.0]))
    ],
}


def test_the_report_by_hand():
    (group,) = cells(RESULTS).values()
    first = group[0]
    assert first.ratio("keras_gru", first.median) == pytest.approx(8 / 3)
    assert first.ratio("keras_gru", first.least) == pytest.approx(4 / 2)
    assert first.leads(first.median) == pytest.approx([6 / 3, 6 / 3])
    assert first.leads({"Keras": 9, "PyTorch": 6, "keras_gru": 5, "keras_gru jit": 4}) == [1.2, 1.5]
    # Three gates of (3 + 4) × 4, two steps, one row; two operations a product, backward twice.
    assert first.roofline(2e9) == pytest.approx(2 * 3 * 2 * 3 * 4 * 7 / 2e9 / 3)
    table = next(grids(RESULTS))
    assert table.heading[-5:] == [
        "keras_gru ×Keras",
        "keras_gru jit ×Keras",
        "keras_gru ×best rival",
        "either ×best rival",
        "of roofline",
    ]
    assert table.rows[-1][-5] == f"**{math.sqrt(8 / 3 * 8):.2f}**"
    text = markdown(RESULTS)
    assert "thrown away for foreign load: 4" in text
    assert "disturbed by foreign load: 2" in text
    assert "absent: Flax" in text
    assert "| 1,2,3,4 | 4.0 | 1.0 | 0.25 |" in text


def test_earlier_results_are_shown_again(tmp_path, capsys):
    (tmp_path / "layer.json").write_text(json.dumps(RESULTS))
    source = str(tmp_path / "layer.json")
    assert layer.main(["--from", source, "--markdown", str(tmp_path / "tables.md")]) == 0
    assert (tmp_path / "tables.md").read_text() == markdown(RESULTS)
    assert "Peak memory" in capsys.readouterr().out
    assert not (tmp_path / "layer.png").exists()


def test_the_second_grid_covers_its_ranges():
    grid = np.array(second_grid())
    assert len(grid) >= 8
    assert second_grid() == second_grid()
    for sizes, low, high in zip(grid.T, (1, 8, 16, 16), (256, 1000, 512, 512), strict=True):
        share = np.log(sizes / low) / np.log(high / low)
        assert share.min() < 0.11
        assert share.max() > 0.89
        assert (share >= -0.01).all()
        assert (share <= 1.01).all()


def test_a_failure_is_shown_and_what_was_measured_is_kept(tmp_path, monkeypatch, capsys):
    def fail(todo, rounds, results, folder):
        results.update(RESULTS)
        raise UnequalError("PyTorch and Keras differ [in training]")

    monkeypatch.setattr(layer, "_run", fail)
    assert layer.main(["--out", str(tmp_path)]) == 1
    assert "PyTorch and Keras differ [in training]" in capsys.readouterr().out
    assert (tmp_path / "layer.md").read_text() == markdown(RESULTS)


def test_contests_of_a_run():
    assert {c.table for c in contests(["memory", "steps"])} == {"memory", "steps"}
    assert {c.grid for c in contests(["layer"], "second")} == {"second"}
    assert len(contests(["layer"])) == 7 + len(second_grid())
    assert {c.shape for c in contests(["layer", "masks"], own=[TINY])} == {TINY}


@pytest.mark.parametrize("shape", ["1,2,3", "1,2,3,x", "0,2,3,4", "1 2 3 4"])
def test_a_wrong_shape_is_named(shape, capsys):
    with pytest.raises(SystemExit):
        layer.main(["--shape", shape])
    assert repr(shape) in capsys.readouterr().err
