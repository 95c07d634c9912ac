"""Errata about what is drawn, listed and said of numbers."""

from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example
from tests.keras_gru.plain_network import by_autodiff
from tests.keras_gru.teaching.errata.confirmation import confirms

TEXTS = Path(__file__).parents[5] / "shared" / "texts"


@confirms("EX-27")
def test_every_bar_is_one_square_too_short():
    drawn = {57.4: 12, 55.0: 11, 59.9: 12, 58.6: 12, 56.1: 11, 61.3: 12, 56.4: 11}
    for percent, squares in drawn.items():
        assert round(22 * percent / 100) == squares + 1
    text = TEXTS / "gru_explained.md"
    if text.exists():
        bars = [line for line in text.read_text("utf-8").splitlines() if "█" in line]
        assert len(bars) == 12
        for bar in bars:
            percent = float(bar.split("│")[2].split("%")[0])
            assert bar.count("█") == drawn[percent]
            assert bar.count("█") + bar.count("░") == 22


@confirms("EX-34")
def test_sections_of_the_table_of_contents_are_missing():
    """Quoted from the texts; compared with them where they are at hand."""
    if not TEXTS.exists():
        pytest.skip("needs the texts beside the checkout")
    explained = (TEXTS / "gru_explained.md").read_text("utf-8")
    for number, heading in ((5, "GRU vs Vanilla RNN Comparison"), (6, "Key Insights and Summary")):
        assert f"{number}. [{heading}]" in explained
        assert f"# {heading}" not in explained


@confirms("NN-3")
def test_the_input_is_not_a_word_of_two():
    x = load_example("one_training_step").network().inputs[0]
    assert x.tolist() not in ([1, 0], [0, 1])
    one_hot = keras.ops.one_hot([0, 1], 2).numpy()
    assert x.tolist() not in one_hot.tolist()
    assert x.sum() == pytest.approx(1.4)


@confirms("NN-4")
def test_the_largest_gradients_compared_alike():
    network = load_example("one_training_step").network()
    _, totals = by_autodiff(network)
    for found in (totals, trace(network).totals):
        largest = {name: np.abs(found[f"d{name}"]).max() for name in ("W_out", "b_out", "b_g")}
        assert largest["b_out"] == pytest.approx(0.400, abs=5e-4)
        assert largest["W_out"] == pytest.approx(0.145, abs=1e-3)
        assert largest["b_g"] == pytest.approx(0.130, abs=1e-3)
        assert largest["b_g"] > max(np.abs(found[f"dW_{gate}"]).max() for gate in "zrg")
