"""One forward step of each cell of a trace, with a probe added to every quantity.

See `tests.keras_gru.plain_network`. `p` are the probes of the step, `w` its weights by letter and
block, `x` and `state` row vectors.
"""

from dataclasses import dataclass, field

# Name of a trace's gradient: the probes whose derivatives add up to it. Of every cell:
SHARED = {
    "d_logits": ["logits"],
    "dh_output": ["h_output"],
    "dh_future": ["h_next"],
    "dh_new": ["h_new"],
    "dh": ["h"],
    "dx": ["x"],
    "dW_out": ["W_out"],
    "db_out": ["b_out"],
}
GRU = {
    "d_z": ["z"],
    "d_r": ["r"],
    "d_g": ["g"],
    "d_a_z": ["a_z"],
    "d_a_r": ["a_r"],
    "d_a_g": ["a_g"],
    "d_q": ["q"],
    "d_rh": ["rh"],
    "dh_direct": ["h_direct"],
    "dh_candidate": ["h_candidate"],
    "dh_update_gate": ["h_z"],
    "dh_reset_gate": ["h_r"],
    "dh_gates": ["h_z", "h_r"],
}
RNN = {"d_a_h": ["a_h"]}
LSTM = {
    **{f"d_{gate}": [gate] for gate in "ifog"},
    **{f"d_a_{gate}": [f"a_{gate}"] for gate in "ifog"},
    "dc_output": ["c_output"],
    "dc_future": ["c_next"],
    "dc_new": ["c_new"],
    "dc": ["c"],
    "dh_input_gate": ["h_i"],
    "dh_forget_gate": ["h_f"],
    "dh_output_gate": ["h_o"],
    "dh_candidate": ["h_g"],
}
SINGLE_GATE = {
    "d_z": ["z_mixture", "z_candidate"],
    "d_z_mixture": ["z_mixture"],
    "d_z_candidate": ["z_candidate"],
    "d_g": ["g"],
    "d_a_z": ["a_z"],
    "d_a_g": ["a_g"],
    "d_rh": ["rh"],
    "dh_direct": ["h_direct"],
    "dh_candidate": ["h_candidate"],
    "dh_update_gate": ["h_z"],
}


@dataclass
class Step:
    """What a step reads."""

    network: object
    p: dict
    sigma: object
    phi: object
    w: dict = field(default_factory=dict)

    def affine(self, block, x, h):
        w = self.w
        return x @ w["W", block] + h @ w["U", block] + w["b", block] + w["c", block]


def gru(step, x, h):
    network, p, w = step.network, step.p, step.w
    v = {}
    for gate in "zr":
        v[f"a_{gate}"] = step.affine(gate, x, h["h"] + p[f"h_{gate}"]) + p[f"a_{gate}"]
        v[gate] = step.sigma(v[f"a_{gate}"]) + p[gate]
    read = h["h"] + p["h_candidate"]
    if network.reset_after:
        v["q"] = read @ w["U", "g"] + w["c", "g"] + p["q"]
        past = v["r"] * v["q"]
    else:
        v["rh"] = v["r"] * read + p["rh"]
        past = v["rh"] @ w["U", "g"]
    v["a_g"] = past + x @ w["W", "g"] + w["b", "g"] + p["a_g"]
    v["g"] = step.phi(v["a_g"]) + p["g"]
    keep = v["z"] if network.update_gate == "keep" else 1 - v["z"]
    v["keep"], v["add"] = keep, 1 - keep
    v["kept"], v["added"] = keep * (h["h"] + p["h_direct"]), (1 - keep) * v["g"]
    v["h_new"] = v["kept"] + v["added"] + p["h_new"]
    return v


def rnn(step, x, h):
    a = step.affine("h", x, h["h"]) + step.p["a_h"]
    return {"a_h": a, "h_new": step.phi(a) + step.p["h_new"]}


def lstm(step, x, h):
    p, v = step.p, {}
    for block in "ifog":
        v[f"a_{block}"] = step.affine(block, x, h["h"] + p[f"h_{block}"]) + p[f"a_{block}"]
        v[block] = (step.phi if block == "g" else step.sigma)(v[f"a_{block}"]) + p[block]
    v["kept"], v["added"] = v["f"] * h["c"], v["i"] * v["g"]
    v["c_new"] = v["kept"] + v["added"] + p["c_new"]
    v["phi_c"] = step.phi(v["c_new"] + p["c_output"])
    v["h_new"] = v["o"] * v["phi_c"] + p["h_new"]
    return v


def single_gate(reset):
    """A cell whose reset gate is a function of the shares kept and added."""

    def run(step, x, h):
        p, w, v = step.p, step.w, {}
        v["a_z"] = step.affine("z", x, h["h"] + p["h_z"]) + p["a_z"]
        v["z"] = step.sigma(v["a_z"])
        shares = [(z, 1 - z) for z in (v["z"] + p["z_mixture"], v["z"] + p["z_candidate"])]
        if step.network.update_gate == "replace":
            shares = [(1 - z, z) for z, _ in shares]
        (keep, add), in_candidate = shares
        v["keep"], v["add"] = keep, add
        v["r"] = reset(*in_candidate)
        v["rh"] = v["r"] * (h["h"] + p["h_candidate"]) + p["rh"]
        v["a_g"] = x @ w["W", "g"] + w["b", "g"] + v["rh"] @ w["U", "g"] + p["a_g"]
        v["g"] = step.phi(v["a_g"]) + p["g"]
        v["kept"], v["added"] = keep * (h["h"] + p["h_direct"]), add * v["g"]
        v["h_new"] = v["kept"] + v["added"] + p["h_new"]
        return v

    return run


# By cell: blocks, states, gradients, step.
PLAIN = {
    "gru": ("zrg", "h", GRU, gru),
    "rnn": ("h", "h", RNN, rnn),
    "lstm": ("ifgo", "hc", LSTM, lstm),
    "mgu": ("zg", "h", SINGLE_GATE, single_gate(lambda _, add: add)),
    "minimal_gru": ("zg", "h", SINGLE_GATE, single_gate(lambda _, add: 1.0 + 0.0 * add)),
    "coupled_gru": ("zg", "h", SINGLE_GATE, single_gate(lambda keep, _: keep)),
}
