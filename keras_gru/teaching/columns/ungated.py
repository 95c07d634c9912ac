"""The vanilla RNN and the LSTM in the symbols of rnn_lstm_gru_notes.

Its W is the recurrent matrix and its U the input's, the other way round than in DERIVATION.md; its
LSTM calls the cell s and the output h. Its steps count from 1.
"""

from keras_gru.teaching.cells.notebook import Values
from keras_gru.teaching.columns.entry import Entry
from keras_gru.teaching.columns.symbols import at, split_products, transposed
from keras_gru.teaching.network import Network

_GATES = {"o": "output", "i": "input", "f": "forget"}


def rnn_forward(network: Network, t: int, step: Values) -> list[Entry]:
    """s_t = σ(W s_{t−1} + U x_t + b)."""
    s, x = at("s", t), at("x", t + 1)
    products = split_products(network, "h", ("W", "U"), (s, step["h"]), (x, step["x"]))
    formula = f"{network.activation}(W {s} + U {x} + b)"
    added = ("b", network.bias["h"])
    return [Entry(at("s", t + 1), formula, step["h_new"], products, added, result=True)]


def rnn_backward(network: Network, t: int, step: Values) -> list[Entry]:
    """From δ_t, the gradient of s_t, to that of s_{t−1}."""
    s, a = at("s", t + 1), f"∂L/∂{at('a', t + 1)}"
    W = network.recurrent_kernel["h"]
    return [
        Entry(f"∂{s}/∂{at('a', t + 1)}, its diagonal", f"{network.activation}′", step["slope_h"]),
        Entry(a, f"{at('δ', t + 1)} ⊙ {network.activation}′", step["d_a_h"]),
        Entry(
            f"∂L/∂{at('s', t)}, to step {t}",
            f"Wᵀ {a}",
            step["dh"],
            (transposed("W", W, (a, step["d_a_h"])),),
            result=True,
        ),
    ]


def lstm_forward(network: Network, t: int, step: Values) -> list[Entry]:
    """Gates, candidate, cell s_t, output h_t."""
    h, x, s, new = at("h", t), at("x", t + 1), at("s", t), t + 1
    entries = []
    for block in (*_GATES, "g"):
        letter = "" if block == "g" else f"_{block}"
        symbols = (f"W{letter}", f"U{letter}")
        products = split_products(network, block, symbols, (h, step["h"]), (x, step["x"]))
        name = network.activation if block == "g" else "σ"
        entries.append(
            Entry(
                at("s̃" if block == "g" else block, new),
                f"{name}(W{letter} {h} + U{letter} {x} + b{letter})",
                step[block],
                products,
                (f"b{letter}", network.bias[block]),
            )
        )
    return [
        *entries,
        Entry(f"{at('f', new)} ⊙ {s}, kept", "", step["kept"]),
        Entry(f"{at('i', new)} ⊙ {at('s̃', new)}, selectively read", "", step["added"]),
        Entry(at("s", new), "sum of both", step["c_new"], result=True),
        Entry(
            at("h", new),
            f"{at('o', new)} ⊙ {network.activation}({at('s', new)}), selectively written",
            step["h_new"],
            result=True,
        ),
    ]


def lstm_backward(network: Network, t: int, step: Values) -> list[Entry]:
    """From ∂L/∂h_t and ∂L/∂s_t to those of the step before."""
    d, new, h, phi = "∂L/∂", t + 1, at("h", t), network.activation
    cell, output = at("s", new), at("h", new)
    pre = {block: f"{d}a_{'s̃' if block == 'g' else block},{new}" for block in (*_GATES, "g")}
    entries = [
        Entry(f"{d}{at('o', new)}", f"{d}{output} ⊙ {phi}({cell})", step["d_o"]),
        Entry(f"{d}{cell} from {output}", f"{d}{output} ⊙ {at('o', new)} ⊙ {phi}′",
              step["dc_output"]),
        Entry(f"{d}{cell} from the future", "", step["dc_future"]),
        Entry(f"{d}{cell}", "sum of both", step["dc_new"], result=True),
        Entry(f"{d}{at('f', new)}", f"{d}{cell} ⊙ {at('s', t)}", step["d_f"]),
        Entry(f"{d}{at('i', new)}", f"{d}{cell} ⊙ {at('s̃', new)}", step["d_i"]),
        Entry(f"{d}{at('s̃', new)}", f"{d}{cell} ⊙ {at('i', new)}", step["d_g"]),
    ]  # fmt: skip
    for block, symbol in pre.items():
        slope = f"{phi}′" if block == "g" else "σ′"
        gate = at("s̃" if block == "g" else block, new)
        entries.append(Entry(symbol, f"{d}{gate} ⊙ {slope}", step[f"d_a_{block}"]))
    entries.append(
        Entry(f"{d}{at('s', t)}", f"{d}{cell} ⊙ {at('f', new)}, direct", step["dc"], result=True)
    )
    entries.append(
        Entry(
            f"{d}{h}",
            "sum of W_oᵀ, W_iᵀ, W_fᵀ and Wᵀ times their gradients",
            step["dh"],
            tuple(
                transposed(
                    "W" if block == "g" else f"W_{block}",
                    network.recurrent_kernel[block],
                    (symbol, step[f"d_a_{block}"]),
                )
                for block, symbol in pre.items()
            ),
            result=True,
        )
    )
    return entries
