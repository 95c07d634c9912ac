"""The GRU and its variants in the symbols of gru_explained and gru_architecture."""

import numpy as np

from keras_gru.teaching.cells.notebook import Values
from keras_gru.teaching.columns.entry import Entry, Product
from keras_gru.teaching.columns.symbols import at, joined_matrix, transposed
from keras_gru.teaching.network import Network
from keras_gru.teaching.network_fields import Array

LETTER = {"z": "z", "r": "r", "g": "h"}
"""Index of a block's weights in the texts."""


def forward(network: Network, t: int, step: Values) -> list[Entry]:
    """Reset gate, update gate, candidate, new state."""
    h, x, z, new = at("h", t - 1), at("x", t), at("z", t), at("h", t)
    reset_is_a_gate = network.cell_name == "gru"
    gates = ["r", "z"] if reset_is_a_gate else ["z"]
    entries = [
        Entry(
            at(gate, t),
            f"σ(W_{gate} [{h}, {x}] + b_{gate})",
            step[gate],
            (_concatenated(network, gate, f"[{h}, {x}]", step["h"], step["x"]),),
            (f"b_{gate}", _bias(network, gate)),
        )
        for gate in gates
    ]
    candidate = at("h̃", t)
    if network.reset_after:
        entries += [
            Entry(
                "q",
                f"W_hh {h} + b′_h",
                step["q"],
                (Product("W_hh", network.recurrent_kernel["g"].T, h, step["h"]),),
                ("b′_h", network.recurrent_bias["g"]),
            ),
            Entry(f"{at('r', t)} ⊙ q", "", step["rq"]),
            Entry(
                candidate,
                f"{network.activation}(W_hx {x} + b_h + {at('r', t)} ⊙ q)",
                step["g"],
                (Product("W_hx", network.kernel["g"].T, x, step["x"]),),
                ("b_h + r ⊙ q", network.bias["g"] + step["rq"]),
            ),
        ]
    else:
        past = h
        if network.cell_name != "minimal_gru":
            reset = at("r", t) if reset_is_a_gate else _reset_symbol(network, t)
            past = f"{reset} ⊙ {h}"
            entries.append(Entry(past, "", step["rh"]))
        entries.append(
            Entry(
                candidate,
                f"{network.activation}(W_h [{past}, {x}] + b_h)",
                step["g"],
                (_concatenated(network, "g", f"[{past}, {x}]", step["rh"], step["x"]),),
                ("b_h", network.bias["g"]),
            )
        )
    keep, add = (z, f"(1 − {z})") if network.update_gate == "keep" else (f"(1 − {z})", z)
    return [
        *entries,
        Entry(f"{keep} ⊙ {h}", "", step["kept"]),
        Entry(f"{add} ⊙ {candidate}", "", step["added"]),
        Entry(new, f"{keep} ⊙ {h} + {add} ⊙ {candidate}", step["h_new"], result=True),
    ]


