"""The trace in the symbols of the texts: every number in it is one of the trace, and it fits."""

import re

import numpy as np
import pytest

from keras_gru.__main__ import main
from keras_gru.teaching.columns import Drawing, Entry, Product, columns_report
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example
from tests.keras_gru.teaching.random_networks import NETWORKS


def drawn(network, width=80, decimals=4):
    return "\n".join(columns_report(trace(network), width, decimals))


def row_after(head, text):
    lines = (line for line in text.splitlines() if line.strip().startswith(head))
    line = next(line for line in lines if line.endswith("]ᵀ"))
    return [float(value) for value in re.search(r"\[([^\[\]]*)\]ᵀ$", line)[1].split(", ")]


def test_the_first_gate_is_drawn_as_the_text_draws_it():
    text = drawn(load_example("good_movie").network())
    second = text.split('Forward, t = 1: "movie"')[1]
    drawing = second[second.index("r₁ = σ") :].splitlines()[:6]
    assert drawing == [
        "r₁ = σ(W_r [h₀, x₁] + b_r):",
        "  [h₀, x₁] = [0.1240, 0.0889, 0.0400, 0.0000, 0.0000, 1.0000, 0.0000]ᵀ",
        "  [0.2 0.1 0.3 0.2 0.1 0.2 0.3]              [0.2457]   [0.1]   [0.3457]",
        "  [0.1 0.3 0.2 0.1 0.2 0.1 0.2] · [h₀, x₁] = [0.1471] + [0.1] = [0.2471]",
        "  [0.3 0.2 0.1 0.3 0.1 0.3 0.1]              [0.3590]   [0.1]   [0.4590]",
        "  r₁ = [0.5856, 0.5615, 0.6128]ᵀ",
    ]
    assert "W_r (3×7):" in text
    assert "∂L/∂W_h (3×7):" in text
    gradient = trace(load_example("good_movie").network()).totals
    expected = np.hstack([gradient["dU_g"].T, gradient["dW_g"].T])
    lines = text[text.index("∂L/∂W_h (3×7):") :].splitlines()[1:4]
    shown = [[float(n) for n in re.findall(r"-?\d+\.\d+", line)] for line in lines]
    np.testing.assert_allclose(shown, expected, atol=5e-5)


CELLS = {
    "keep_before": ("h", 0, {"r": "r", "z": "z", "h̃": "g"}),
    "replace_after": ("h", 0, {"r": "r", "z": "z", "h̃": "g"}),
    "rnn": ("s", 1, {"s": "h_new"}),
    "lstm": ("h", 1, {"o": "o", "i": "i", "f": "f", "s̃": "g", "s": "c_new"}),
    "mgu_keep": ("h", 0, {"z": "z", "h̃": "g"}),
    "coupled_gru_replace": ("h", 0, {"z": "z", "h̃": "g"}),
    "minimal_gru_keep": ("h", 0, {"z": "z", "h̃": "g"}),
}


@pytest.mark.parametrize("name", CELLS)
def test_the_numbers_are_those_of_the_trace(name):
    state, first, symbols = CELLS[name]
    network = parse_network(NETWORKS[name])
    found = trace(network)
    text = drawn(network, 200)
    subscript = "₀₁₂₃₄"
    for t, step in enumerate(found.steps):
        section = text.split(f"Forward, t = {t + first} ")[1].split("\n\n")[0]
        for symbol, quantity in symbols.items():
            shown = row_after(f"{symbol}{subscript[t + first]} = ", section)
            np.testing.assert_allclose(shown, step[quantity], atol=5e-5)
        shown = row_after(f"y{subscript[t + first]} = ", section)
        np.testing.assert_allclose(shown, step["y"], atol=5e-5)
        section = text.split(f"Backward, t = {t + first} ")[1].split("\n\n")[0]
        incoming = "δ" if name == "rnn" else f"∂L/∂{state}"
        shown = row_after(f"{incoming}{subscript[t + first]} = sum of both", section)
        np.testing.assert_allclose(shown, step["dh_new"], atol=5e-5)
    assert f"L = {network.reduction} of these = {float(found.totals['loss']):.6f}" in text


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("width", [72, 80, 120])
def test_every_kind_of_network_fits(name, width):
    text = drawn(parse_network(NETWORKS[name]), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert not re.search(r"[ \t]$", text, re.M)


def test_what_is_too_wide_is_broken_before_its_signs():
    products = [Product(np.full((2, 3), 0.25), name, np.ones(3)) for name in ("u", "v")]
    entry = Entry("s", "A u + A v", np.full(2, 1.5), tuple(products))
    wide, narrow = Drawing(80, 2).entry(entry), Drawing(30, 2).entry(entry)
    assert len(wide.splitlines()) == 3
    assert wide.splitlines()[1].startswith("  [0.25 0.25 0.25] · u + [0.25 0.25 0.25] · v = [0.75]")
    assert max(len(line) for line in narrow.splitlines()) <= 30
    assert [line.split()[0] for line in narrow.splitlines()[3::2]] == ["+", "=", "="]


def test_the_command_draws_columns(capsys):
    assert main(["trace", "--cell", "lstm", "--columns", "--decimals", "3"]) == 0
    out = capsys.readouterr().out
    assert "h₁ = o₁ ⊙ tanh(s₁), selectively written" in out
    value = trace(load_example("de_to_p").network("lstm")).steps[1]["h_new"]
    assert row_after("h₂ = ", out) == [round(v, 3) for v in value]