def backward(network: Network, t: int, step: Values) -> list[Entry]:
    """From ∂L/∂h_t to ∂L/∂h_{t−1}."""
    d, h, z, new, candidate = "∂L/∂", at("h", t - 1), at("z", t), at("h", t), at("h̃", t)
    keep, add = (z, f"(1 − {z})") if network.update_gate == "keep" else (f"(1 − {z})", z)
    difference = f"({h} − {candidate})" if network.update_gate == "keep" else f"({candidate} − {h})"
    pre = {gate: f"{d}z_{LETTER[gate]},{t}" for gate in "zrg"}
    of_candidate = [
        Entry(f"{d}{candidate}", f"{d}{new} ⊙ {add}", step["d_g"]),
        Entry(pre["g"], f"{d}{candidate} ⊙ {network.activation}′", step["d_a_g"]),
    ]
    U = network.recurrent_kernel
    if network.cell_name != "gru":
        return [
            *of_candidate,
            Entry(
                f"{d}p",
                f"W_hᵀ[0:n, :] {pre['g']}, p the state that W_h reads",
                step["d_rh"],
                (transposed("W_h", U["g"], (pre["g"], step["d_a_g"])),),
            ),
            Entry(f"{d}{z} in h", f"{d}{new} ⊙ {difference}", step["d_z_mixture"]),
            *(
                [Entry(f"{d}{z} in p", "", step["d_z_candidate"])]
                if network.cell_name != "minimal_gru"
                else []
            ),
            Entry(pre["z"], f"{d}{z} ⊙ {_slope(network, z)}", step["d_a_z"]),
            Entry(f"{d}{h}, direct", f"{d}{new} ⊙ {keep}", step["dh_direct"]),
            Entry(f"{d}{h}, candidate", "", step["dh_candidate"]),
            Entry(
                f"{d}{h}, gate",
                "",
                step["dh_update_gate"],
                (transposed("W_z", U["z"], (pre["z"], step["d_a_z"])),),
            ),
            Entry(f"{d}{h}", "direct + candidate + gate", step["dh"], result=True),
        ]
    r = at("r", t)
    gate_path = [
        Entry(
            f"{d}{h}, through {gate}",
            f"W_{gate}ᵀ[0:n, :] {pre[gate]}",
            step[name],
            (transposed(f"W_{gate}", U[gate], (pre[gate], step[f"d_a_{gate}"])),),
        )
        for gate, name in (("z", "dh_update_gate"), ("r", "dh_reset_gate"))
    ]
    if network.reset_after:
        through_reset = [
            Entry(f"{d}q", f"{pre['g']} ⊙ {r}", step["d_q"]),
            Entry(f"{d}{r}", f"{pre['g']} ⊙ q", step["d_r"]),
        ]
        candidate_path = Entry(
            f"{d}{h}, candidate",
            f"W_hhᵀ {d}q",
            step["dh_candidate"],
            (transposed("W_hh", U["g"], (f"{d}q", step["d_q"])),),
        )
    else:
        through_reset = [
            Entry(
                f"{d}({r} ⊙ {h})",
                f"W_hᵀ[0:n, :] {pre['g']}",
                step["d_rh"],
                (transposed("W_h", U["g"], (pre["g"], step["d_a_g"])),),
            ),
            Entry(f"{d}{r}", f"{d}({r} ⊙ {h}) ⊙ {h}", step["d_r"]),
        ]
        candidate_path = Entry(f"{d}{h}, candidate", f"{d}({r} ⊙ {h}) ⊙ {r}", step["dh_candidate"])
    return [
        Entry(f"{d}{z}", f"{d}{new} ⊙ {difference}", step["d_z"]),
        Entry(pre["z"], f"{d}{z} ⊙ {_slope(network, z)}", step["d_a_z"]),
        *of_candidate,
        *through_reset,
        Entry(pre["r"], f"{d}{r} ⊙ {_slope(network, r)}", step["d_a_r"]),
        Entry(f"{d}{h}, direct", f"{d}{new} ⊙ {keep}", step["dh_direct"]),
        candidate_path,
        *gate_path,
        Entry(f"{d}{h}", "direct + candidate + gates", step["dh"], result=True),
    ]


def _slope(network: Network, gate: str) -> str:
    return f"{gate} ⊙ (1 − {gate})" if network.recurrent_activation == "sigmoid" else "σ′"


def _reset_symbol(network: Network, t: int) -> str:
    """What multiplies the state in a cell of one gate."""
    z = at("z", t)
    gate_resets = (network.cell_name == "mgu") == (network.update_gate == "replace")
    return z if gate_resets else f"(1 − {z})"


def _bias(network: Network, block: str) -> Array:
    return network.bias[block] + network.recurrent_bias[block]


def _concatenated(network: Network, block: str, symbol: str, h: Array, x: Array) -> Product:
    matrix = joined_matrix(network, block)
    return Product(f"W_{LETTER[block]}", matrix, symbol, np.concatenate([h, x]))
